//! A stock as bytes, for a store of material made ahead of time.
//!
//! Layout: `privet stock` and the version (3), the role (0 client, 1 server), nine 64-bit counts in the order of
//! [`crate::Kind`], then every vector in the order of the structs' fields. Version 2 has no tables, and five counts. With one-hot vectors it
//! is version 4: seven more counts, and the vectors at the end. Bits are packed 8 to a byte, words
//! little-endian. Only what is left is written. The bytes are secret, and using them twice breaks every secret they
//! protect: a store must hand them out once.

use privet_ring::Bits;

use crate::correlations::{PairedTriples, PrivateAnds, ProductsReceived, ProductsSent, Triples};
use crate::one_hots::{self, OneHots};
use crate::random::{BitsReceived, BitsSent};
use crate::stock::Tables;
use crate::{Error, Kind, OneHotCounts, Role, Shape, Stock, TablesReceived, TablesSent};

const MAGIC: &[u8; 12] = b"privet stock";

/// Bytes of a stored stock before its correlations.
pub const STOCK_HEADER_BYTES: u64 = 12 + 2 + 9 * 8;

const VERSION: u8 = 3;
const WITHOUT_TABLES: u8 = 2;
const WITH_ONE_HOTS: u8 = 4;

/// Bytes of a stored stock's correlations of this kind, with their counts: none without any.
pub fn one_hots_bytes(counts: &OneHotCounts) -> u64 {
    let header = if *counts == OneHotCounts::NONE { 0 } else { 8 * one_hots::COUNT };
    (header + counts.stored_bytes()) as u64
}

impl Stock {
    /// What is left, in the layout of version 3, or 4 with one-hot vectors.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        let one_hots = self.one_hots_left();
        let version = if one_hots.is_empty() { VERSION } else { WITH_ONE_HOTS };
        bytes.extend([version, self.role.code()]);
        let [ands, triples, pairs, sent, received, ..] = self.taken;
        let ands = self.private_ands.slice(ands, self.private_ands.len() - ands);
        let triples = self.triples.slice(triples, self.triples.a.len() - triples);
        let pairs = self.paired_triples.slice(pairs, self.paired_triples.a.len() - pairs);
        let sent = self.products_sent.slice(sent, self.products_sent.rho.len() - sent);
        let received = self.products_received.slice(received, self.products_received.share.len() - received);
        let tables = self.tables_left();
        let counts = [ands.len(), triples.a.len(), pairs.a.len(), sent.rho.len(), received.share.len()];
        let sent_tables = tables.sent.iter().map(TablesSent::count);
        for count in counts.into_iter().chain(sent_tables).chain(tables.received.iter().map(TablesReceived::count)) {
            bytes.extend((count as u64).to_le_bytes());
        }
        for vectors in &one_hots {
            bytes.extend((vectors.count() as u64).to_le_bytes());
        }
        let [first, second] = match &ands {
            PrivateAnds::Server(ots) => [&ots.r0, &ots.r1],
            PrivateAnds::Client(ots) => [&ots.choice, &ots.received],
        };
        for bits in [first, second, &triples.a, &triples.b, &triples.c].into_iter().chain(pairs.all()) {
            bytes.extend(bits.to_bytes());
        }
        for word in sent.rho.iter().chain(&sent.share) {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(received.choice.to_bytes());
        for word in &received.share {
            bytes.extend(word.to_le_bytes());
        }
        let sent = tables.sent.iter().flat_map(|tables| &tables.entries);
        let received = tables.received.iter().flat_map(|tables| tables.choice.iter().chain(&tables.received));
        sent.chain(received).for_each(|bits| bytes.extend(bits.to_bytes()));
        one_hots.iter().flat_map(OneHots::all).for_each(|bits| bytes.extend(bits.to_bytes()));
        bytes
    }

    /// The one-hot vectors that are left, by length; nothing if there are none at all.
    fn one_hots_left(&self) -> Vec<OneHots> {
        let left = |(vectors, bits): (&OneHots, u32)| {
            let taken = self.taken[Kind::OneHots(bits).index()];
            vectors.slice(taken, vectors.count() - taken)
        };
        let all: Vec<OneHots> = self.one_hots.iter().zip(one_hots::SIZES).map(left).collect();
        if all.iter().all(|vectors| vectors.count() == 0) { Vec::new() } else { all }
    }

    fn tables_left(&self) -> Tables {
        let mut left = self.tables.clone();
        for shape in Shape::ALL {
            let (sent, received) = (&mut left.sent[shape as usize], &mut left.received[shape as usize]);
            let taken = |kind: Kind| self.taken[kind.index()];
            let (from, of) = (taken(Kind::TablesSent(shape)), taken(Kind::TablesReceived(shape)));
            *sent = sent.slice(from, sent.count() - from);
            *received = received.slice(of, received.count() - of);
        }
        left
    }

    /// Reads what [`Stock::to_bytes`] wrote.
    ///
    /// # Errors
    /// [`Error::InvalidStock`] for anything else; nothing is allocated by a count that the length does not bear out.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        let mut reader = Reader(bytes);
        if reader.take(MAGIC.len())? != MAGIC {
            return Err(Error::InvalidStock { what: "they are no stored stock" });
        }
        let version = reader.byte()?;
        if ![VERSION, WITHOUT_TABLES, WITH_ONE_HOTS].contains(&version) {
            return Err(Error::InvalidStock { what: "they have another version" });
        }
        let role = Role::from_code(reader.byte()?).ok_or(Error::InvalidStock { what: "their role is unknown" })?;
        let (ands, triples, pairs) = (reader.count()?, reader.count()?, reader.count()?);
        let (sent, received) = (reader.count()?, reader.count()?);
        let mut tables = || if version == WITHOUT_TABLES { Ok(0) } else { reader.count() };
        let counts = [[tables()?, tables()?], [tables()?, tables()?]];
        let mut vectors = [0; one_hots::COUNT];
        if version == WITH_ONE_HOTS {
            for count in &mut vectors {
                *count = reader.count()?;
            }
        }
        let (first, second) = (reader.bits(ands)?, reader.bits(ands)?);
        let private_ands = match role {
            Role::Server => PrivateAnds::Server(BitsSent { r0: first, r1: second }),
            Role::Client => PrivateAnds::Client(BitsReceived { choice: first, received: second }),
        };
        let triples = Triples { a: reader.bits(triples)?, b: reader.bits(triples)?, c: reader.bits(triples)? };
        let paired_triples = PairedTriples {
            a: reader.bits(pairs)?,
            b: [reader.bits(pairs)?, reader.bits(pairs)?],
            c: [reader.bits(pairs)?, reader.bits(pairs)?],
        };
        let products_sent = ProductsSent { rho: reader.words(sent)?, share: reader.words(sent)? };
        let products_received = ProductsReceived { choice: reader.bits(received)?, share: reader.words(received)? };
        let tables = Tables {
            sent: [reader.tables_sent(Shape::Eight, counts[0][0])?, reader.tables_sent(Shape::Sixteen, counts[0][1])?],
            received: [
                reader.tables_received(Shape::Eight, counts[1][0])?,
                reader.tables_received(Shape::Sixteen, counts[1][1])?,
            ],
        };
        let mut one_hots = one_hots::none();
        for (made, (bits, count)) in one_hots.iter_mut().zip(one_hots::SIZES.zip(vectors)) {
            *made = OneHots { number: reader.planes(bits as usize, count)?, entries: reader.planes(1 << bits, count)? };
        }
        if !reader.0.is_empty() {
            return Err(Error::InvalidStock { what: "they are too long" });
        }
        let taken = [0; Kind::COUNT];
        Ok(Self {
            role,
            private_ands,
            triples,
            paired_triples,
            products_sent,
            products_received,
            tables,
            one_hots,
            taken,
        })
    }
}

/// The bytes that are still to be read.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], Error> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(Error::InvalidStock { what: "they are too short" })?;
        self.0 = rest;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8, Error> {
        Ok(self.take(1)?.iter().copied().sum())
    }

    fn count(&mut self) -> Result<usize, Error> {
        let bytes = self.take(8)?;
        let count = bytes.iter().rev().fold(0, |count, &byte| count << 8 | u64::from(byte));
        usize::try_from(count).map_err(|_| Error::InvalidStock { what: "a count is too large" })
    }

    fn bits(&mut self, count: usize) -> Result<Bits, Error> {
        let bytes = self.take(count.div_ceil(8))?;
        let unused = bytes.len() * 8 - count;
        if unused > 0 && bytes.last().is_some_and(|last| last >> (8 - unused) != 0) {
            return Err(Error::InvalidStock { what: "bits beyond the end of a vector are set" });
        }
        Bits::from_bytes(bytes, count).map_err(|_| Error::InvalidStock { what: "they are too short" })
    }

    fn planes(&mut self, planes: usize, count: usize) -> Result<Vec<Bits>, Error> {
        (0..planes).map(|_| self.bits(count)).collect()
    }

    fn tables_sent(&mut self, shape: Shape, count: usize) -> Result<TablesSent, Error> {
        Ok(TablesSent { entries: self.planes(shape.sent_bits(), count)? })
    }

    fn tables_received(&mut self, shape: Shape, count: usize) -> Result<TablesReceived, Error> {
        let choice = self.planes(shape.choice_bits(), count)?;
        Ok(TablesReceived { choice, received: self.planes(shape.entry_bits(), count)? })
    }

    fn words(&mut self, count: usize) -> Result<Vec<u64>, Error> {
        let length = count.checked_mul(8).ok_or(Error::InvalidStock { what: "a count is too large" })?;
        let (words, _) = self.take(length)?.as_chunks();
        Ok(words.iter().map(|&word| u64::from_le_bytes(word)).collect())
    }
}
