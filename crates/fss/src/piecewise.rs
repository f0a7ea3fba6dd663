//! A public function made of lines, exactly, in four rounds: spline gates (Boyle and others, EUROCRYPT 2021) by a unit vector of shared bits,
//! as SIGMA looks up tables. Beyond the table the function saturates or rises.
//!
//! Signed `x` of `n` bits is `i 2^f + d`, `d < 2^f`; lines are those of [`privet_ring::Lines`], `2^k` of them. The parties open
//! `x^ = x + r` modulo 2^n, and behind hidden bits what its digits compare to ([`crate::digits`]). With `c = [low(x^) < low(r)]`, which they
//! then have modulo 2^k ([`crate::ring_products`]), `i = high(x^) - high(r) - c`. Modulo 2^k that is the line, if `x` is in the table. They
//! open it behind a mask `q`. Of `q` the dealer shares the unit vector: as a table that is used once, or as a point function where a table would
//! have more than [`TABLE_BITS`] bits for its number ([`point`]).
//!
//! Whether `x` is in the table, or above it, follows from what is left of `i`: `t = top(x^) - top(r) - b`, where `b` is the borrow of
//! all digits below, opened behind a bit. The top is two digits. Tables say for either `b` whether each of them is equal, so `t` is 0, and for
//! either borrow of the lower one whether what the higher one leaves is negative. Both are opened behind bits, with what follows.
//!
//! Sums over the unit vector are shares of `s A` and `s B`, the line's slope and its value at 0 less the one below the table, with a sign `s`
//! that the dealer alone knows. How many bits a party adds up is a share of `s` itself. In the table and above it `x` is not negative: so it
//! is `z = x^ - r + 2^n (1 - t^) t` in any wider ring, with the top bits `t^` and `t` of `x^` and `r`, as in [`crate::Relu`]. The parties open
//! `a = s A + alpha` and, as `x^` is known by then, `e = s (A x^ + B) + beta`. The value `A z + B` is `s e - s beta - (s a - s alpha) (x^ - z)`,
//! linear in shares of `s` and of four secrets. There are two sets of these: those of `v` times `s` and of `(1 - v)` times `s`, where `v` is
//! the bit that hides whether `x` is in the table.
//!
//! Where no argument is below the table, what is not in it is above. There nobody asks about the sign, and values count from the one above.

use std::io::Write;

use privet_prg::paths::GROUP;
use privet_prg::{Block, KEYS_A_PART, Seed, TreeHashes, Wiped};
use privet_ring::{Bits, Lines, Modulus};
use rayon::prelude::*;
use zeroize::Zeroizing;

use crate::compared::{
    deal_each, deal_products, deal_trees, hashes, ones, product_bytes, pull_product, pull_products, word_bytes,
};
use crate::digits::{Digits, PART, Query, add_columns, all, columns, less, parts, products_of_sets, sets, to_bytes};
use crate::ring_products::RingProducts;
use crate::source::{Region, Within};
use crate::streams::Streams;
use crate::{Error, Gate, KeyBytes, Party, Role, Seeds, Source, point, secrets};

/// The most bits of a line's number for which its unit vector is a table.
const TABLE_BITS: u32 = 9;

/// Columns that are opened of both digits of the top, the lower one first: whether it is equal, and with a borrow.
const EQUAL_COLUMNS: usize = 4;

/// Those of the sign: whether the lower digit is less; whether what the higher one leaves is not negative, and what a borrow changes about
/// that.
const SIGN_COLUMNS: usize = 3;

/// Digits that the question about the sign of the top has: the borrow of all below, and both digits.
const ASKED: usize = 3;

/// Bits of which all are set where the top is 0: both digits are equal, with or without a borrow.
const EQUAL: usize = 3;

/// What a function by lines does above its table of `2^f` arguments a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Above {
    /// It is constant.
    Constant,
    /// It is constant, and no argument is below the table.
    OnlyConstant,
    /// It rises by `2^f` an argument.
    Rising,
    /// The same from a value that is a multiple of `2^f`, less the one below the table.
    RisingWhole,
}

impl Above {
    /// Whether it rises.
    pub fn rises(self) -> bool {
        matches!(self, Self::Rising | Self::RisingWhole)
    }

    /// Whether an argument may be on either side of the table.
    fn has_sides(self) -> bool {
        self != Self::OnlyConstant
    }
}

/// Lines over signed numbers of Z_2^n, into Z_2^m.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piecewise {
    input: Modulus,
    step_bits: u32,
    index_bits: u32,
    above: Above,
    output: Modulus,
}

impl Piecewise {
    /// Most bits of a number above those of the table.
    pub const MOST_ABOVE: u32 = 14;

    /// `2^index_bits` lines over `2^step_bits` arguments each, of numbers of `bits` bits, into the ring of `wide` bits.
    ///
    /// # Panics
    /// Unless `1 <= step_bits < wide <= 64` and `6 <= index_bits <= 12`, and a number has from 2 to [`Self::MOST_ABOVE`] bits more than the
    /// table takes.
    pub fn new(bits: u32, [step_bits, index_bits]: [u32; 2], above: Above, wide: u32) -> Self {
        assert!((1..wide).contains(&step_bits) && (6..=12).contains(&index_bits), "a table of lines in the ring");
        let top = bits.checked_sub(step_bits + index_bits);
        assert!(top.is_some_and(|top| (2..=Self::MOST_ABOVE).contains(&top)), "some bits above the table");
        Self { input: Modulus::new(bits), step_bits, index_bits, above, output: Modulus::new(wide) }
    }

    /// Shares of the lines' value at `x`; `x`: this party's shares. Four rounds.
    ///
    /// # Panics
    /// Unless there are as many lines as the gate has, and they go on above as it says.
    pub fn evaluate(
        self,
        party: &mut Party<'_>,
        seed: &Seed,
        body: &mut dyn Source,
        x: &[u64],
        lines: &Lines,
    ) -> Result<Vec<u64>, Error> {
        let (count, role, output, digits) = (x.len(), party.role, self.output, self.digits());
        let (slope_above, offset_above) = (lines.above()[0], lines.above()[1]);
        assert_eq!(
            (lines.count(), slope_above != 0),
            (1 << self.index_bits, self.above.rises()),
            "the lines of the gate"
        );
        let is_whole = offset_above.is_multiple_of(1 << self.step_bits);
        assert!(is_whole || self.above != Above::RisingWhole, "a multiple of what an argument counts");
        let (mut streams, mut parts) = (Streams::new(role, seed), Vec::new());
        let masks = Wiped::from(streams.masks(count, self.input));
        let mut opened = self.input.add(x, &masks);
        let reply = party.channel.exchange(&self.input.pack(&opened))?;
        self.input.add_packed(&mut opened, &reply)?;

        let hashes = if self.has_tree() { Some(hashes(body)?) } else { None };
        let (trees, alone) = (self.tree_bytes(count), if role == Role::Server { self.alone_bytes(count) } else { 0 });
        let region = body.region(trees + alone)?;
        let mut alone = Within::new(region.behind(trees));
        let flips: Vec<Bits> = (0..self.columns()).map(|_| streams.flips(count)).collect();
        parts.extend(streams.part_streams(self::parts(count)));
        let mut columns = self.compare(&digits, role, &opened, &mut parts, &mut alone)?;
        columns.iter_mut().zip(&flips).for_each(|(column, flips)| column.xor_assign(flips));
        let reply = party.channel.exchange(&to_bytes(&columns))?;
        add_columns(&mut columns, &reply, count)?;

        let below = columns.len() - self.top_columns();
        let (index, one) = (self.index(), ones(role, count));
        let monomials = pull_products(role, &flips[..below], &mut streams, &mut alone)?;
        let hides_borrow = streams.flips(count);
        let mut borrow = less(&columns[..below], &one, &monomials).xor(&hides_borrow);
        let products = self.ring_products();
        let shares = if role == Role::Server { Some(alone.region(products.bytes(count))?) } else { None };
        let borrows = products.sum(role, &columns[..self::columns(products.digits)], &mut parts, shares)?;
        // What hides the line's number is what is left of the mask and this.
        let mut numbers = streams.masks(count, index);
        for ((number, borrow), opened) in numbers.iter_mut().zip(borrows).zip(&opened) {
            *number = index.reduce(role.public(opened >> self.step_bits).wrapping_sub(*number).wrapping_sub(borrow));
        }
        let message = [index.pack(&numbers), borrow.to_bytes()].concat();
        let reply = party.channel.exchange(&message)?;
        let (number_bytes, bits) = reply.split_at(reply.len().min(index.packed_bytes(count)));
        index.add_packed(&mut numbers, number_bytes)?;
        borrow.xor_assign(&Bits::from_bytes(bits, count)?);

        let (opened_top, top_flips) = (Top::of(&columns[below..], &borrow), Top::of(&flips[below..], &hides_borrow));
        let is_not_negative = match (&opened_top.sign, &top_flips.sign) {
            (Some(opened), Some(flips)) => {
                Some(less(opened, &one, &pull_products(role, flips, &mut streams, &mut alone)?))
            }
            _ => None,
        };
        let mut is_zero = Bits::zeros(count);
        // Without a borrow its bit is clear.
        for (borrows, (opened, flips)) in [false, true].into_iter().zip(opened_top.equal.iter().zip(&top_flips.equal)) {
            let [bit, digits @ ..] = opened;
            let opened = [vec![if borrows { bit.clone() } else { bit.not() }], digits.to_vec()].concat();
            is_zero.xor_assign(&all(&opened, flips, &one, || pull_product(role, count, &mut streams, &mut alone))?);
        }
        let is_above = is_not_negative.map(|bits| bits.xor(&is_zero));
        let mut places: Vec<Bits> = [is_zero].into_iter().chain(is_above).collect();
        places.iter_mut().for_each(|place| place.xor_assign(&streams.flips(count)));
        let raw = match &hashes {
            None => self.look_up(role, &numbers, lines, &mut parts, &mut alone)?,
            Some(hashes) => self.look_up_by_trees(role, &numbers, lines, &mut streams, (hashes, region))?,
        };
        // Values count from the one below the table, or from that above where none is below.
        let base = if self.above.has_sides() { 0 } else { offset_above };
        let [mut slopes, mut values] = [(); 2].map(|()| streams.masks(count, output));
        for ((slope, value), ([a, b, sign], x)) in slopes.iter_mut().zip(&mut values).zip(raw.iter().zip(&opened)) {
            *slope = output.reduce(slope.wrapping_add(*a));
            let at_argument = a.wrapping_mul(*x).wrapping_add(*b).wrapping_sub(base.wrapping_mul(*sign));
            *value = output.reduce(value.wrapping_add(at_argument));
        }
        let message = [output.pack(&slopes), output.pack(&values), to_bytes(&places)].concat();
        let reply = party.channel.exchange(&message)?;
        let (sums, bits) = reply.split_at(reply.len().min(2 * output.packed_bytes(count)));
        let (slope_bytes, value_bytes) = sums.split_at(sums.len().min(output.packed_bytes(count)));
        output.add_packed(&mut slopes, slope_bytes)?;
        output.add_packed(&mut values, value_bytes)?;
        add_columns(&mut places, bits, count)?;

        let (base, set) = (role.public(lines.below().wrapping_add(base)), self.set_len());
        secrets::fold(&self.secret_rings(), count, role, &mut streams, body, |i, secrets| {
            let wraps = if self.input.sign(opened[i]) == 1 { 0 } else { 1_u64.unbounded_shl(self.input.bits()) };
            // What the bit that hides whether it is somewhere makes of what all count, and of what those count that it is set for.
            let chosen = |place: &Bits, of_all: u64, of_bit: u64| {
                if place.get(i) { of_all.wrapping_sub(of_bit) } else { of_bit }
            };
            let (sign, (sets, above)) = (secrets[0], secrets[1..].split_at(2 * set));
            let &[mask, products, ref tops @ ..] =
                sets.chunks(set).nth(places[0].get(i).into()).expect("two sets of secrets")
            else {
                unreachable!("two secrets and more")
            };
            let [top, hidden_top] = [0, 1].map(|at| tops.get(at).map_or(0, |top| top.wrapping_mul(wraps)));
            let sign = chosen(&places[0], raw[i][2], sign);
            let inside = values[i].wrapping_mul(sign).wrapping_sub(slopes[i].wrapping_mul(mask.wrapping_sub(top)));
            let inside = inside.wrapping_add(products).wrapping_sub(hidden_top);

            let above = match *above {
                [] => 0,
                [bit, ref of_mask @ ..] => {
                    let times = chosen(&places[1], role.public(1), bit);
                    let beyond = match *of_mask {
                        [] => 0,
                        [masked, ref wide @ ..] => {
                            let (mask, top) = match *wide {
                                [mask, masked, top] => (mask, chosen(&places[1], top, masked).wrapping_mul(wraps)),
                                _ => (masks[i], 0),
                            };
                            let masked = chosen(&places[1], mask, masked);
                            opened[i].wrapping_mul(times).wrapping_sub(masked).wrapping_add(top)
                        }
                    };
                    slope_above.wrapping_mul(beyond).wrapping_add(offset_above.wrapping_mul(times))
                }
            };
            output.reduce(inside.wrapping_add(above).wrapping_add(base))
        })
    }

    /// This party's shares of what is asked of digits: whether each below the top is less, and equal; then those of the top.
    fn compare(
        self,
        digits: &Digits,
        role: Role,
        opened: &[u64],
        parts: &mut [Streams],
        body: &mut dyn Source,
    ) -> Result<Vec<Bits>, Error> {
        let [low, high] = [digits.count() - 2, digits.count() - 1];
        let (borrow, half) =
            ((1_u64 << (self.step_bits + self.index_bits)).wrapping_neg(), 1 << (self.input.bits() - 1));
        let lower = (0..=low).map(|digit| (digit, 0));
        let queries: Vec<Query> = lower.chain([(low, borrow), (high, 0), (high, borrow), (high, half)]).collect();
        let tables = if role == Role::Server { Some(body.region(digits.table_bytes(opened.len()))?) } else { None };
        let mut columns = digits.ask(opened, &queries, parts, tables)?;
        // Nobody asks whether the lowest digit is equal.
        columns.remove(1);
        let [lower @ .., less_low, equal_low, _, before_low, less, equal, _, before, opposite_less, opposite] =
            &columns[..]
        else {
            unreachable!("two columns for each question")
        };
        let of_equal = [equal_low, before_low, equal, before].map(Bits::clone);
        if !self.above.has_sides() {
            return Ok([lower, &of_equal].concat());
        }
        // It is not negative where the secret digit is behind the opposite one, and not behind this one. Where these follow one another the
        // other way round, all that are not between count.
        let round = Bits::from_lowest(opened.iter().map(|x| 1 - self.input.sign(*x)));
        let not_negative = opposite_less.xor(less).xor(&ones(role, opened.len()).and(&round));
        Ok([lower, &of_equal, &[less_low.clone(), not_negative, equal.xor(opposite)]].concat())
    }

    /// This party's shares of the slope and offset of the line behind each opened number, up to the sign, and of this; from tables that are
    /// used once.
    fn look_up(
        self,
        role: Role,
        numbers: &[u64],
        lines: &Lines,
        parts: &mut [Streams],
        body: &mut dyn Source,
    ) -> Result<Vec<[u64; 3]>, Error> {
        let (words, count) = (self.vector_words(), numbers.len());
        let region = if role == Role::Server { Some(body.region(8 * words * count)?) } else { None };
        let mut evals = vec![[0; 3]; count];
        let chunks = numbers.par_chunks(PART).zip(evals.par_chunks_mut(PART)).zip(parts).enumerate();
        let read = region.as_ref().map_or(0, |_| 8 * words * PART.min(count));
        let room = || (Wiped::from(vec![0; read]), Wiped::from(vec![0; GROUP * words]));
        chunks.try_for_each_init(room, |(buffer, vectors), (part, ((numbers, evals), streams))| {
            let mut bytes = match &region {
                None => &[],
                Some(region) => region.read(8 * words * part * PART, 8 * words * numbers.len(), buffer)?,
            };
            for (numbers, evals) in numbers.chunks(GROUP).zip(evals.chunks_mut(GROUP)) {
                let vectors = &mut vectors[..words * numbers.len()];
                match role {
                    Role::Client => streams.pads(vectors),
                    Role::Server => {
                        let (head, later) = bytes.split_at(8 * vectors.len());
                        let head = head.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word));
                        vectors.iter_mut().zip(head).for_each(|(vector, word)| *vector = word);
                        bytes = later;
                    }
                }
                self.add_up(role, vectors, numbers, lines, evals);
            }
            Ok::<_, Error>(())
        })?;
        Ok(evals)
    }

    /// The same from point functions.
    fn look_up_by_trees(
        self,
        role: Role,
        numbers: &[u64],
        lines: &Lines,
        streams: &mut Streams,
        (hashes, region): (&TreeHashes, Region<'_>),
    ) -> Result<Vec<[u64; 3]>, Error> {
        let (words, key_bytes) = (self.vector_words(), 16 * point::words(self.index_bits));
        let mut roots = Wiped::from(vec![0 as Block; numbers.len()]);
        streams.roots(&mut roots);
        let mut evals = vec![[0; 3]; numbers.len()];
        let chunks = numbers.par_chunks(KEYS_A_PART).zip(evals.par_chunks_mut(KEYS_A_PART));
        let chunks = chunks.zip(roots.par_chunks(KEYS_A_PART)).enumerate();
        let read = key_bytes * KEYS_A_PART.min(numbers.len());
        let room = || (vec![0; read], Wiped::from(vec![0; GROUP * words]));
        chunks.try_for_each_init(room, |(buffer, vectors), (part, ((numbers, evals), roots))| {
            let (hash, first) = (hashes.part(part), part * KEYS_A_PART);
            let keys = region.read(first * key_bytes, roots.len() * key_bytes, buffer)?;
            let groups = roots.chunks(GROUP).zip(keys.chunks(GROUP * key_bytes));
            for (((roots, keys), numbers), evals) in groups.zip(numbers.chunks(GROUP)).zip(evals.chunks_mut(GROUP)) {
                let vectors = &mut vectors[..words * roots.len()];
                point::everywhere(self.index_bits, &hash, roots, keys.as_chunks().0, vectors);
                self.add_up(role, vectors, numbers, lines, evals);
            }
            Ok::<_, Error>(())
        })?;
        Ok(evals)
    }

    /// Of each opened number, at most [`GROUP`] of them, the sums of the lines that the bits of its vector choose, and how many these are.
    fn add_up(self, role: Role, vectors: &[u64], numbers: &[u64], lines: &Lines, evals: &mut [[u64; 3]]) {
        let sums = &mut [[0; 2]; GROUP][..numbers.len()];
        lines.chosen(vectors, numbers, sums);
        for ((vector, &[slope, offset]), evals) in vectors.chunks(self.vector_words()).zip(&*sums).zip(evals) {
            let chosen = vector.iter().map(|word| u64::from(word.count_ones())).sum();
            *evals = [slope, offset, chosen]
                .map(|sum| self.output.reduce(if role == Role::Server { sum.wrapping_neg() } else { sum }));
        }
    }

    /// The dealer's side of [`Self::look_up`]: the server's shares of the unit vectors of `points`, and whether the bit that is set is the
    /// client's.
    fn plant(self, points: &[u64], parts: &mut [Streams], at_client: &mut [bool]) -> Vec<u8> {
        let words = self.vector_words();
        let mut tables = vec![0; 8 * words * points.len()];
        let chunks = tables.par_chunks_mut(8 * words * PART).zip(points.par_chunks(PART));
        chunks.zip(at_client.par_chunks_mut(PART)).zip(parts).for_each(|(((tables, points), at_client), streams)| {
            let mut vectors = Zeroizing::new(vec![0; GROUP * words]);
            let groups = tables.chunks_mut(8 * words * GROUP).zip(points.chunks(GROUP));
            for ((tables, points), at_client) in groups.zip(at_client.chunks_mut(GROUP)) {
                let vectors = &mut vectors[..words * points.len()];
                streams.pads(vectors);
                for (vector, (&point, at_client)) in vectors.chunks_mut(words).zip(points.iter().zip(at_client)) {
                    let word = &mut vector[point as usize / 64];
                    *at_client = *word >> (point % 64) & 1 == 1;
                    *word ^= 1 << (point % 64);
                }
                let out = tables.as_chunks_mut().0.iter_mut();
                out.zip(vectors.iter()).for_each(|(out, word)| *out = word.to_le_bytes());
            }
        });
        tables
    }

    /// Whether unit vectors are point functions.
    fn has_tree(self) -> bool {
        self.index_bits > TABLE_BITS
    }

    /// The ring of a line's number.
    fn index(self) -> Modulus {
        Modulus::new(self.index_bits)
    }

    /// Words of 64 bits for a unit vector.
    fn vector_words(self) -> usize {
        1 << (self.index_bits - 6)
    }

    /// Bits of a number above those of the table.
    fn above_bits(self) -> u32 {
        self.input.bits() - self.step_bits - self.index_bits
    }

    /// The digits of a distance from where a line begins: the cheapest with their products modulo the number of lines.
    fn distance(self) -> Digits {
        let products = |digits: &Digits| RingProducts { digits: digits.count(), ring: self.index(), based: false };
        Digits::cheapest(self.step_bits, |digits| products(digits).count() * self.index_bits as usize)
    }

    /// All digits: of a distance, of a line's number, and what is above.
    fn digits(self) -> Digits {
        let [index, above] = [self.index_bits, self.above_bits()].map(|bits| [bits / 2, bits - bits / 2]);
        Digits::of([self.distance().widths(), &index, &above].concat())
    }

    /// The borrow of a distance modulo the number of lines.
    fn ring_products(self) -> RingProducts {
        RingProducts { digits: self.distance().count(), ring: self.index(), based: false }
    }

    /// Columns that are opened of digits.
    fn columns(self) -> usize {
        columns(self.digits_below()) + self.top_columns()
    }

    fn top_columns(self) -> usize {
        EQUAL_COLUMNS + if self.above.has_sides() { SIGN_COLUMNS } else { 0 }
    }

    /// Bits that tell where an argument is.
    fn places(self) -> usize {
        1 + usize::from(self.above.has_sides())
    }

    /// How many digits are below the top.
    fn digits_below(self) -> usize {
        self.digits().count() - 2
    }

    fn tree_bytes(self, count: usize) -> usize {
        if self.has_tree() { 16 * count * point::words(self.index_bits) } else { 0 }
    }

    /// Bytes that the server has alone, in front of secrets.
    fn alone_bytes(self, count: usize) -> usize {
        let digits = self.digits();
        let products = product_bytes(self.digits_below(), count)
            + if self.above.has_sides() { product_bytes(ASKED, count) } else { 0 }
            + 2 * sets(EQUAL) * count.div_ceil(8);
        let vectors = if self.has_tree() { 0 } else { 8 * self.vector_words() * count };
        digits.table_bytes(count) + products + self.ring_products().bytes(count) + vectors
    }

    /// The rings of secrets of top bits.
    fn tops(self) -> Vec<Modulus> {
        match self.output.bits().saturating_sub(self.input.bits()) {
            0 => Vec::new(),
            wider => vec![Modulus::new(wider); 2],
        }
    }

    /// Secrets of one of both sets.
    fn set_len(self) -> usize {
        2 + self.tops().len()
    }

    /// The rings of secrets of what lies above the table. What rises does so by `2^f` an argument, of which `f` bits less count; parties have
    /// shares of the mask in no wider ring than the input's.
    fn secrets_above(self) -> Vec<Modulus> {
        let counts = Modulus::new(self.output.bits() - self.step_bits);
        let bit = match self.above {
            Above::OnlyConstant => return Vec::new(),
            Above::Constant => return vec![self.output],
            Above::Rising => self.output,
            Above::RisingWhole => counts,
        };
        match counts.bits().saturating_sub(self.input.bits()) {
            0 => vec![bit, counts],
            wider => vec![bit, counts, counts, Modulus::new(wider), Modulus::new(wider)],
        }
    }

    fn secret_rings(self) -> Vec<Modulus> {
        let set = [vec![self.output; 2], self.tops()].concat();
        [vec![self.output], set.clone(), set, self.secrets_above()].concat()
    }
}

/// Columns of the top, by what is asked of them.
struct Top {
    /// Whether it is not negative, if that is asked: a comparison of digits.
    sign: Option<[Bits; 2 * ASKED - 1]>,
    /// Whether there is no borrow, or one, and both digits are equal with that.
    equal: [[Bits; EQUAL]; 2],
}

impl Top {
    fn of(columns: &[Bits], borrow: &Bits) -> Self {
        let [low, before_low, high, before_high, sign @ ..] = columns else {
            unreachable!("the columns of both digits")
        };
        Self {
            sign: match sign {
                [less, sign, changed] => Some([borrow, less, low, sign, changed].map(Bits::clone)),
                _ => None,
            },
            equal: [[borrow, low, high], [borrow, before_low, before_high]].map(|of| of.map(Bits::clone)),
        }
    }
}

impl Gate for Piecewise {
    fn key_bytes(&self, count: usize) -> KeyBytes {
        let words = if self.has_tree() { word_bytes(self.index_bits, count) } else { 0 };
        KeyBytes { words, corrections: self.alone_bytes(count) + secrets::bytes(&self.secret_rings(), count) }
    }

    fn message_bytes(&self, count: usize) -> Vec<usize> {
        let bits = count.div_ceil(8);
        let index = self.index().packed_bytes(count) + bits;
        let lines = 2 * self.output.packed_bytes(count) + self.places() * bits;
        vec![self.input.packed_bytes(count), self.columns() * bits, index, lines]
    }

    fn parts(&self, count: usize) -> usize {
        parts(count)
    }

    fn deal(&self, count: usize, seeds: &Seeds, words: &mut dyn Write) -> Result<Vec<u8>, Error> {
        let [mut client, mut server] = seeds.streams();
        let masks = |ring: Modulus, client: &mut Streams, server: &mut Streams| {
            let [client, server] = [client, server].map(|streams| Zeroizing::new(streams.masks(count, ring)));
            Zeroizing::new(ring.add(&client, &server))
        };
        let flips = |columns: usize, client: &mut Streams, server: &mut Streams| -> Vec<Bits> {
            (0..columns).map(|_| client.flips(count).xor(&server.flips(count))).collect()
        };
        let (index, digits) = (self.index(), self.digits());
        let inputs = masks(self.input, &mut client, &mut server);
        let hidden = flips(self.columns(), &mut client, &mut server);
        let mut parts = client.part_streams(self::parts(count));
        // The server draws as many seeds, of which nothing grows: roots of trees come behind them in both streams.
        let _ = server.parts(self::parts(count));
        let mut corrections = digits.deal(&inputs, &mut parts);

        let below = hidden.len() - self.top_columns();
        corrections.extend(deal_products(&hidden[..below], &mut client));
        let hides_borrow = flips(1, &mut client, &mut server).remove(0);
        let (products, start) = (self.ring_products(), corrections.len());
        corrections.resize(start + products.bytes(count), 0);
        products.deal(&hidden[..columns(products.digits)], &[], &mut parts, &mut corrections[start..]);
        let mut points = masks(index, &mut client, &mut server);
        for (point, mask) in points.iter_mut().zip(inputs.iter()) {
            *point = index.reduce((mask >> self.step_bits).wrapping_sub(*point));
        }
        let top = Top::of(&hidden[below..], &hides_borrow);
        if let Some(sign) = &top.sign {
            corrections.extend(deal_products(sign, &mut client));
        }
        for equal in &top.equal {
            corrections.extend(deal_each(products_of_sets(equal), &mut client));
        }
        let places = flips(self.places(), &mut client, &mut server);
        let mut at_client = Zeroizing::new(vec![false; count]);
        if self.has_tree() {
            deal_trees(&points, [&mut client, &mut server], words, |hashes, roots, at, points| {
                point::plant_points(self.index_bits, hashes, roots, points, &mut at_client[at])
            })?;
        } else {
            corrections.extend(self.plant(&points, &mut parts, &mut at_client));
        }
        let [slopes, values] = [(); 2].map(|()| masks(self.output, &mut client, &mut server));
        let (rings, set) = (self.secret_rings(), self.set_len());
        corrections.extend(secrets::correct(&rings, count, &mut client, |i, out| {
            let (mask, top) = (inputs[i], self.input.sign(inputs[i]));
            // 1 or -1.
            let sign = (u64::from(at_client[i]) << 1).wrapping_sub(1);
            let in_table = u64::from(places[0].get(i));
            let ([first], rest) = out.split_at_mut(1) else { unreachable!("a secret and more") };
            *first = sign.wrapping_mul(in_table);
            let (sets, above) = rest.split_at_mut(2 * set);
            for (set, times) in sets.chunks_mut(set).zip([in_table, 1 - in_table]) {
                let sign = sign.wrapping_mul(times);
                let hidden_slope = sign.wrapping_mul(slopes[i]);
                let products = hidden_slope.wrapping_mul(mask).wrapping_sub(sign.wrapping_mul(values[i]));
                let tops = [sign.wrapping_mul(top), hidden_slope.wrapping_mul(top)];
                let terms = [sign.wrapping_mul(mask), products].into_iter().chain(tops);
                set.iter_mut().zip(terms).for_each(|(out, secret)| *out = secret);
            }
            let bit = places.get(1).map_or(0, |place| u64::from(place.get(i)));
            let terms = [bit, bit.wrapping_mul(mask), mask, bit * top, top];
            above.iter_mut().zip(terms).for_each(|(out, secret)| *out = secret);
        }));
        Ok(corrections)
    }
}
