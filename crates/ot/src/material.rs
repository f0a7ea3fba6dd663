//! A stock as bytes, for a store of material made ahead of time.
//!
//! Layout: `privet stock` and the version (5), the role (0 client, 1 server), nine 64-bit counts ([`COUNTED`]), then every vector in the order of the structs' fields. Version 2 has no tables, and five counts. With one-hot vectors it
//! is version 6: seven more counts, and the vectors at the end. Versions 3 and 4 are the same, but entries of their tables of 16 had two bits: such tables are refused. Bits are packed 8 to a byte, words
//! little-endian. Only what is left is written. The bytes are secret, and using them twice breaks every secret they
//! protect: a store must hand them out once.

use std::io::{self, Read, Write};

use privet_ring::Bits;
use zeroize::{Zeroize, Zeroizing};

use crate::columns::Columns;
use crate::one_hots;
use crate::{Error, Kind, OneHotCounts, Role, Shape, Stock};

const MAGIC: &[u8; 12] = b"privet stock";

/// Bytes of a stored stock before its correlations.
pub const STOCK_HEADER_BYTES: u64 = 12 + 2 + 9 * 8;

const VERSION: u8 = 5;
const WITH_ONE_HOTS: u8 = 6;
const WITHOUT_TABLES: u8 = 2;

/// Versions before 5, and that with one-hot vectors.
const OLD: [u8; 3] = [WITHOUT_TABLES, 3, 4];
const OLD_WITH_ONE_HOTS: u8 = 4;

/// The kinds whose counts every version has, in order.
const COUNTED: [Kind; 9] = [
    Kind::PrivateAnds,
    Kind::Triples,
    Kind::PairedTriples,
    Kind::ProductsSent,
    Kind::ProductsReceived,
    Kind::TablesSent(Shape::Eight),
    Kind::TablesSent(Shape::Sixteen),
    Kind::TablesReceived(Shape::Eight),
    Kind::TablesReceived(Shape::Sixteen),
];

/// Bytes of a stored stock's correlations of this kind, with their counts: none without any.
pub fn one_hots_bytes(counts: &OneHotCounts) -> u64 {
    let header = if *counts == OneHotCounts::NONE { 0 } else { 8 * one_hots::COUNT };
    (header + counts.stored_bytes()) as u64
}

impl Stock {
    /// Writes what is left, in the layout of version 5, or 6 with one-hot vectors. No copy of it is made: there may be hundreds of
    /// megabytes.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut one_hots: Vec<Kind> = one_hots::SIZES.map(Kind::OneHots).collect();
        if one_hots.iter().all(|&kind| self.left_of(kind) == 0) {
            one_hots.clear();
        }
        let version = if one_hots.is_empty() { VERSION } else { WITH_ONE_HOTS };
        out.write_all(MAGIC)?;
        out.write_all(&[version, self.role.code()])?;
        for kind in COUNTED.into_iter().chain(one_hots.iter().copied()) {
            out.write_all(&(self.left_of(kind) as u64).to_le_bytes())?;
        }
        let taken = |kind: Kind| self.taken[kind.index()];
        self.private_ands.write(taken(Kind::PrivateAnds), out)?;
        self.triples.write(taken(Kind::Triples), out)?;
        self.paired_triples.write(taken(Kind::PairedTriples), out)?;
        self.products_sent.write(taken(Kind::ProductsSent), out)?;
        self.products_received.write(taken(Kind::ProductsReceived), out)?;
        for shape in Shape::ALL {
            self.tables.sent[shape as usize].write(taken(Kind::TablesSent(shape)), out)?;
        }
        for shape in Shape::ALL {
            self.tables.received[shape as usize].write(taken(Kind::TablesReceived(shape)), out)?;
        }
        self.one_hots.iter().zip(one_hots).try_for_each(|(vectors, kind)| vectors.write(taken(kind), out))
    }

    /// What [`Stock::write`] writes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.write(&mut bytes).expect("a vector takes all bytes");
        bytes
    }

    /// Reads what [`Stock::to_bytes`] wrote.
    ///
    /// # Errors
    /// [`Error::InvalidStock`] for anything else; nothing is allocated by a count that the length does not bear out.
    pub fn from_bytes(mut bytes: &[u8]) -> Result<Self, Error> {
        let length = bytes.len() as u64;
        Self::read(&mut bytes, length, Self::empty(Role::Client))
    }

    /// Reads what [`Stock::to_bytes`] wrote, `length` bytes of `source`, in the memory of the same party's stock that is used up.
    ///
    /// # Errors
    /// As [`Stock::from_bytes`]; [`Error::Unreadable`] if the source fails. Then what was read is wiped as well.
    pub fn read(source: &mut dyn Read, length: u64, mut used: Self) -> Result<Self, Error> {
        let mut reader = Reader::new(source, length);
        if reader.array::<12>()? != *MAGIC {
            return Err(Error::InvalidStock { what: "they are no stored stock" });
        }
        let [version, role] = reader.array()?;
        if ![VERSION, WITH_ONE_HOTS].contains(&version) && !OLD.contains(&version) {
            return Err(Error::InvalidStock { what: "they have another version" });
        }
        let role = Role::from_code(role).ok_or(Error::InvalidStock { what: "their role is unknown" })?;
        let (ands, triples, pairs) = (reader.count()?, reader.count()?, reader.count()?);
        let (sent, received) = (reader.count()?, reader.count()?);
        let mut tables = || if version == WITHOUT_TABLES { Ok(0) } else { reader.count() };
        let counts = [[tables()?, tables()?], [tables()?, tables()?]];
        let sixteens = counts.iter().any(|count| count[Shape::Sixteen as usize] > 0);
        if OLD.contains(&version) && sixteens {
            return Err(Error::InvalidStock { what: "their tables are of another version" });
        }
        let mut vectors = [0; one_hots::COUNT];
        if [WITH_ONE_HOTS, OLD_WITH_ONE_HOTS].contains(&version) {
            for count in &mut vectors {
                *count = reader.count()?;
            }
        }
        if used.role != role {
            used = Self::empty(role);
        }
        // Whatever fails, `used` is wiped with all that was read.
        used.private_ands.read(&mut reader, ands)?;
        used.triples.read(&mut reader, triples)?;
        used.paired_triples.read(&mut reader, pairs)?;
        used.products_sent.read(&mut reader, sent)?;
        used.products_received.read(&mut reader, received)?;
        for (tables, count) in used.tables.sent.iter_mut().zip(counts[0]) {
            tables.read(&mut reader, count)?;
        }
        for (tables, count) in used.tables.received.iter_mut().zip(counts[1]) {
            tables.read(&mut reader, count)?;
        }
        for (vectors, count) in used.one_hots.iter_mut().zip(vectors) {
            vectors.read(&mut reader, count)?;
        }
        if reader.left > 0 {
            return Err(Error::InvalidStock { what: "they are too long" });
        }
        used.taken = [0; Kind::COUNT];
        Ok(used)
    }
}

/// Bytes that are written at once.
const WRITTEN: usize = 1 << 12;

/// Writes the first `bytes` bytes of words, little-endian; no word is left out.
pub(crate) fn write_words(words: &[u64], bytes: usize, out: &mut dyn Write) -> io::Result<()> {
    let (mut piece, mut left) = (Zeroizing::new([[0; 8]; WRITTEN / 8]), bytes);
    for words in words.chunks(WRITTEN / 8) {
        piece.iter_mut().zip(words).for_each(|(bytes, word)| *bytes = word.to_le_bytes());
        let part = &piece.as_flattened()[..left.min(WRITTEN)];
        out.write_all(part)?;
        left -= part.len();
    }
    Ok(())
}

/// Bytes that are read at once: they stay in the second cache until they are words.
const PIECE: usize = 1 << 16;

/// The bytes that are still to be read.
pub(crate) struct Reader<'a> {
    source: &'a mut dyn Read,
    left: u64,
    piece: Zeroizing<Vec<u8>>,
}

impl<'a> Reader<'a> {
    fn new(source: &'a mut dyn Read, left: u64) -> Self {
        let piece = usize::try_from(left).map_or(PIECE, |left| left.min(PIECE));
        Self { source, left, piece: Zeroizing::new(vec![0; piece]) }
    }

    /// Counts bytes as read, if there are as many.
    fn claim(&mut self, bytes: usize) -> Result<(), Error> {
        let left = self.left.checked_sub(bytes as u64);
        self.left = left.ok_or(Error::InvalidStock { what: "they are too short" })?;
        Ok(())
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        self.claim(N)?;
        let mut bytes = [0; N];
        self.source.read_exact(&mut bytes).map_err(|error| Error::Unreadable { error })?;
        Ok(bytes)
    }

    fn count(&mut self) -> Result<usize, Error> {
        let count = u64::from_le_bytes(self.array()?);
        usize::try_from(count).map_err(|_| Error::InvalidStock { what: "a count is too large" })
    }

    /// `bytes` bytes as words, the last one filled up by zeros, in the memory of `words`; what is left of its old contents is wiped.
    fn filled(&mut self, bytes: usize, words: Vec<u64>) -> Result<Zeroizing<Vec<u64>>, Error> {
        let mut words = Zeroizing::new(words);
        self.claim(bytes)?;
        let count = bytes.div_ceil(8);
        if words.capacity() < count {
            words = Zeroizing::new(Vec::with_capacity(count));
        }
        words.get_mut(count..).unwrap_or_default().zeroize();
        words.clear();
        let mut left = bytes;
        while left > 0 {
            let piece = &mut self.piece[..left.min(PIECE)];
            self.source.read_exact(piece).map_err(|error| Error::Unreadable { error })?;
            left -= piece.len();
            let (whole, rest) = piece.as_chunks();
            words.extend(whole.iter().map(|&word| u64::from_le_bytes(word)));
            if !rest.is_empty() {
                let mut word = [0; 8];
                word[..rest.len()].copy_from_slice(rest);
                words.push(u64::from_le_bytes(word));
            }
        }
        Ok(words)
    }

    /// Bits in the memory of others.
    pub(crate) fn bits(&mut self, count: usize, old: Bits) -> Result<Bits, Error> {
        let mut words = self.filled(count.div_ceil(8), old.into_words())?;
        let unused = words.len() * 64 - count;
        if unused > 0 && words.last().is_some_and(|last| last >> (64 - unused) != 0) {
            return Err(Error::InvalidStock { what: "bits beyond the end of a vector are set" });
        }
        let bits = Bits::from_words(std::mem::take(&mut *words), count);
        bits.map_err(|_| Error::InvalidStock { what: "they are too short" })
    }

    /// Words in the memory of others.
    pub(crate) fn words(&mut self, count: usize, old: Vec<u64>) -> Result<Vec<u64>, Error> {
        let bytes = count.checked_mul(8).ok_or(Error::InvalidStock { what: "a count is too large" })?;
        let mut words = self.filled(bytes, old)?;
        Ok(std::mem::take(&mut *words))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Triples;

    /// What is part of correlations is wiped with them.
    #[test]
    fn what_was_read_before_a_failure_is_part_of_correlations() {
        let old = Bits::from_bools(&[true; 100]);
        let mut triples = Triples { a: old.clone(), b: old.clone(), c: old.clone() };
        let mut bytes = &[0; 13][..];
        let read = triples.read(&mut Reader::new(&mut bytes, 13), 50);
        assert!(matches!(read, Err(Error::InvalidStock { .. })));
        assert_eq!(triples, Triples { a: Bits::zeros(50), b: Bits::default(), c: old });
    }
}
