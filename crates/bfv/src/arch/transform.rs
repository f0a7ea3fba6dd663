//! The negacyclic transform on vectors of 512 bits with 52-bit multiplications (IFMA), modulo primes below 2^50.
//!
//! Butterflies are those of Cooley and Tukey on the way there and of Gentleman and Sande on the way back, in the order of Longa and Naehrig
//! (CANS 2016). A product with a twiddle factor, by its precomputed quotient (Shoup), is left below `2p`. Eight vectors, at eight places of
//! equal distance, go through three levels in registers. Places within a vector meet once blocks of 64 values are transposed.
//!
//! Below 2^46, values grow from level to level and are reduced at the end (there), or where one is the sum of eight (back). Primes from
//! there on have every sum reduced. Multiplications take the lowest 52 bits of what they are given, so those above them are of no account
//! until values are compared.

use std::arch::x86_64::__m512i;
use std::array::from_fn;

use pulp::cast;

use super::{LANES, Montgomery};

pulp::simd_type! {
    /// The instructions that this takes, on a processor that has them.
    struct Ifma {
        avx512f: "avx512f",
        avx512ifma: "avx512ifma",
    }
}

/// Primes below let values grow.
const NARROW: u64 = 1 << 46;

/// Values that are transposed at once.
const SQUARE: usize = LANES * LANES;

/// A vector in memory.
type Lanes = [u64; LANES];

/// Twiddle factors of butterflies: `w`, and `2^52 w / p` rounded down.
#[derive(Clone, Copy, Debug)]
struct Factors<T, const N: usize> {
    values: [T; N],
    quotients: [T; N],
}

/// Those of eight vectors on their way through three levels: one, two and four.
type Octet<T> = Factors<T, 7>;

/// The powers of a root that a direction takes.
#[derive(Clone, Debug)]
struct Direction {
    /// Levels that are no part of an octet, one factor for each block: the longest one or two.
    single: Vec<Factors<u64, 1>>,
    /// Then octets whose factors hold for whole vectors, from the longest blocks on.
    broadcast: Vec<Octet<u64>>,
    /// Then octets within transposed vectors.
    lanes: Vec<Octet<Lanes>>,
}

/// What transforms of a degree modulo a prime take.
#[derive(Clone, Debug)]
pub(crate) struct Transform {
    simd: Ifma,
    montgomery: Montgomery,
    degree: usize,
    forward: Direction,
    inverse: Direction,
    /// `1 / N`.
    scale: Factors<u64, 1>,
}

/// Instructions and constants. Primes are `WIDE` from [`NARROW`] on.
#[derive(Clone, Copy)]
struct Context<const WIDE: bool> {
    simd: Ifma,
    zero: __m512i,
    prime: __m512i,
    twice: __m512i,
    /// `2^52 - p`.
    opposite: __m512i,
    /// `2^52 - 1`.
    mask: __m512i,
    /// `floor(2^52 / p)`.
    reciprocal: __m512i,
    /// What is added to the differences of the three levels of an octet on its way back: a multiple of the prime that is no less than what is
    /// taken away.
    lift: [__m512i; 3],
}

impl Transform {
    /// For powers of two from 64 on and the powers `1, w, w^2, ...` of a root of order `2N`, if the processor has what this takes.
    pub(crate) fn new(montgomery: Montgomery, powers: &[u64]) -> Option<Self> {
        let (simd, degree, prime) = (Ifma::try_new()?, powers.len(), montgomery.prime);
        if degree < SQUARE || !degree.is_power_of_two() {
            return None;
        }
        let reversed = |i: usize| i.reverse_bits() >> (usize::BITS - degree.trailing_zeros());
        // The inverse of the power k is minus the power N - k.
        let inverse = |i: usize| if i == 0 { 1 } else { prime - powers[degree - reversed(i)] };
        let scale = prime - (prime - 1) / degree as u64;
        // The factor of the last level of all has `1 / N` in it.
        let scaled = |i: usize| match i {
            1 if degree > SQUARE => (u128::from(inverse(i)) * u128::from(scale) % u128::from(prime)) as u64,
            _ => inverse(i),
        };
        Some(Self {
            simd,
            degree,
            forward: Direction::new(&montgomery, degree, |i| powers[reversed(i)]),
            inverse: Direction::new(&montgomery, degree, scaled),
            scale: Factors::new(&montgomery, [scale]),
            montgomery,
        })
    }

    /// Values below 2^46 for primes below that, and below `2p` for others, to transformed values, in place. In rows of 512 values, those of
    /// eight columns are zero in all rows unless the bit with their number is set.
    pub(crate) fn forward(&self, values: &mut [u64], columns: u64) {
        assert_eq!(values.len(), self.degree, "a polynomial");
        let values = values.as_chunks_mut().0;
        if self.montgomery.prime < NARROW {
            self.forward_as::<false>(values, columns);
        } else {
            self.forward_as::<true>(values, columns);
        }
    }

    /// Transformed values, reduced, to coefficients, in place.
    pub(crate) fn inverse(&self, values: &mut [u64]) {
        assert_eq!(values.len(), self.degree, "a polynomial");
        let values = values.as_chunks_mut().0;
        if self.montgomery.prime < NARROW {
            self.inverse_as::<false>(values);
        } else {
            self.inverse_as::<true>(values);
        }
    }

    /// Each stage is compiled by itself: of all in one function, not all would be inlined.
    fn forward_as<const WIDE: bool>(&self, values: &mut [Lanes], columns: u64) {
        let (simd, factors) = (self.simd, &self.forward);
        let (mut block, mut single) = (values.len(), &factors.single[..]);
        while !is_power_of_eight(block) {
            let (level, rest) = single.split_at(values.len() / block);
            simd.vectorize(
                #[inline(always)]
                || Context::<WIDE>::new(self).apart_level(level, values),
            );
            (block, single) = (block / 2, rest);
        }
        let mut octets = &factors.broadcast[..];
        while block > LANES {
            let (level, rest) = octets.split_at(values.len() / block);
            let columns = columns_of(block / LANES, columns);
            simd.vectorize(
                #[inline(always)]
                || Context::<WIDE>::new(self).apart_octets(level, columns, values),
            );
            (block, octets) = (block / LANES, rest);
        }
        simd.vectorize(
            #[inline(always)]
            || Context::<WIDE>::new(self).apart_squares(octets, &factors.lanes, values),
        );
    }

    /// As there, but for the order.
    fn inverse_as<const WIDE: bool>(&self, values: &mut [Lanes]) {
        let (simd, factors, all) = (self.simd, &self.inverse, values.len());
        let (mut octets, level) = factors.broadcast.split_at(factors.broadcast.len() - all / LANES);
        simd.vectorize(
            #[inline(always)]
            || Context::<WIDE>::new(self).together_squares(level, &factors.lanes, values),
        );
        let mut block = LANES;
        while !octets.is_empty() {
            block *= LANES;
            let (rest, level) = octets.split_at(octets.len() - all / block);
            let is_last = block == all;
            simd.vectorize(
                #[inline(always)]
                || match is_last {
                    true => Context::<WIDE>::new(self).together_octets::<true>(level, &self.scale, values),
                    false => Context::<WIDE>::new(self).together_octets::<false>(level, &self.scale, values),
                },
            );
            octets = rest;
        }
        let mut single = &factors.single[..];
        while !single.is_empty() {
            block *= 2;
            let (rest, level) = single.split_at(single.len() - all / block);
            let is_last = block == all;
            simd.vectorize(
                #[inline(always)]
                || match is_last {
                    true => Context::<WIDE>::new(self).together_level::<true>(level, &self.scale, values),
                    false => Context::<WIDE>::new(self).together_level::<false>(level, &self.scale, values),
                },
            );
            single = rest;
        }
        if self.degree == SQUARE {
            simd.vectorize(
                #[inline(always)]
                || Context::<WIDE>::new(self).scale(&self.scale, values),
            );
        }
    }
}

impl Direction {
    fn new(montgomery: &Montgomery, degree: usize, power: impl Fn(usize) -> u64) -> Self {
        let octet = |first: usize| {
            let powers = [first, 2 * first, 2 * first + 1, 4 * first, 4 * first + 1, 4 * first + 2, 4 * first + 3];
            Factors::new(montgomery, powers.map(&power))
        };
        let blocks = |size: usize| degree / size..2 * degree / size;
        let (mut block, mut single, mut broadcast) = (degree, Vec::new(), Vec::new());
        while !is_power_of_eight(block) {
            single.extend(blocks(block).map(|first| Factors::new(montgomery, [power(first)])));
            block /= 2;
        }
        while block > LANES {
            broadcast.extend(blocks(block).map(octet));
            block /= LANES;
        }
        let lanes = blocks(LANES).step_by(LANES).map(|first| {
            let each: [Octet<u64>; LANES] = from_fn(|lane| octet(first + lane));
            Factors {
                values: from_fn(|i| each.map(|factors| factors.values[i])),
                quotients: from_fn(|i| each.map(|factors| factors.quotients[i])),
            }
        });
        Self { single, broadcast, lanes: lanes.collect() }
    }
}

impl<const N: usize> Factors<u64, N> {
    fn new(montgomery: &Montgomery, factors: [u64; N]) -> Self {
        let prime = u128::from(montgomery.prime);
        Self { values: factors, quotients: factors.map(|factor| ((u128::from(factor) << 52) / prime) as u64) }
    }
}

/// Whether octets alone take blocks of this size apart.
#[inline(always)]
fn is_power_of_eight(block: usize) -> bool {
    block.trailing_zeros().is_multiple_of(LANES.trailing_zeros())
}

/// Which of the vectors of a row are not zero, of so many and in each 64 of them, by `columns` of 64.
fn columns_of(row: usize, columns: u64) -> u64 {
    match row {
        0..64 => (0..64).step_by(row).fold(0, |folded, at| folded | columns.rotate_right(at as u32)),
        _ => columns,
    }
}

/// The pairs of each level of an octet, from the furthest apart to the nearest.
const PAIRS: [[[usize; 2]; 4]; 3] =
    [[[0, 4], [1, 5], [2, 6], [3, 7]], [[0, 2], [1, 3], [4, 6], [5, 7]], [[0, 1], [2, 3], [4, 5], [6, 7]]];

/// The factor of each pair.
const FACTORS: [[usize; 4]; 3] = [[0; 4], [1, 1, 2, 2], [3, 4, 5, 6]];

/// Eight rows of a block of vectors.
#[inline(always)]
fn rows(block: &mut [Lanes]) -> [&mut [Lanes]; 8] {
    let step = block.len() / 8;
    let (a, b) = block.split_at_mut(4 * step);
    let ((a, b), (c, d)) = (a.split_at_mut(2 * step), b.split_at_mut(2 * step));
    let [a, b, c, d] = [a, b, c, d].map(|half| half.split_at_mut(step));
    [a.0, a.1, b.0, b.1, c.0, c.1, d.0, d.1]
}

impl<const WIDE: bool> Context<WIDE> {
    #[inline(always)]
    fn new(transform: &Transform) -> Self {
        let (simd, prime) = (transform.simd, transform.montgomery.prime);
        let [first, second, third] = if WIDE { [2; 3] } else { [8, 16, 32] };
        let [opposite, mask, reciprocal] = [(1 << 52) - prime, (1 << 52) - 1, (1 << 52) / prime];
        let lift = [first * prime, second * prime, third * prime].map(|value| cast([value; LANES]));
        let [zero, prime, twice, opposite, mask, reciprocal] =
            [0, prime, 2 * prime, opposite, mask, reciprocal].map(|value| cast([value; LANES]));
        Self { simd, zero, prime, twice, opposite, mask, reciprocal, lift }
    }

    /// One level, of as many blocks as factors.
    #[inline(always)]
    fn apart_level(&self, factors: &[Factors<u64, 1>], values: &mut [Lanes]) {
        let block = values.len() / factors.len();
        for (values, factors) in values.chunks_exact_mut(block).zip(factors) {
            let (upper, lower) = values.split_at_mut(block / 2);
            let (value, quotient) = (self.set(factors.values[0]), self.set(factors.quotients[0]));
            for (x, y) in upper.iter_mut().zip(lower) {
                let sums = self.apart(cast(*x), cast(*y), value, quotient);
                (*x, *y) = (cast(sums.0), cast(sums.1));
            }
        }
    }

    /// The `LAST` one of all takes sums times `1 / N`, which its factor has, and reduces.
    #[inline(always)]
    fn together_level<const LAST: bool>(
        &self,
        factors: &[Factors<u64, 1>],
        scale: &Factors<u64, 1>,
        values: &mut [Lanes],
    ) {
        let scale = [self.set(scale.values[0]), self.set(scale.quotients[0])];
        let block = values.len() / factors.len();
        for (values, factors) in values.chunks_exact_mut(block).zip(factors) {
            let (upper, lower) = values.split_at_mut(block / 2);
            let (value, quotient) = (self.set(factors.values[0]), self.set(factors.quotients[0]));
            for (x, y) in upper.iter_mut().zip(lower) {
                let (sum, difference) = self.together(cast(*x), cast(*y), value, quotient, self.lift[0]);
                (*x, *y) = match LAST {
                    true => (cast(self.scaled(sum, scale)), cast(self.reduced(difference))),
                    false => (cast(self.below_twice(sum)), cast(difference)),
                };
            }
        }
    }

    /// Three levels, of as many blocks as octets.
    #[inline(always)]
    fn apart_octets(&self, octets: &[Octet<u64>], columns: u64, values: &mut [Lanes]) {
        let block = values.len() / octets.len();
        for (values, octet) in values.chunks_exact_mut(block).zip(octets) {
            let octet = self.broadcast(octet);
            self.each(
                rows(values),
                columns,
                #[inline(always)]
                |x| self.apart_octet(x, &octet),
            );
        }
    }

    /// The `LAST` one of all takes sums of its last level times `1 / N`, which that level's factor has, and reduces.
    #[inline(always)]
    fn together_octets<const LAST: bool>(&self, octets: &[Octet<u64>], scale: &Factors<u64, 1>, values: &mut [Lanes]) {
        let scale = [self.set(scale.values[0]), self.set(scale.quotients[0])];
        let block = values.len() / octets.len();
        for (values, octet) in values.chunks_exact_mut(block).zip(octets) {
            let octet = self.broadcast(octet);
            self.each(
                rows(values),
                u64::MAX,
                #[inline(always)]
                |x| {
                    if !LAST {
                        return self.together_octet(x, &octet);
                    }
                    let x = self.together_levels(x, &octet);
                    from_fn(
                        #[inline(always)]
                        |i| if i < 4 { self.scaled(x[i], scale) } else { self.reduced(x[i]) },
                    )
                },
            );
        }
    }

    /// The last six levels, reduced.
    #[inline(always)]
    fn apart_squares(&self, octets: &[Octet<u64>], lanes: &[Octet<Lanes>], values: &mut [Lanes]) {
        for ((square, octet), lanes) in values.as_chunks_mut::<LANES>().0.iter_mut().zip(octets).zip(lanes) {
            let outer = self.apart_octet(cast(*square), &self.broadcast(octet));
            let mut inner = self.apart_octet(self.transpose(outer), &self.load(lanes));
            for x in &mut inner {
                *x = self.reduced(self.below_twice(*x));
            }
            *square = cast(self.transpose(inner));
        }
    }

    /// The first six levels.
    #[inline(always)]
    fn together_squares(&self, octets: &[Octet<u64>], lanes: &[Octet<Lanes>], values: &mut [Lanes]) {
        for ((square, octet), lanes) in values.as_chunks_mut::<LANES>().0.iter_mut().zip(octets).zip(lanes) {
            let inner = self.together_octet(self.transpose(cast(*square)), &self.load(lanes));
            *square = cast(self.together_octet(self.transpose(inner), &self.broadcast(octet)));
        }
    }

    /// Multiplies numbers below 2^52; reduces them.
    #[inline(always)]
    fn scale(&self, factors: &Factors<u64, 1>, values: &mut [Lanes]) {
        let (value, quotient) = (self.set(factors.values[0]), self.set(factors.quotients[0]));
        for x in values {
            *x = cast(self.scaled(cast(*x), [value, quotient]));
        }
    }

    /// A number below 2^52 times another, reduced.
    #[inline(always)]
    fn scaled(&self, x: __m512i, [value, quotient]: [__m512i; 2]) -> __m512i {
        self.reduced(self.add_product(self.zero, x, value, quotient))
    }

    /// Brings vectors at one place of eight rows through `work`, at those places of each 64 whose bits are set.
    #[inline(always)]
    fn each(&self, rows: [&mut [Lanes]; 8], mut columns: u64, work: impl Fn([__m512i; 8]) -> [__m512i; 8]) {
        let [a, b, c, d, e, f, g, h] = rows;
        for (((((((a, b), c), d), e), f), g), h) in a.iter_mut().zip(b).zip(c).zip(d).zip(e).zip(f).zip(g).zip(h) {
            columns = columns.rotate_right(1);
            if columns >> 63 == 0 {
                continue;
            }
            let y = work([cast(*a), cast(*b), cast(*c), cast(*d), cast(*e), cast(*f), cast(*g), cast(*h)]);
            (*a, *b, *c, *d) = (cast(y[0]), cast(y[1]), cast(y[2]), cast(y[3]));
            (*e, *f, *g, *h) = (cast(y[4]), cast(y[5]), cast(y[6]), cast(y[7]));
        }
    }

    /// Three levels of [`Context::apart`].
    #[inline(always)]
    fn apart_octet(&self, mut x: [__m512i; 8], factors: &Octet<__m512i>) -> [__m512i; 8] {
        for level in 0..3 {
            for pair in 0..4 {
                let ([a, b], i) = (PAIRS[level][pair], FACTORS[level][pair]);
                (x[a], x[b]) = self.apart(x[a], x[b], factors.values[i], factors.quotients[i]);
            }
        }
        x
    }

    /// Three levels of [`Context::together`]. All is below `8p`, or below `2p` if `WIDE`, before and after: of the sums, that of all eight
    /// is reduced.
    #[inline(always)]
    fn together_octet(&self, x: [__m512i; 8], factors: &Octet<__m512i>) -> [__m512i; 8] {
        let mut x = self.together_levels(x, factors);
        if !WIDE {
            x[0] = self.below_twice(x[0]);
        }
        x
    }

    /// [`Context::together_octet`] with the sum of all eight as it is.
    #[inline(always)]
    fn together_levels(&self, mut x: [__m512i; 8], factors: &Octet<__m512i>) -> [__m512i; 8] {
        for level in 0..3 {
            for pair in 0..4 {
                let ([a, b], i) = (PAIRS[2 - level][pair], FACTORS[2 - level][pair]);
                (x[a], x[b]) = self.together(x[a], x[b], factors.values[i], factors.quotients[i], self.lift[level]);
            }
        }
        x
    }

    /// `x + y w` and `x - y w`: up to `2p` more than `x`; or below `4p` if `WIDE`, as `x`.
    #[inline(always)]
    fn apart(&self, x: __m512i, y: __m512i, value: __m512i, quotient: __m512i) -> (__m512i, __m512i) {
        let x = if WIDE { self.once(self.low(x), self.twice) } else { x };
        let sum = self.add_product(x, y, value, quotient);
        (sum, self.sub(self.add(x, self.add(x, self.twice)), sum))
    }

    /// `x + y`, below `2p` if `WIDE`, and `(x - y) w` below `2p`, for `y` no greater than `lift`.
    #[inline(always)]
    fn together(&self, x: __m512i, y: __m512i, value: __m512i, quotient: __m512i, lift: __m512i) -> (__m512i, __m512i) {
        let (sum, difference) = (self.add(x, y), self.sub(self.add(x, lift), y));
        let product = self.add_product(self.zero, difference, value, quotient);
        if WIDE { (self.once(sum, self.twice), self.low(product)) } else { (sum, product) }
    }

    /// `x + y w` in its lowest 52 bits, where `y w` is reduced below `2p`.
    #[inline(always)]
    fn add_product(&self, x: __m512i, y: __m512i, value: __m512i, quotient: __m512i) -> __m512i {
        let ifma = self.simd.avx512ifma;
        let times = ifma._mm512_madd52hi_epu64(self.zero, y, quotient);
        ifma._mm512_madd52lo_epu64(ifma._mm512_madd52lo_epu64(x, y, value), times, self.opposite)
    }

    /// Brings a sum below `2p`: of two such numbers if `WIDE`, or anything below 2^52.
    #[inline(always)]
    fn below_twice(&self, x: __m512i) -> __m512i {
        if WIDE {
            return self.once(self.low(x), self.twice);
        }
        let ifma = self.simd.avx512ifma;
        let times = ifma._mm512_madd52hi_epu64(self.zero, x, self.reciprocal);
        ifma._mm512_madd52lo_epu64(x, times, self.opposite)
    }

    /// Brings a number below `2p` below `p`.
    #[inline(always)]
    fn reduced(&self, x: __m512i) -> __m512i {
        self.once(self.low(x), self.prime)
    }

    /// The lowest 52 bits.
    #[inline(always)]
    fn low(&self, x: __m512i) -> __m512i {
        self.simd.avx512f._mm512_and_si512(x, self.mask)
    }

    /// One subtraction where it is due: a negative difference is a large unsigned number.
    #[inline(always)]
    fn once(&self, x: __m512i, by: __m512i) -> __m512i {
        self.simd.avx512f._mm512_min_epu64(x, self.sub(x, by))
    }

    #[inline(always)]
    fn add(&self, x: __m512i, y: __m512i) -> __m512i {
        self.simd.avx512f._mm512_add_epi64(x, y)
    }

    #[inline(always)]
    fn sub(&self, x: __m512i, y: __m512i) -> __m512i {
        self.simd.avx512f._mm512_sub_epi64(x, y)
    }

    #[inline(always)]
    fn set(&self, x: u64) -> __m512i {
        self.simd.avx512f._mm512_set1_epi64(x as i64)
    }

    #[inline(always)]
    fn broadcast(&self, factors: &Octet<u64>) -> Octet<__m512i> {
        let mut vectors = Factors { values: [self.zero; 7], quotients: [self.zero; 7] };
        for i in 0..7 {
            vectors.values[i] = self.set(factors.values[i]);
            vectors.quotients[i] = self.set(factors.quotients[i]);
        }
        vectors
    }

    #[inline(always)]
    fn load(&self, factors: &Octet<Lanes>) -> Octet<__m512i> {
        Factors { values: cast(factors.values), quotients: cast(factors.quotients) }
    }

    /// Rows to columns: of pairs of rows by single values, then of fours by pairs, then of all by fours.
    #[inline(always)]
    fn transpose(&self, x: [__m512i; 8]) -> [__m512i; 8] {
        let f = self.simd.avx512f;
        let (mut pairs, mut fours, mut all) = (x, x, x);
        for i in [0, 2, 4, 6] {
            pairs[i] = f._mm512_unpacklo_epi64(x[i], x[i + 1]);
            pairs[i + 1] = f._mm512_unpackhi_epi64(x[i], x[i + 1]);
        }
        // Then each part of 128 bits has a column of two rows: even ones go to one vector, odd ones to another.
        for i in [0, 1, 4, 5] {
            fours[i] = f._mm512_shuffle_i64x2::<0b10_00_10_00>(pairs[i], pairs[i + 2]);
            fours[i + 2] = f._mm512_shuffle_i64x2::<0b11_01_11_01>(pairs[i], pairs[i + 2]);
        }
        for i in 0..4 {
            all[i] = f._mm512_shuffle_i64x2::<0b10_00_10_00>(fours[i], fours[i + 4]);
            all[i + 4] = f._mm512_shuffle_i64x2::<0b11_01_11_01>(fours[i], fours[i + 4]);
        }
        all
    }
}
