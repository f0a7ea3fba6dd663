//! The correlations of the stock, as a party gets them.
//!
//! Nothing here costs communication beyond the random OTs (Asharov, Lindell, Schneider and Zohner, CCS 2013, for the
//! triples; Gilboa, CRYPTO 1999, for the products).

use privet_ring::Bits;

use crate::random::{BitsReceived, BitsSent, WordsReceived, WordsSent};

/// One party's side of ANDs of a bit of the server with a bit of the client: random bit OTs with the server as sender.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PrivateAnds {
    /// The server's side.
    Server(BitsSent),
    /// The client's side.
    Client(BitsReceived),
}

/// One party's shares of bit triples: over both parties, `(a ^ a') & (b ^ b') = c ^ c'`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Triples {
    /// Shares of random bits.
    pub a: Bits,
    /// Shares of random bits.
    pub b: Bits,
    /// Shares of their products.
    pub c: Bits,
}

/// Products of which this party holds the random ring element: `share` plus the peer's share is `rho` where the peer's
/// bit is 1 and zero elsewhere, modulo 2^64 and so modulo any smaller power of two.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProductsSent {
    /// Uniform ring elements.
    pub rho: Vec<u64>,
    /// This party's shares of the products.
    pub share: Vec<u64>,
}

/// Products of which this party holds the random bit; see [`ProductsSent`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProductsReceived {
    /// Uniform bits.
    pub choice: Bits,
    /// This party's shares of the products.
    pub share: Vec<u64>,
}

impl PrivateAnds {
    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Self::Server(sent) => sent.r0.len(),
            Self::Client(received) => received.choice.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn slice(&self, start: usize, len: usize) -> Self {
        match self {
            Self::Server(sent) => Self::Server(sent.slice(start, len)),
            Self::Client(received) => Self::Client(received.slice(start, len)),
        }
    }
}

impl Triples {
    /// Of one OT each way: `a = r0 ^ r1` where this party sends and `b` is its choice where it receives. The peer's
    /// choice times this `a` is `r0` plus the bit that the peer received, and the same the other way round.
    pub(crate) fn from_ots(sent: &BitsSent, received: &BitsReceived) -> Self {
        let a = sent.r0.xor(&sent.r1);
        let b = received.choice.clone();
        let mut c = a.and(&b);
        c.xor_assign(&sent.r0);
        c.xor_assign(&received.received);
        Self { a, b, c }
    }

    pub(crate) fn slice(&self, start: usize, len: usize) -> Self {
        Self { a: self.a.slice(start, len), b: self.b.slice(start, len), c: self.c.slice(start, len) }
    }
}

impl ProductsSent {
    /// Adds products of random word OTs: the element is `m1 - m0`, the share `-m0`.
    pub(crate) fn extend(&mut self, sent: &WordsSent) {
        self.rho.extend(sent.m0.iter().zip(&sent.m1).map(|(m0, m1)| m1.wrapping_sub(*m0)));
        self.share.extend(sent.m0.iter().map(|m0| m0.wrapping_neg()));
    }

    pub(crate) fn slice(&self, start: usize, len: usize) -> Self {
        Self { rho: self.rho[start..start + len].to_vec(), share: self.share[start..start + len].to_vec() }
    }
}

impl ProductsReceived {
    /// Adds products of random word OTs: the share is the word received.
    pub(crate) fn extend(&mut self, received: &WordsReceived) {
        self.choice.extend(&received.choice);
        self.share.extend_from_slice(&received.received);
    }

    pub(crate) fn slice(&self, start: usize, len: usize) -> Self {
        Self { choice: self.choice.slice(start, len), share: self.share[start..start + len].to_vec() }
    }
}
