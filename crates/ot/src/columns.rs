//! Vectors side by side: correlations of one kind are cut, joined, written and read as all of their vectors are.

use std::io::{self, Write};

use privet_ring::Bits;
use zeroize::{Zeroize, Zeroizing};

use crate::Error;
use crate::material::{Reader, write_words};
use crate::packed::Packed;

/// Vectors with an entry for each of some correlations.
pub(crate) trait Columns {
    /// Those of `len` correlations from number `start` on.
    fn cut(&self, start: usize, len: usize) -> Self
    where
        Self: Sized;

    /// Those of `tail` behind these.
    fn join(&mut self, tail: &Self)
    where
        Self: Sized;

    /// Takes all away and keeps the memory, which holds them until it is written over or dropped. If it has more than twice the room
    /// for `count` correlations, it is wiped and given back.
    fn empty(&mut self, count: usize);

    /// Makes room for `count` correlations where there are none. Memory with less is wiped.
    fn make_room(&mut self, count: usize);

    /// Writes those from number `start` on, every vector in the order of the fields: bits packed 8 to a byte, elements little-endian.
    fn write(&self, start: usize, out: &mut dyn Write) -> io::Result<()>;

    /// Reads what [`Columns::write`] wrote of `len` correlations into the memory of these, of which nothing is left.
    fn read(&mut self, reader: &mut Reader<'_>, len: usize) -> Result<(), Error>;
}

impl Columns for Bits {
    fn cut(&self, start: usize, len: usize) -> Self {
        self.slice(start, len)
    }

    fn join(&mut self, tail: &Self) {
        self.extend(tail);
    }

    fn empty(&mut self, count: usize) {
        self.clear_for(count);
    }

    fn make_room(&mut self, count: usize) {
        self.reserve(count);
    }

    fn write(&self, start: usize, out: &mut dyn Write) -> io::Result<()> {
        let len = self.len() - start;
        match start % 64 {
            0 => write_words(&self.words()[start / 64..], len.div_ceil(8), out),
            _ => Zeroizing::new(self.slice(start, len)).write(0, out),
        }
    }

    fn read(&mut self, reader: &mut Reader<'_>, len: usize) -> Result<(), Error> {
        *self = reader.bits(len, std::mem::take(self))?;
        Ok(())
    }
}

impl Columns for Packed {
    fn cut(&self, start: usize, len: usize) -> Self {
        self.all().slice(start..start + len).copied()
    }

    fn join(&mut self, tail: &Self) {
        self.grow(tail.len()).copy_from_slice(&tail.bytes);
    }

    fn empty(&mut self, count: usize) {
        if self.bytes.capacity() / 2 > count * self.width().bytes() {
            self.zeroize();
        }
        self.bytes.clear();
    }

    fn make_room(&mut self, count: usize) {
        if self.bytes.capacity() < count * self.width().bytes() {
            self.zeroize();
            self.bytes = Vec::with_capacity(count * self.width().bytes());
        }
    }

    fn write(&self, start: usize, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(&self.bytes[start * self.width().bytes()..])
    }

    fn read(&mut self, reader: &mut Reader<'_>, len: usize) -> Result<(), Error> {
        reader.elements(len, self)
    }
}

/// What is done to each of several columns. The closure says how the cut ones are put together.
macro_rules! each_column {
    ([$($length:tt)*], $type:ty, |$columns:ident, $cut:ident| $map:expr) => {
        impl $($length)* Columns for $type {
            fn cut(&self, start: usize, len: usize) -> Self {
                let ($columns, $cut) = (self, |column: &Bits| column.cut(start, len));
                $map
            }

            fn join(&mut self, tail: &Self) {
                self.iter_mut().zip(tail).for_each(|(column, other)| column.join(other));
            }

            fn empty(&mut self, count: usize) {
                self.iter_mut().for_each(|column| column.empty(count));
            }

            fn make_room(&mut self, count: usize) {
                self.iter_mut().for_each(|column| column.make_room(count));
            }

            fn write(&self, start: usize, out: &mut dyn Write) -> io::Result<()> {
                self.iter().try_for_each(|column| column.write(start, out))
            }

            fn read(&mut self, reader: &mut Reader<'_>, len: usize) -> Result<(), Error> {
                self.iter_mut().try_for_each(|column| column.read(reader, len))
            }
        }
    };
}

each_column!([], Vec<Bits>, |columns, cut| columns.iter().map(cut).collect());
each_column!([<const N: usize>], [Bits; N], |columns, cut| columns.each_ref().map(cut));

/// Correlations of these vectors.
macro_rules! columns {
    ($($type:ident { $($column:ident),+ })+) => {$(
        impl $crate::columns::Columns for $type {
            fn cut(&self, start: usize, len: usize) -> Self {
                Self { $($column: self.$column.cut(start, len)),+ }
            }

            fn join(&mut self, tail: &Self) {
                $(self.$column.join(&tail.$column);)+
            }

            fn empty(&mut self, count: usize) {
                $($crate::columns::Columns::empty(&mut self.$column, count);)+
            }

            fn make_room(&mut self, count: usize) {
                $($crate::columns::Columns::make_room(&mut self.$column, count);)+
            }

            fn write(&self, start: usize, out: &mut dyn std::io::Write) -> std::io::Result<()> {
                $(self.$column.write(start, out)?;)+
                Ok(())
            }

            fn read(&mut self, reader: &mut $crate::material::Reader<'_>, len: usize) -> Result<(), $crate::Error> {
                $(self.$column.read(reader, len)?;)+
                Ok(())
            }
        }
    )+};
}

pub(crate) use columns;

#[cfg(test)]
mod tests {
    use zeroize::{Zeroize, ZeroizeOnDrop};

    use super::*;
    use crate::*;

    /// That a party's secrets are wiped where it lets them go: whether they were cut from a stock or never came to be part of one.
    fn wiped<T: ZeroizeOnDrop + Zeroize + Clone>(mut secrets: T, length: impl Fn(&T) -> usize) {
        assert_ne!(length(&secrets), 0);
        secrets.zeroize();
        assert_eq!(length(&secrets), 0);
    }

    #[test]
    fn all_that_transfers_give_is_wiped_on_drop() {
        let (bits, words) = (Bits::from_bools(&[true; 70]), Packed::of(Width::of(20), &[7; 70]));
        let (planes, both) = (vec![bits.clone(); 3], [bits.clone(), bits.clone()]);
        let (r0, r1) = (bits.clone(), bits.clone());
        wiped(BitsSent { r0, r1 }, |secrets| secrets.r0.len() + secrets.r1.len());
        let (choice, received) = (bits.clone(), bits.clone());
        wiped(BitsReceived { choice, received }, |secrets| secrets.choice.len() + secrets.received.len());
        let pairs = PairsSent { r0: both.clone(), r1: both.clone() };
        wiped(pairs, |secrets| secrets.r0.iter().chain(&secrets.r1).map(Bits::len).sum());
        let pairs = PairsReceived { choice: bits.clone(), received: both.clone() };
        wiped(pairs, |secrets| secrets.choice.len() + secrets.received[0].len() + secrets.received[1].len());
        wiped(ProductsSent { rho: words.clone(), share: words.clone() }, |secrets| {
            secrets.rho.len() + secrets.share.len()
        });
        let received = ProductsReceived { choice: bits.clone(), share: words };
        wiped(received, |secrets| secrets.choice.len() + secrets.share.len());
        let triples = Triples { a: bits.clone(), b: bits.clone(), c: bits.clone() };
        wiped(triples, |secrets| secrets.a.len() + secrets.b.len() + secrets.c.len());
        let pairs = PairedTriples { a: bits, b: both.clone(), c: both };
        wiped(pairs, |secrets| secrets.b.iter().chain(&secrets.c).fold(secrets.a.len(), |sum, bits| sum + bits.len()));
        wiped(TablesSent { entries: planes.clone() }, |secrets| secrets.entries.len());
        let tables = TablesReceived { choice: planes.clone(), received: planes.clone() };
        wiped(tables, |secrets| secrets.choice.len() + secrets.received.len());
        wiped(OneHots { number: planes.clone(), entries: planes }, |secrets| {
            secrets.number.len() + secrets.entries.len()
        });
    }
}
