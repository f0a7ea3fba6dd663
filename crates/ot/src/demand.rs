//! How many correlations two parties want.

use std::ops::Add;

use crate::{OneHotCounts, Role, Shape, Width};

/// How many tables of each shape.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct TableCounts {
    /// Of [`Shape::Eight`].
    pub eights: usize,
    /// Of [`Shape::Sixteen`].
    pub sixteens: usize,
}

impl TableCounts {
    /// None.
    pub const NONE: Self = Self { eights: 0, sixteens: 0 };

    /// `count` of one shape.
    pub fn of(shape: Shape, count: usize) -> Self {
        match shape {
            Shape::Eight => Self { eights: count, ..Self::NONE },
            Shape::Sixteen => Self { sixteens: count, ..Self::NONE },
        }
    }

    /// How many of a shape.
    pub fn count(&self, shape: Shape) -> usize {
        match shape {
            Shape::Eight => self.eights,
            Shape::Sixteen => self.sixteens,
        }
    }

    /// Correlated OTs in them.
    pub(crate) fn ots(&self) -> usize {
        Shape::ALL.into_iter().map(|shape| self.count(shape) * shape.choice_bits()).sum()
    }
}

impl Add for TableCounts {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { eights: self.eights + other.eights, sixteens: self.sixteens + other.sixteens }
    }
}

/// How many products of each width.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct ProductCounts([usize; Width::COUNT]);

impl ProductCounts {
    /// None.
    pub const NONE: Self = Self([0; Width::COUNT]);

    /// `count` that hold modulo `2^bits`.
    ///
    /// # Panics
    /// Unless `1 <= bits <= 64`.
    pub const fn of(bits: u32, count: usize) -> Self {
        let mut counts = Self::NONE;
        counts.0[Width::of(bits).index()] = count;
        counts
    }

    /// How many of a width.
    pub const fn count(self, width: Width) -> usize {
        self.0[width.index()]
    }

    /// All counts, with the width of each.
    pub fn all(self) -> impl Iterator<Item = (Width, usize)> {
        Width::ALL.into_iter().zip(self.0)
    }

    /// How many there are.
    pub fn total(self) -> usize {
        self.0.iter().sum()
    }
}

impl Add for ProductCounts {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i] + other.0[i]))
    }
}

/// How many correlations of each kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Demand {
    /// Bit OTs with the server as sender, each for one AND of a bit of the server with a bit of the client.
    pub private_ands: usize,
    /// Bit triples shared by exclusive or, each for one AND of two shared bits.
    pub triples: usize,
    /// Pairs of bit triples that share their first bit, each for two ANDs with an operand in common.
    pub paired_triples: usize,
    /// Products of a ring element of the server with a bit of the client.
    pub products_sent_by_server: ProductCounts,
    /// Products of a ring element of the client with a bit of the server.
    pub products_sent_by_client: ProductCounts,
    /// Tables of which the server has all entries and the client one.
    pub tables_sent_by_server: TableCounts,
    /// Tables of which the client has all entries and the server one.
    pub tables_sent_by_client: TableCounts,
    /// Random one-hot vectors.
    pub one_hots: OneHotCounts,
}

impl Demand {
    /// Nothing.
    pub const NONE: Self = Self {
        private_ands: 0,
        triples: 0,
        paired_triples: 0,
        products_sent_by_server: ProductCounts::NONE,
        products_sent_by_client: ProductCounts::NONE,
        tables_sent_by_server: TableCounts::NONE,
        tables_sent_by_client: TableCounts::NONE,
        one_hots: OneHotCounts::NONE,
    };

    /// All correlated OTs in which `sender` is the sender.
    pub fn ots(&self, sender: Role) -> usize {
        let words = self.products(sender).total() + self.one_hots.ots();
        self.bit_ots(sender) + self.paired_triples + words + self.tables(sender).ots()
    }

    /// Tables of which `sender` has all entries.
    pub fn tables(&self, sender: Role) -> TableCounts {
        match sender {
            Role::Client => self.tables_sent_by_client,
            Role::Server => self.tables_sent_by_server,
        }
    }

    /// Products of which `sender` holds the ring element.
    pub fn products(&self, sender: Role) -> ProductCounts {
        match sender {
            Role::Client => self.products_sent_by_client,
            Role::Server => self.products_sent_by_server,
        }
    }

    /// Random bit OTs in which `sender` is the sender.
    pub(crate) fn bit_ots(&self, sender: Role) -> usize {
        match sender {
            Role::Client => self.triples,
            Role::Server => self.private_ands + self.triples,
        }
    }

    /// The same demand with products of whole words alone.
    pub(crate) fn of_words(self) -> Self {
        let [products_sent_by_server, products_sent_by_client] =
            [Role::Server, Role::Client].map(|sender| ProductCounts::of(u64::BITS, self.products(sender).total()));
        Self { products_sent_by_server, products_sent_by_client, ..self }
    }
}

impl Add for Demand {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            private_ands: self.private_ands + other.private_ands,
            triples: self.triples + other.triples,
            paired_triples: self.paired_triples + other.paired_triples,
            products_sent_by_server: self.products_sent_by_server + other.products_sent_by_server,
            products_sent_by_client: self.products_sent_by_client + other.products_sent_by_client,
            tables_sent_by_server: self.tables_sent_by_server + other.tables_sent_by_server,
            tables_sent_by_client: self.tables_sent_by_client + other.tables_sent_by_client,
            one_hots: self.one_hots + other.one_hots,
        }
    }
}
