//! What can go wrong, in three families: the peer, the caller, the world.

#![allow(missing_docs, reason = "the message of a variant says what its fields are")]

use std::fmt;

use crate::{Shape, Width, one_hots};

/// Any failure of this crate.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A message of the right length has impossible contents.
    #[error("the peer broke the protocol: {what}")]
    PeerMisbehaved { what: &'static str },
    /// More correlations were asked for than are left. Nothing was handed out.
    #[error("{asked} {kind} were asked for but {left} are left in the stock; a larger demand must be generated")]
    StockExhausted { asked: usize, left: usize, kind: Kind },
    /// Stored correlations cannot be read.
    #[error("the stored correlations cannot be used: {what}")]
    InvalidStock { what: &'static str },
    /// The file of stored correlations failed.
    #[error("the stored correlations cannot be read: {error}")]
    Unreadable { error: std::io::Error },
    /// The caller asked for something impossible.
    #[error("the oblivious transfer was used wrongly: {what}")]
    Misuse { what: &'static str },
    /// The link failed, or the peer broke its framing.
    #[error(transparent)]
    Channel(#[from] privet_channel::Error),
    /// The operating system gave no entropy.
    #[error(transparent)]
    Io(#[from] privet_prg::Error),
}

/// The kinds of correlations in a [`crate::Stock`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Bit OTs for ANDs of privately held bits.
    PrivateAnds,
    /// Bit triples.
    Triples,
    /// Pairs of bit triples that share their first bit.
    PairedTriples,
    /// Products of which this party holds the ring element, of one width.
    ProductsSent(Width),
    /// Products of which this party holds the bit, of one width.
    ProductsReceived(Width),
    /// Tables of which this party has all entries.
    TablesSent(Shape),
    /// Tables of which this party has one entry each.
    TablesReceived(Shape),
    /// One-hot vectors for numbers of so many bits.
    OneHots(u32),
}

impl Kind {
    /// How many kinds there are, each width, shape and length for itself.
    pub(crate) const COUNT: usize = 7 + 2 * Width::COUNT + one_hots::COUNT;

    /// All of them, in order.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        let products = [Self::ProductsSent, Self::ProductsReceived].into_iter().flat_map(|of| Width::ALL.map(of));
        let tables = [Self::TablesSent, Self::TablesReceived].into_iter().flat_map(|of| Shape::ALL.map(of));
        let bits = [Self::PrivateAnds, Self::Triples, Self::PairedTriples].into_iter();
        bits.chain(products).chain(tables).chain(one_hots::SIZES.map(Self::OneHots))
    }

    /// Its place in what counts every kind.
    pub(crate) fn index(self) -> usize {
        match self {
            Self::PrivateAnds => 0,
            Self::Triples => 1,
            Self::PairedTriples => 2,
            Self::ProductsSent(width) => 3 + width.index(),
            Self::ProductsReceived(width) => 3 + Width::COUNT + width.index(),
            Self::TablesSent(shape) => 3 + 2 * Width::COUNT + shape as usize,
            Self::TablesReceived(shape) => 5 + 2 * Width::COUNT + shape as usize,
            Self::OneHots(bits) => 7 + 2 * Width::COUNT + one_hots::index(bits),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::PrivateAnds => "private ANDs",
            Self::Triples => "bit triples",
            Self::PairedTriples => "paired bit triples",
            Self::ProductsSent(_) => "products sent",
            Self::ProductsReceived(_) => "products received",
            Self::TablesSent(_) => "tables sent",
            Self::TablesReceived(_) => "tables received",
            Self::OneHots(_) => "one-hot vectors",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_its_place() {
        let places: Vec<usize> = Kind::all().map(Kind::index).collect();
        assert_eq!(places, (0..Kind::COUNT).collect::<Vec<_>>());
    }
}
