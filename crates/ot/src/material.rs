//! A stock as bytes, for a store of material made ahead of time.
//!
//! Layout: `privet stock` and the version (7), the role (0 client, 1 server), a 64-bit count of each [`Kind`], then every vector in the
//! order of the kinds and of the structs' fields. Bits are packed 8 to a byte, ring elements little-endian in the bytes of their width.
//! Version 2, which Privet 0.2 wrote, has counts of [`OLD`] alone, and elements of whole words, which serve for products of any width.
//! Only what is left is written. The bytes are secret, and using them twice breaks every secret they protect: a store must hand them out
//! once.

use std::io::{self, Read, Write};

use privet_prg::wipe;
use privet_ring::Bits;
use zeroize::Zeroizing;

use crate::columns::Columns;
use crate::one_hots;
use crate::packed::{Packed, Width};
use crate::{Error, Kind, Role, Stock};

const MAGIC: &[u8; 12] = b"privet stock";

/// Bytes of a stored stock before its correlations.
pub const STOCK_HEADER_BYTES: u64 = (12 + 2 + 8 * Kind::COUNT) as u64;

const VERSION: u8 = 7;
const OLD_VERSION: u8 = 2;

/// What is counted in version 2.
const OLD: [Kind; 5] = [
    Kind::PrivateAnds,
    Kind::Triples,
    Kind::PairedTriples,
    Kind::ProductsSent(Width::WORD),
    Kind::ProductsReceived(Width::WORD),
];

impl Stock {
    /// Writes what is left. No copy of it is made: there may be hundreds of megabytes.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(MAGIC)?;
        out.write_all(&[if self.is_of_words { OLD_VERSION } else { VERSION }, self.role.code()])?;
        for kind in counted(self.is_of_words) {
            out.write_all(&(self.left_of(kind) as u64).to_le_bytes())?;
        }
        counted(self.is_of_words).try_for_each(|kind| {
            let start = self.taken[kind.index()];
            match kind {
                Kind::PrivateAnds => self.private_ands.write(start, out),
                Kind::Triples => self.triples.write(start, out),
                Kind::PairedTriples => self.paired_triples.write(start, out),
                Kind::ProductsSent(width) => self.products.sent[width.index()].write(start, out),
                Kind::ProductsReceived(width) => self.products.received[width.index()].write(start, out),
                Kind::TablesSent(shape) => self.tables.sent[shape as usize].write(start, out),
                Kind::TablesReceived(shape) => self.tables.received[shape as usize].write(start, out),
                Kind::OneHots(bits) => self.one_hots[one_hots::index(bits)].write(start, out),
            }
        })
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
    pub fn read(source: &mut dyn Read, length: u64, mut spare: Self) -> Result<Self, Error> {
        let mut reader = Reader::new(source, length);
        if reader.array::<12>()? != *MAGIC {
            return Err(Error::InvalidStock { what: "they are no stored stock" });
        }
        let [version, role] = reader.array()?;
        if ![VERSION, OLD_VERSION].contains(&version) {
            return Err(Error::InvalidStock { what: "they have another version" });
        }
        let role = Role::from_code(role).ok_or(Error::InvalidStock { what: "their role is unknown" })?;
        let is_of_words = version == OLD_VERSION;
        let mut counts = [0; Kind::COUNT];
        for kind in counted(is_of_words) {
            counts[kind.index()] = reader.count()?;
        }
        if spare.role != role {
            spare = Self::empty(role);
        }
        // Whatever fails, `spare` is wiped with all that was read.
        for (kind, count) in Kind::all().zip(counts) {
            match kind {
                Kind::PrivateAnds => spare.private_ands.read(&mut reader, count),
                Kind::Triples => spare.triples.read(&mut reader, count),
                Kind::PairedTriples => spare.paired_triples.read(&mut reader, count),
                Kind::ProductsSent(width) => spare.products.sent[width.index()].read(&mut reader, count),
                Kind::ProductsReceived(width) => spare.products.received[width.index()].read(&mut reader, count),
                Kind::TablesSent(shape) => spare.tables.sent[shape as usize].read(&mut reader, count),
                Kind::TablesReceived(shape) => spare.tables.received[shape as usize].read(&mut reader, count),
                Kind::OneHots(bits) => spare.one_hots[one_hots::index(bits)].read(&mut reader, count),
            }?;
        }
        if reader.bytes_left > 0 {
            return Err(Error::InvalidStock { what: "they are too long" });
        }
        (spare.is_of_words, spare.taken) = (is_of_words, [0; Kind::COUNT]);
        Ok(spare)
    }
}

/// The kinds of a stock that are counted and written, in order.
fn counted(is_of_words: bool) -> impl Iterator<Item = Kind> {
    Kind::all().filter(move |kind| !is_of_words || OLD.contains(kind))
}

/// Bytes that are written at once.
const WRITTEN: usize = 1 << 12;

/// Writes the first `bytes` bytes of words, little-endian; no word is left out.
pub(crate) fn write_words(words: &[u64], bytes: usize, out: &mut dyn Write) -> io::Result<()> {
    // No longer than needed: wiping a whole one for each of many short vectors would take most of the time.
    let (mut chunk, mut bytes_left) = (Zeroizing::new(vec![[0; 8]; words.len().min(WRITTEN / 8)]), bytes);
    for words in words.chunks(WRITTEN / 8) {
        chunk.iter_mut().zip(words).for_each(|(bytes, word)| *bytes = word.to_le_bytes());
        let part = &chunk.as_flattened()[..bytes_left.min(WRITTEN)];
        out.write_all(part)?;
        bytes_left -= part.len();
    }
    Ok(())
}

/// Bytes that are read at once: they stay in the second cache until they are words.
const CHUNK: usize = 1 << 16;

/// The bytes that are still to be read.
pub(crate) struct Reader<'a> {
    source: &'a mut dyn Read,
    bytes_left: u64,
    chunk: Zeroizing<Vec<u8>>,
}

impl<'a> Reader<'a> {
    fn new(source: &'a mut dyn Read, bytes_left: u64) -> Self {
        let chunk = usize::try_from(bytes_left).map_or(CHUNK, |bytes_left| bytes_left.min(CHUNK));
        Self { source, bytes_left, chunk: Zeroizing::new(vec![0; chunk]) }
    }

    /// Counts bytes as read, if there are as many.
    fn claim(&mut self, bytes: usize) -> Result<(), Error> {
        let bytes_left = self.bytes_left.checked_sub(bytes as u64);
        self.bytes_left = bytes_left.ok_or(Error::InvalidStock { what: "they are too short" })?;
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
        if !(count..=2 * count + 1).contains(&words.capacity()) {
            words = Zeroizing::new(Vec::with_capacity(count));
        }
        wipe(words.get_mut(count..).unwrap_or_default());
        words.clear();
        let mut bytes_left = bytes;
        while bytes_left > 0 {
            let chunk = &mut self.chunk[..bytes_left.min(CHUNK)];
            self.source.read_exact(chunk).map_err(|error| Error::Unreadable { error })?;
            bytes_left -= chunk.len();
            let (whole, rest) = chunk.as_chunks();
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

    /// Elements in the place and memory of others, of which nothing is left.
    pub(crate) fn elements(&mut self, count: usize, elements: &mut Packed) -> Result<(), Error> {
        let bytes = count.checked_mul(elements.width().bytes());
        let bytes = bytes.ok_or(Error::InvalidStock { what: "a count is too large" })?;
        self.claim(bytes)?;
        wipe(elements.bytes.get_mut(bytes..).unwrap_or_default());
        elements.empty(count);
        elements.make_room(count);
        let width = elements.width().bytes();
        // Each chunk is still in the second cache when it is read after it was filled with zeros.
        for first in (0..count).step_by(CHUNK / width) {
            let chunk = elements.grow((CHUNK / width).min(count - first));
            self.source.read_exact(chunk).map_err(|error| Error::Unreadable { error })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use privet_prg::{Prg, Seed};

    use super::*;
    use crate::{Demand, ProductCounts, Triples};

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

    /// Stocks of other widths, one after the other in the same memory, take what the largest takes.
    #[test]
    fn products_of_another_width_take_no_room_besides() -> Result<(), Error> {
        let mut spare = Stock::empty(Role::Server);
        let mut prg = Prg::from_seed(&Seed::from_bytes([1; 16]));
        for width in Width::ALL {
            let count = 80_000 / width.bytes();
            let demand =
                Demand { products_sent_by_server: ProductCounts::of(8 * width.bytes() as u32, count), ..Demand::NONE };
            let bytes = Stock::deal(&demand, &mut prg).1.to_bytes();
            spare = Stock::read(&mut &bytes[..], bytes.len() as u64, spare)?;
            assert!(spare.has_left(&demand));
            let room = spare.products.sent.iter().map(|products| products.rho.bytes.capacity()).sum::<usize>();
            assert!(room <= 2 * 80_000, "{room} bytes");
        }
        Ok(())
    }
}
