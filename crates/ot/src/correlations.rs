//! The correlations of the stock, as a party gets them.
//!
//! Nothing here costs communication beyond the random OTs (Asharov, Lindell, Schneider and Zohner, CCS 2013, for the
//! triples; Gilboa, CRYPTO 1999, for the products). All of them are wiped on drop.

use std::io::{self, Write};

use privet_ring::Bits;
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::Error;
use crate::columns::{Columns, columns};
use crate::material::Reader;
use crate::packed::{Packed, Width};
use crate::random::{BitsReceived, BitsSent, PairsReceived, PairsSent};

/// One party's side of ANDs of a bit of the server with a bit of the client: random bit OTs with the server as sender.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PrivateAnds {
    /// The server's side.
    Server(BitsSent),
    /// The client's side.
    Client(BitsReceived),
}

/// One party's shares of bit triples: over both parties, `(a ^ a') & (b ^ b') = c ^ c'`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Zeroize, ZeroizeOnDrop)]
pub struct Triples {
    /// Shares of random bits.
    pub a: Bits,
    /// Shares of random bits.
    pub b: Bits,
    /// Shares of their products.
    pub c: Bits,
}

/// One party's shares of pairs of bit triples that share their first bit: over both parties,
/// `(a ^ a') & (b[i] ^ b'[i]) = c[i] ^ c'[i]` for `i` in 0 and 1.
#[derive(Clone, Debug, Default, PartialEq, Eq, Zeroize, ZeroizeOnDrop)]
pub struct PairedTriples {
    /// Shares of random bits.
    pub a: Bits,
    /// Shares of two more random bits for each.
    pub b: [Bits; 2],
    /// Shares of their products with the first.
    pub c: [Bits; 2],
}

/// Products of which this party holds the random ring element: `share` plus the peer's share is `rho` where the peer's
/// bit is 1 and zero elsewhere, modulo what fits their width and so modulo any smaller power of two.
#[derive(Clone, Debug, PartialEq, Eq, Zeroize, ZeroizeOnDrop)]
pub struct ProductsSent {
    /// Uniform ring elements.
    pub rho: Packed,
    /// This party's shares of the products.
    pub share: Packed,
}

/// Products of which this party holds the random bit; see [`ProductsSent`].
#[derive(Clone, Debug, PartialEq, Eq, Zeroize, ZeroizeOnDrop)]
pub struct ProductsReceived {
    /// Uniform bits.
    pub choice: Bits,
    /// This party's shares of the products.
    pub share: Packed,
}

columns! {
    Triples { a, b, c }
    PairedTriples { a, b, c }
    ProductsSent { rho, share }
    ProductsReceived { choice, share }
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

    pub(crate) fn cut(&self, start: usize, len: usize) -> Self {
        match self {
            Self::Server(sent) => Self::Server(sent.cut(start, len)),
            Self::Client(received) => Self::Client(received.cut(start, len)),
        }
    }

    pub(crate) fn write(&self, start: usize, out: &mut dyn Write) -> io::Result<()> {
        match self {
            Self::Server(sent) => sent.write(start, out),
            Self::Client(received) => received.write(start, out),
        }
    }

    pub(crate) fn read(&mut self, reader: &mut Reader<'_>, len: usize) -> Result<(), Error> {
        match self {
            Self::Server(sent) => sent.read(reader, len),
            Self::Client(received) => received.read(reader, len),
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
}

impl PairedTriples {
    /// Of one OT of two bits each way: `a` is this party's choice where it receives and `b = r0 ^ r1` where it sends, so
    /// one choice meets both bits.
    pub(crate) fn from_ots(sent: &PairsSent, received: &PairsReceived) -> Self {
        let a = received.choice.clone();
        let b = [0, 1].map(|i| sent.r0[i].xor(&sent.r1[i]));
        let c = [0, 1].map(|i| {
            let mut c = a.and(&b[i]);
            c.xor_assign(&sent.r0[i]);
            c.xor_assign(&received.received[i]);
            c
        });
        Self { a, b, c }
    }
}

impl ProductsSent {
    /// Those of a width, of which there are none.
    pub fn none(width: Width) -> Self {
        Self { rho: Packed::none(width), share: Packed::none(width) }
    }
}

impl ProductsReceived {
    /// Those of a width, of which there are none.
    pub fn none(width: Width) -> Self {
        Self { choice: Bits::default(), share: Packed::none(width) }
    }
}
