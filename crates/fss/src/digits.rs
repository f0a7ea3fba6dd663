//! Comparisons of a public number with one that the dealer knows, digit by digit, by tables that are used once.
//!
//! For each digit the dealer shares the unit vector of the secret number's digit by exclusive or. The bit at the public number's digit is
//! a share of whether both are equal, and the bits behind it add up to a share of whether the public one is less. Once these are opened,
//! each behind a bit that only the dealer knows, `[public < secret]` is
//!
//! `l_m + e_m (l_(m-1) + e_(m-1) (l_(m-2) + ...))`,
//!
//! with `l` for less and `e` for equal from the highest digit down, of which no two terms are 1 at once. So it is linear in products of
//! hidden bits ([`monomials`]). [`crate::ring_products`] has these in a ring, [`less`] as bits: there a share of a hidden bit itself is what
//! the party draws anyway, and the dealer sends shares of products of two and more ([`products`]).

use privet_prg::Wiped;
use privet_ring::digit::{self, Digit};
use privet_ring::{Bits, Modulus};
use rayon::prelude::*;
use zeroize::Zeroizing;

use crate::source::Region;
use crate::streams::Streams;
use crate::{Error, Role, Source};

/// Elements whose tables come from one stream, and are worked on by one thread. A multiple of 64, so that each part of a packed column
/// starts on a byte.
pub(crate) const PART: usize = 4096;

/// Parts that a thread takes at once: for fewer, asking another thread takes longer than the work.
const PARTS_A_JOB: usize = 4;

/// The widest digit: a table of 128 bits.
const DIGIT_BITS: u32 = 7;

/// A question about one digit: which it is, and what is added to the public number before its digit is compared.
pub(crate) type Query = (usize, u64);

/// Into which digits numbers are cut, and where their tables lie in the words of an element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Digits {
    /// Widths, the lowest digit first.
    widths: Vec<u32>,
    /// The first bit of each table.
    offsets: Vec<u32>,
    /// Bits of an element's tables.
    bits: usize,
}

impl Digits {
    /// The cheapest for numbers of `bits` bits, in bits of the key and of messages; `secrets`: bits of the key beside the tables.
    pub(crate) fn cheapest(bits: u32, secrets: impl Fn(&Self) -> usize) -> Self {
        let cost = |digits: &Self| 8 * digits.table_bytes(1) + secrets(digits) + 2 * columns(digits.count());
        let least = bits.div_ceil(DIGIT_BITS);
        (least..=bits.min(least + 2)).map(|count| Self::even(bits, count)).min_by_key(cost).expect("a bit to compare")
    }

    /// `count` digits of nearly the same width, the highest the widest.
    fn even(bits: u32, count: u32) -> Self {
        Self::of((0..count).rev().map(|digit| bits / count + u32::from(digit < bits % count)).collect())
    }

    /// Digits of these widths, at most [`DIGIT_BITS`] each, the lowest digit first.
    pub(crate) fn of(widths: Vec<u32>) -> Self {
        // The widest come first, so that no table lies in two words that would fit one.
        let mut order: Vec<usize> = (0..widths.len()).rev().collect();
        order.sort_by_key(|&digit| std::cmp::Reverse(widths[digit]));
        let (mut offsets, mut end) = (vec![0; widths.len()], 0);
        for digit in order {
            offsets[digit] = end;
            end += 1 << widths[digit];
        }
        Self { widths, offsets, bits: end as usize }
    }

    pub(crate) fn count(&self) -> usize {
        self.widths.len()
    }

    /// Widths, the lowest digit first.
    pub(crate) fn widths(&self) -> &[u32] {
        &self.widths
    }

    /// Words of 64 bits for an element's tables.
    fn words(&self) -> usize {
        self.bits.div_ceil(64)
    }

    /// The rings of these words in a key: of the last one no more bytes than it takes.
    fn rings(&self) -> impl Iterator<Item = Modulus> {
        let bits = 8 * self.table_bytes(1) as u32;
        (0..bits).step_by(64).map(move |first| Modulus::new((bits - first).min(64)))
    }

    /// Bytes of the tables of `count` elements.
    pub(crate) fn table_bytes(&self, count: usize) -> usize {
        self.bits.div_ceil(8) * count
    }

    /// The bit of each digit of `point` in the tables.
    fn places(&self, mut point: u64) -> impl Iterator<Item = usize> {
        self.widths.iter().zip(&self.offsets).map(move |(&width, &offset)| {
            let digit = point as u32 & ((1 << width) - 1);
            point >>= width;
            (offset + digit) as usize
        })
    }

    /// The dealer's side: the server's shares of the tables of `points`, of which the client's come from `parts`.
    pub(crate) fn deal(&self, points: &[u64], parts: &mut [Streams]) -> Vec<u8> {
        let mut tables = vec![0; self.table_bytes(points.len())];
        let of_parts = tables.par_chunks_mut(self.table_bytes(PART)).zip(points.par_chunks(PART)).zip(parts);
        of_parts.for_each(|((tables, points), streams)| self.plant(points.iter().copied(), streams, tables));
        tables
    }

    /// The same for a part; `streams`: what the client's share comes from.
    fn plant(&self, points: impl ExactSizeIterator<Item = u64>, streams: &mut Streams, tables: &mut [u8]) {
        let len = points.len();
        let mut words = Wiped::from(vec![0; self.words() * len]);
        streams.pads(&mut words);
        for (i, point) in points.enumerate() {
            for bit in self.places(point) {
                words[bit / 64 * len + i] ^= 1 << (bit % 64);
            }
        }
        let mut rest = tables;
        for (ring, words) in self.rings().zip(words.chunks_exact_mut(len)) {
            let (out, later) = rest.split_at_mut(ring.packed_bytes(len));
            ring.reduce_all(words);
            ring.pack_into(out, words);
            rest = later;
        }
    }

    /// This party's shares of whether each digit of each of `points` is less, and equal: [`columns`] of them, that of the lowest digit
    /// first, then two for each. `parts`: what the client's tables come from; the server reads its own from `body`.
    pub(crate) fn look_up(
        &self,
        points: &[u64],
        role: Role,
        parts: &mut [Streams],
        body: &mut dyn Source,
    ) -> Result<Vec<Bits>, Error> {
        let region = match role {
            Role::Client => None,
            Role::Server => Some(body.region(self.table_bytes(points.len()))?),
        };
        let queries: Vec<Query> = (0..self.count()).map(|digit| (digit, 0)).collect();
        let mut columns = self.ask(points, &queries, parts, region)?;
        // Nobody asks whether the lowest digit is equal.
        columns.remove(1);
        Ok(columns)
    }

    /// This party's shares of whether each digit that is asked for is less, and equal: two for each of `queries`. `tables`: the server's.
    pub(crate) fn ask(
        &self,
        points: &[u64],
        queries: &[Query],
        parts: &mut [Streams],
        tables: Option<Region<'_>>,
    ) -> Result<Vec<Bits>, Error> {
        let columns = 2 * queries.len();
        // Of each part, column by column.
        let mut compared = vec![0; columns * points.len().div_ceil(64)];
        let chunks = compared.par_chunks_mut(columns * (PART / 64)).zip(points.par_chunks(PART)).zip(parts);
        let chunks = chunks.enumerate().with_min_len(PARTS_A_JOB);
        let most = PART.min(points.len());
        let read = tables.as_ref().map_or(0, |_| self.table_bytes(most));
        let room = || (Wiped::from(vec![0; read]), Wiped::from(vec![0; self.words() * most]));
        chunks.try_for_each_init(room, |(buffer, words), (part, ((compared, points), streams))| {
            let len = points.len();
            let words = &mut words[..self.words() * len];
            match &tables {
                None => streams.pads(words),
                Some(region) => {
                    let mut rest = region.read(part * self.table_bytes(PART), self.table_bytes(len), buffer)?;
                    for (ring, words) in self.rings().zip(words.chunks_exact_mut(len)) {
                        let (bytes, later) = rest.split_at(ring.packed_bytes(len));
                        ring.unpack_into(words, bytes);
                        rest = later;
                    }
                }
            }
            self.find(points, queries, words, compared);
            Ok::<_, Error>(())
        })?;
        let column = |column: usize| {
            let parts = compared.chunks(columns * (PART / 64));
            let words = parts.flat_map(|part| &part[column * part.len() / columns..][..part.len() / columns]);
            Ok(Bits::from_words(words.copied().collect(), points.len())?)
        };
        (0..columns).map(column).collect()
    }

    /// The same for one part; `words`: its tables, word by word.
    fn find(&self, points: &[u64], queries: &[Query], words: &[u64], compared: &mut [u64]) {
        let word = |at: u32| &words[at as usize * points.len()..][..points.len()];
        let mut columns = compared.chunks_exact_mut(points.len().div_ceil(64));
        let mut shifted_points = Vec::new();
        for &(index, added) in queries {
            let (bits, offset) = (self.widths[index], self.offsets[index]);
            let low = self.widths[..index].iter().sum();
            let points = if added == 0 {
                points
            } else {
                shifted_points.clear();
                shifted_points.extend(points.iter().map(|point| point.wrapping_add(added)));
                &shifted_points
            };
            let tables = [word(offset / 64), if bits == DIGIT_BITS { word(offset / 64 + 1) } else { &[] }];
            let [less, equal] = [(); 2].map(|()| columns.next().expect("two columns for each question"));
            digit::compare(points, Digit { low, bits, offset: offset % 64 }, tables, [less, equal]);
        }
    }
}

/// Seeds that a batch draws for its parts.
pub(crate) fn parts(count: usize) -> usize {
    count.div_ceil(PART)
}

/// Bits that are opened for an element with this many digits.
pub(crate) fn columns(digits: usize) -> usize {
    2 * digits - 1
}

/// Products of hidden bits for this many digits, those of one bit among them.
pub(crate) fn monomials(digits: usize) -> usize {
    (3 << (digits - 1)) - 2
}

/// Products of two hidden bits or more.
pub(crate) fn products(digits: usize) -> usize {
    monomials(digits) - columns(digits)
}

/// Of each monomial for this many columns the column that it is, if it is one alone.
fn single(columns: usize) -> Vec<Option<usize>> {
    fn of(columns: usize, alone: bool, out: &mut Vec<Option<usize>>) {
        let column = |column| alone.then_some(column);
        if columns == 1 {
            return out.push(column(0));
        }
        out.extend([columns - 2, columns - 1].map(column));
        of(columns - 2, alone, out);
        of(columns - 2, false, out);
    }
    let mut out = Vec::new();
    of(columns, true, &mut out);
    out
}

/// The products of two hidden bits or more, of which the dealer shares each.
pub(crate) fn dealt(hidden: &[Bits]) -> impl Iterator<Item = Bits> {
    let monomials = single(hidden.len()).into_iter().zip(multiply(hidden));
    monomials.filter_map(|(single, product)| single.is_none().then_some(product))
}

/// This party's shares of all monomials, from its part of each hidden bit and its shares of products.
pub(crate) fn with_single<E>(
    flips: &[Bits],
    mut products: impl FnMut() -> Result<Bits, E>,
) -> Result<Zeroizing<Vec<Bits>>, E> {
    let share = |single: Option<usize>| single.map_or_else(&mut products, |column| Ok(flips[column].clone()));
    single(flips.len()).into_iter().map(share).collect::<Result<_, _>>().map(Zeroizing::new)
}

/// Columns as a message.
pub(crate) fn to_bytes(columns: &[Bits]) -> Vec<u8> {
    columns.iter().map(Bits::to_bytes).collect::<Vec<_>>().concat()
}

/// Adds the other party's columns of `count` bits to this one's. Fails with [`Error::PeerMisbehaved`] if they have
/// another length.
pub(crate) fn add_columns(columns: &mut [Bits], message: &[u8], count: usize) -> Result<(), Error> {
    let (bytes, mut rest) = (count.div_ceil(8), message);
    for column in columns {
        let (message, later) = rest.split_at(bytes.min(rest.len()));
        column.xor_assign(&Bits::from_bytes(message, count)?);
        rest = later;
    }
    Bits::from_bytes(rest, 0)?;
    Ok(())
}

/// All monomials of the hidden bits: of the highest digit those for less and equal, then those of lower digits, then the same times
/// equal. `hidden`: columns, as they are opened.
pub(crate) fn multiply(hidden: &[Bits]) -> Vec<Bits> {
    fn times(hidden: &[Bits], one: Option<&Bits>, out: &mut Vec<Bits>) {
        let one_times = |bits: &Bits| one.map_or_else(|| bits.clone(), |one| one.and(bits));
        let [lower @ .., less, equal] = hidden else {
            return out.push(one_times(&hidden[0]));
        };
        let equal = one_times(equal);
        out.extend([one_times(less), equal.clone()]);
        times(lower, one, out);
        times(lower, Some(&equal), out);
    }
    let mut out = Vec::with_capacity(monomials(hidden.len().div_ceil(2)));
    times(hidden, None, &mut out);
    out
}

/// This party's share of whether each public number is less than the secret one, times what `one` is a share of: from opened columns and
/// shares of the monomials times that.
pub(crate) fn less(opened: &[Bits], one: &Bits, monomials: &[Bits]) -> Bits {
    let unmask = |opened: &Bits, plain: &Bits, hidden: &Bits| opened.and(plain).xor(hidden);
    let [lower @ .., less, equal] = opened else {
        return unmask(&opened[0], one, &monomials[0]);
    };
    let (plain, times) = monomials[2..].split_at(self::monomials(lower.len().div_ceil(2)));
    let hidden = self::less(lower, &monomials[1], times);
    let below = unmask(equal, &self::less(lower, one, plain), &hidden);
    unmask(less, one, &monomials[0]).xor(&below)
}

/// The products of all hidden bits of each set of two and more, the sets in the order of [`all`].
pub(crate) fn products_of_sets(hidden: &[Bits]) -> impl Iterator<Item = Bits> {
    let sets = (1..1_usize << hidden.len()).filter(|set| set.count_ones() > 1);
    sets.map(|set| {
        let members = (0..hidden.len()).filter(|at| set >> at & 1 == 1).map(|at| hidden[at].clone());
        members.reduce(|product, bit| product.and(&bit)).expect("sets have members")
    })
}

/// Products that [`products_of_sets`] makes of so many bits.
pub(crate) fn sets(bits: usize) -> usize {
    (1 << bits) - 1 - bits
}

/// This party's share of whether all bits are set: from opened columns, its parts of the bits that hide them, and its shares of the products
/// of each set of these. `one`: a share of 1.
pub(crate) fn all<E>(
    opened: &[Bits],
    flips: &[Bits],
    one: &Bits,
    mut products: impl FnMut() -> Result<Bits, E>,
) -> Result<Bits, E> {
    // What is opened is the bit and what hides it: so their product is a sum over sets, of hidden bits in the set and opened ones beside it.
    (0..1_usize << opened.len()).try_fold(Bits::zeros(one.len()), |sum, set| {
        let hidden = match set.count_ones() {
            0 => one.clone(),
            1 => flips[set.trailing_zeros() as usize].clone(),
            _ => products()?,
        };
        let beside = (0..opened.len()).filter(|at| set >> at & 1 == 0);
        Ok(sum.xor(&beside.fold(hidden, |product, at| product.and(&opened[at]))))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_of_another_length_are_refused() {
        let (count, columns) = (12, vec![Bits::zeros(12); 3]);
        for length in 0..=12 {
            let added = add_columns(&mut columns.clone(), &vec![0; length], count);
            assert_eq!(added.is_ok(), length == 6, "{length} bytes");
            assert!(added.is_ok() || matches!(added, Err(Error::PeerMisbehaved(_))));
        }
    }

    #[test]
    fn tables_do_not_overlap() {
        for (bits, factor) in (1..64).flat_map(|bits| [(bits, 1), (bits, 64)]) {
            let digits = Digits::cheapest(bits, |digits| factor * products(digits.count()));
            assert_eq!(digits.widths.iter().sum::<u32>(), bits);
            assert!(digits.widths.iter().all(|&width| (1..=DIGIT_BITS).contains(&width)));
            let mut is_used = vec![false; 64 * digits.words()];
            for (&width, &offset) in digits.widths.iter().zip(&digits.offsets) {
                assert_eq!(offset % (1 << width), 0, "a table of {width} bits from {offset} on");
                for bit in &mut is_used[offset as usize..][..1 << width] {
                    assert!(!std::mem::replace(bit, true));
                }
            }
        }
    }

    #[test]
    fn the_comparison_is_right_for_every_pair_of_digits_and_every_hidden_bit() {
        for digits in 1..=4 {
            // Every pair of numbers with digits of one bit, behind every choice of hidden bits; one element each.
            let elements: Vec<(u64, u64)> = (0..1 << (2 * digits))
                .flat_map(|pair| (0..1 << columns(digits)).map(move |flip| (pair, flip)))
                .collect();
            let column = |bit: &dyn Fn(u64, u64) -> bool| {
                Bits::from_bools(&elements.iter().map(|&(pair, flip)| bit(pair, flip)).collect::<Vec<_>>())
            };
            let split = |pair: u64| (pair & ((1 << digits) - 1), pair >> digits);
            let flips: Vec<Bits> = (0..columns(digits)).map(|at| column(&|_, flip| flip >> at & 1 == 1)).collect();
            let opened: Vec<Bits> = (0..columns(digits))
                .map(|at| {
                    let digit = at.div_ceil(2);
                    column(&|pair, flip| {
                        let (public, secret) = split(pair);
                        let [p, s] = [public, secret].map(|x| x >> digit & 1);
                        (if at == 0 || at % 2 == 1 { p < s } else { p == s }) ^ (flip >> at & 1 == 1)
                    })
                })
                .collect();
            let products = multiply(&flips);
            assert_eq!(products.len(), monomials(digits));
            assert_eq!(dealt(&flips).count(), self::products(digits));
            let mut many = dealt(&flips);
            let again = with_single(&flips, || many.next().ok_or(())).expect("enough products");
            assert_eq!(*again, products);
            let expected = column(&|pair, _| split(pair).0 < split(pair).1);
            assert_eq!(less(&opened, &Bits::zeros(elements.len()).not(), &products), expected);
        }
    }
}
