//! What a material entry is called and what it is for.

use std::time::SystemTime;

use serde::{Deserialize, Serialize};

/// Name of one material entry, the same at both parties: made from a nonce of each.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct MaterialId(String);

impl MaterialId {
    /// The id that spells these bytes.
    pub fn new(bytes: &[u8; 16]) -> Self {
        Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// The bytes that the id spells.
    pub fn bytes(&self) -> [u8; 16] {
        let digit = |at: usize| self.0.as_bytes()[at];
        let value = |digit: u8| if digit < b'a' { digit - b'0' } else { digit - b'a' + 10 };
        std::array::from_fn(|i| value(digit(2 * i)) << 4 | value(digit(2 * i + 1)))
    }

    /// The id in hexadecimal.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for MaterialId {
    type Error = String;

    /// Only 32 lower-case hexadecimal digits are an id, so that one from a peer is a safe file name.
    fn try_from(text: String) -> Result<Self, String> {
        let valid = text.len() == 32 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if valid { Ok(Self(text)) } else { Err(format!("{text:?} is not a material id of 32 hexadecimal digits")) }
    }
}

impl From<MaterialId> for String {
    fn from(id: MaterialId) -> Self {
        id.0
    }
}

impl std::fmt::Display for MaterialId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a material entry is for; reading it does not spend the entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metadata {
    /// The entry's name.
    pub id: MaterialId,
    /// Hash of the program it serves, in hexadecimal.
    pub program: String,
    /// The suite that made it.
    pub suite: String,
    /// The party it is half of: `client` or `server`.
    pub role: String,
    /// Fingerprint of the other party's certificate, in hexadecimal; empty over a link without certificates.
    pub peer: String,
    /// The model's name, for people.
    #[serde(default)]
    pub model: String,
    /// The setup that it was made with, if the suite has any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup: Option<MaterialId>,
}

/// An entry that is ready, and what it takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreEntry {
    /// What it is for.
    pub metadata: Metadata,
    /// Bytes on disk, metadata included.
    pub bytes: u64,
    /// When it was finished.
    pub created: SystemTime,
}
