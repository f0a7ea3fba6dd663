//! Who is at the other end.

use std::fmt;

/// SHA-256 of a certificate (its DER form): what a party can be recognised by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fingerprint(pub [u8; 32]);

impl fmt::Display for Fingerprint {
    /// 64 lower-case hexadecimal digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// An authenticated peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Peer {
    pub fingerprint: Fingerprint,
    pub name: Option<String>,
    /// The certificates that it showed, each in DER; its own is the first.
    pub chain: Vec<Vec<u8>>,
}
