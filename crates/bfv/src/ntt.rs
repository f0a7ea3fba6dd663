//! The negacyclic number-theoretic transform of polynomials modulo `X^N + 1` and one prime.
//!
//! Primes below 2^50 have code of their own for AVX-512 IFMA ([`arch::Transform`]). Other transforms are those of the `tfhe-ntt` crate,
//! which picks AVX-512, AVX2 or portable code when it runs, and whose root of unity all take. Ciphertexts travel in the transformed
//! domain, so its order is part of the wire format; a test pins it.

use std::sync::{Arc, OnceLock};

use tfhe_ntt::prime::{is_prime64, largest_prime_in_arithmetic_progression64 as largest_prime};
use tfhe_ntt::prime64::Plan;

use crate::arch::{self, Kernels, Montgomery, MultiplyAdd, ROWS, TERMS, Term, Transform, vectorised};
use crate::zq::Prime;

/// Coefficients anywhere, for [`Ntt::forward_columns`].
pub(crate) const ALL_COLUMNS: u64 = u64::MAX;

/// Bits of values that accelerated transforms take as they are, if the prime has no more.
const UNREDUCED_BITS: u32 = 46;

/// The fewest coefficients that a transform takes.
const LEAST_DEGREE: usize = 16;

/// The transform for one ring degree and one prime.
#[derive(Clone, Debug)]
pub(crate) struct Ntt {
    degree: usize,
    prime: Prime,
    /// For primes below 2^50.
    montgomery: Option<Montgomery>,
    /// Computed when first used: parameters are also chosen for plans and forecasts that transform nothing.
    tables: Arc<OnceLock<Tables>>,
}

/// Powers of the root of unity, as transforms take them.
#[derive(Debug)]
struct Tables {
    plan: Plan,
    transform: Option<Transform>,
}

impl Tables {
    fn new(degree: usize, prime: &Prime, montgomery: Option<Montgomery>) -> Self {
        let plan = Plan::try_new(degree, prime.value()).expect("a prime that suits the degree");
        let accelerated = montgomery.filter(|_| arch::kernels().is_some());
        let transform = accelerated.and_then(|montgomery| Transform::new(montgomery, &powers(&plan, prime, degree)));
        Self { plan, transform }
    }
}

impl Ntt {
    /// The transform for the largest prime of `bits` bits that suits `degree` and stays below `limit`, if there is one.
    pub(crate) fn find(degree: usize, bits: u32, limit: u64) -> Option<Self> {
        let highest = ((1_u64 << bits) - 1).min(limit.checked_sub(1)?);
        let value = largest_prime(2 * degree as u64, 1, 1 << (bits - 1), highest)?;
        Self::of(degree, value)
    }

    /// The transform for a prime that is 1 modulo twice the degree; `None` for any other number.
    pub(crate) fn of(degree: usize, prime: u64) -> Option<Self> {
        let suits = degree >= LEAST_DEGREE && degree.is_power_of_two() && prime % (2 * degree as u64) == 1;
        (suits && is_prime64(prime)).then(|| Self {
            degree,
            prime: Prime::new(prime),
            montgomery: Montgomery::new(prime),
            tables: Arc::default(),
        })
    }

    fn tables(&self) -> &Tables {
        self.tables.get_or_init(|| Tables::new(self.degree, &self.prime, self.montgomery))
    }

    pub(crate) fn prime(&self) -> &Prime {
        &self.prime
    }

    /// Coefficients to transformed values, in place.
    pub(crate) fn forward(&self, values: &mut [u64]) {
        self.forward_columns(values, ALL_COLUMNS);
    }

    /// [`Ntt::forward`] of coefficients that are zero unless their column is set: bit `i % 512 / 8` for coefficient `i`. What is zero may be
    /// left out, so columns must be public.
    pub(crate) fn forward_columns(&self, values: &mut [u64], columns: u64) {
        let Tables { plan, transform } = self.tables();
        match transform {
            Some(transform) => transform.forward(values, columns),
            None => plan.fwd(values),
        }
    }

    /// [`Ntt::forward`] of values below `2^bits`, reduced or not.
    pub(crate) fn forward_unreduced(&self, values: &mut [u64], bits: u32) {
        let prime = self.prime;
        let is_taken = self.tables().transform.is_some() && bits.max(prime.bits()) <= UNREDUCED_BITS;
        if !is_taken && bits <= 52 && self.accelerated().is_some() {
            self.scale(values, 1);
        } else if !is_taken {
            vectorised(|| values.iter_mut().for_each(|x| *x = prime.reduce(*x)));
        }
        self.forward(values);
    }

    /// Transformed values to coefficients, in place.
    pub(crate) fn inverse(&self, values: &mut [u64]) {
        let Tables { plan, transform } = self.tables();
        match transform {
            Some(transform) => transform.inverse(values),
            None => {
                plan.inv(values);
                plan.normalize(values);
            }
        }
    }

    /// Makes values multipliers, in place: what [`Ntt::multiply_add`] takes for one factor of each product.
    pub(crate) fn prepare(&self, values: &mut [u64]) {
        if let Some((montgomery, _)) = self.accelerated() {
            self.scale(values, montgomery.radix);
        }
    }

    /// Undoes [`Ntt::prepare`].
    #[cfg(test)]
    pub(crate) fn undo(&self, values: &mut [u64]) {
        if let Some((montgomery, _)) = self.accelerated() {
            self.scale(values, self.prime.invert(montgomery.radix));
        }
    }

    /// `sum += a * b` for each term, value by value, for any multiple of 8 values. One of `a` and `b` are multipliers. Where the
    /// processor can, a few products are added up before they are reduced.
    pub(crate) fn multiply_add(&self, sum: &mut [u64], terms: &[(&[u64], &[u64])]) {
        let terms: Vec<Term<'_, 1, 1>> = terms.iter().map(|(a, b)| ([*a], [*b])).collect();
        self.multiply_add_with([[sum]], &terms, |kernels| kernels.multiply_add);
    }

    /// [`Ntt::multiply_add`] to two sums, of products with two factors that share the other one.
    pub(crate) fn multiply_add_pair(&self, sums: [&mut [u64]; 2], terms: &[Term<'_, 2, 1>]) {
        self.multiply_add_with([sums], terms, |kernels| kernels.multiply_add_pair);
    }

    /// [`Ntt::multiply_add_pair`] with each of some others.
    pub(crate) fn multiply_add_rows(&self, sums: [[&mut [u64]; 2]; ROWS], terms: &[Term<'_, 2, ROWS>]) {
        self.multiply_add_with(sums, terms, |kernels| kernels.multiply_add_rows);
    }

    fn multiply_add_with<const K: usize, const M: usize>(
        &self,
        mut sums: [[&mut [u64]; K]; M],
        terms: &[Term<'_, K, M>],
        kernel: impl Fn(Kernels) -> MultiplyAdd<K, M>,
    ) {
        let accelerated = self.accelerated();
        for terms in terms.chunks(TERMS) {
            if let Some((montgomery, kernels)) = accelerated {
                let sums = sums.each_mut().map(|sums| sums.each_mut().map(|sum| &mut **sum));
                kernel(kernels)(&montgomery, sums, terms);
                continue;
            }
            let plan = &self.tables().plan;
            for (factors, others) in terms {
                for (sums, other) in sums.iter_mut().zip(others) {
                    sums.iter_mut().zip(factors).for_each(|(sum, factor)| plan.mul_accumulate(sum, factor, other));
                }
            }
        }
    }

    /// `x f` in place for two vectors that share the factors `f`, value by value, for any multiple of 8 values. None are multipliers.
    pub(crate) fn multiply_pair(&self, values: [&mut [u64]; 2], factors: &[u64]) {
        if let Some((montgomery, kernels)) = self.accelerated() {
            return (kernels.multiply)(&montgomery, values, factors);
        }
        let mut product = vec![0; factors.len()];
        for values in values {
            product.fill(0);
            self.tables().plan.mul_accumulate(&mut product, values, factors);
            values.copy_from_slice(&product);
        }
    }

    /// `x + y f` and `x - y f` in place, value by value, for multipliers `f`.
    pub(crate) fn butterfly(&self, x: &mut [u64], y: &mut [u64], factors: &[u64]) {
        if let Some((montgomery, kernels)) = self.accelerated() {
            return (kernels.butterfly)(&montgomery, x, y, factors);
        }
        let mut product = vec![0; y.len()];
        self.tables().plan.mul_accumulate(&mut product, y, factors);
        for ((x, y), product) in x.iter_mut().zip(y).zip(product) {
            (*x, *y) = (self.prime.add(*x, product), self.prime.sub(*x, product));
        }
    }

    /// What accelerated products take, if the processor and the prime allow them.
    fn accelerated(&self) -> Option<(Montgomery, Kernels)> {
        self.montgomery.zip(arch::kernels())
    }

    /// Multiplies values by a residue; brings any value below its prime, and below 2^52 if primes below 2^50 are asked.
    pub(crate) fn scale(&self, values: &mut [u64], factor: u64) {
        let (mut rest, scalar) = (values, self.prime.factor(factor));
        if let Some((Montgomery { prime, .. }, kernels)) = self.accelerated() {
            debug_assert!(rest.iter().all(|x| x >> 52 == 0), "values below 2^52");
            let quotient = ((u128::from(factor) << 52) / u128::from(prime)) as u64;
            let (vectors, after) = rest.split_at_mut(rest.len() / 8 * 8);
            (kernels.scale)(prime, factor, quotient, vectors);
            rest = after;
        }
        rest.iter_mut().for_each(|x| *x = self.prime.scale(*x, scalar));
    }

    /// `x / p + x1 / (p p1)` in units of 2^-64, for residues `x` modulo this prime `p` and `x1` modulo another: at most 5 units below the true value.
    /// Whatever code runs, it is `fraction(x) + quotient(fraction(x1))`.
    pub(crate) fn turns(&self, other: &Self, values: &mut [u64], x1: &[u64]) {
        let (p0, p1, mut first) = (self.prime, other.prime, 0);
        if let (Some((_, kernels)), Some(_)) = (self.accelerated(), other.montgomery) {
            let [(fraction, shift, reciprocal), (fraction1, shift1, _)] = [p0, p1].map(|prime| prime.reciprocals());
            first = values.len() / 8 * 8;
            (kernels.turns)([fraction, fraction1], [shift, shift1], reciprocal, &mut values[..first], &x1[..first]);
        }
        for (x, &x1) in values[first..].iter_mut().zip(&x1[first..]) {
            *x = p0.fraction(*x).wrapping_add(p0.quotient(p1.fraction(x1)));
        }
    }
}

/// The powers below `degree` of the root of order `2 degree` that the transform has: its first value of `X`.
fn powers(plan: &Plan, prime: &Prime, degree: usize) -> Vec<u64> {
    let mut x = vec![0; degree];
    x[1] = 1;
    plan.fwd(&mut x);
    let root = prime.factor(x[0]);
    std::iter::successors(Some(1), |&power| Some(prime.scale(power, root))).take(degree).collect()
}

#[cfg(test)]
mod tests {
    use privet_prg::{Prg, Seed};

    use super::*;

    fn random(prg: &mut Prg, ntt: &Ntt, degree: usize) -> Vec<u64> {
        (0..degree).map(|_| prg.below(ntt.prime().value())).collect()
    }

    /// The product modulo `X^N + 1`, term by term.
    fn schoolbook(prime: &Prime, a: &[u64], b: &[u64]) -> Vec<u64> {
        let n = a.len();
        let mut product = vec![0; n];
        for (i, &x) in a.iter().enumerate() {
            for (j, &y) in b.iter().enumerate() {
                let term = prime.multiply(x, y);
                let at = &mut product[(i + j) % n];
                *at = if i + j < n { prime.add(*at, term) } else { prime.sub(*at, term) };
            }
        }
        product
    }

    #[test]
    fn products_are_negacyclic_at_every_width() {
        let mut prg = Prg::from_seed(&Seed::from_bytes([1; 16]));
        for bits in [20, 27, 39, 49, 50, 51, 55, 60] {
            let degree = 256;
            let ntt = Ntt::find(degree, bits, u64::MAX).unwrap();
            let (mut a, mut b) = (random(&mut prg, &ntt, degree), random(&mut prg, &ntt, degree));
            let expected = schoolbook(ntt.prime(), &a, &b);
            ntt.forward(&mut a);
            ntt.forward(&mut b);
            ntt.prepare(&mut b);
            assert!(a.iter().all(|&x| x < ntt.prime().value()), "reduced after the transform");
            let mut product = vec![0; degree];
            ntt.multiply_add(&mut product, &[(&a, &b)]);
            ntt.inverse(&mut product);
            assert_eq!(product, expected, "{bits} bits");
        }
    }

    #[test]
    fn pairs_of_values_are_multiplied_by_what_is_no_multiplier() {
        let mut prg = Prg::from_seed(&Seed::from_bytes([6; 16]));
        for bits in [20, 30, 39, 45, 49, 50, 51, 60] {
            let ntt = Ntt::find(64, bits, u64::MAX).unwrap();
            let prime = *ntt.prime();
            for extreme in [false, true] {
                let mut values = || if extreme { vec![prime.value() - 1; 64] } else { random(&mut prg, &ntt, 64) };
                let ([mut x, mut y], factors) = ([values(), values()], values());
                (x[0], y[1]) = (0, 1);
                let products = |x: &[u64]| x.iter().zip(&factors).map(|(&x, &f)| prime.multiply(x, f)).collect();
                let expected: [Vec<u64>; 2] = [products(&x), products(&y)];
                ntt.multiply_pair([&mut x, &mut y], &factors);
                assert_eq!([x, y], expected, "{bits} bits");
            }
        }
    }

    #[test]
    fn sums_that_are_reduced_once_are_those_of_single_products() {
        let Some(accelerated) = arch::accelerated() else { return };
        let mut prg = Prg::from_seed(&Seed::from_bytes([2; 16]));
        for bits in [20, 30, 39, 45, 49, 50] {
            let ntt = Ntt::find(64, bits, 1 << 50).unwrap();
            let (montgomery, prime) = (ntt.montgomery.unwrap(), *ntt.prime());
            let unprepared = prime.invert(montgomery.radix);
            for count in 0..=TERMS {
                for extreme in [false, true] {
                    let mut values = || if extreme { vec![prime.value() - 1; 64] } else { random(&mut prg, &ntt, 64) };
                    let operands: Vec<_> = (0..count).map(|_| ([values(), values()], values())).collect();
                    let mut sums = [values(), values()];
                    let mut expected = sums.clone();
                    for ([a, b], shared) in &operands {
                        let shared: Vec<u64> = shared.iter().map(|&x| prime.multiply(x, unprepared)).collect();
                        ntt.tables().plan.mul_accumulate(&mut expected[0], a, &shared);
                        ntt.tables().plan.mul_accumulate(&mut expected[1], b, &shared);
                    }
                    let mut alone = sums[1].clone();
                    let terms: Vec<Term<'_, 1, 1>> =
                        operands.iter().map(|([_, b], shared)| ([&b[..]], [&shared[..]])).collect();
                    (accelerated.multiply_add)(&montgomery, [[&mut alone]], &terms);
                    // Each row by another of the terms' factors in turn.
                    let mut rows: [_; ROWS] = std::array::from_fn(|_| sums.clone());
                    let shared = |term: usize, row: usize| &operands[(term + row) % count].1[..];
                    let pairs = operands.iter().map(|([a, b], _)| [&a[..], &b[..]]).enumerate();
                    let terms: Vec<Term<'_, 2, ROWS>> =
                        pairs.map(|(term, pair)| (pair, std::array::from_fn(|row| shared(term, row)))).collect();
                    let places = rows.each_mut().map(|row| row.each_mut().map(|sum| &mut sum[..]));
                    (accelerated.multiply_add_rows)(&montgomery, places, &terms);
                    for (row, sums_of_row) in rows.iter().enumerate() {
                        let mut expected = sums.clone();
                        for (term, (pair, _)) in operands.iter().enumerate() {
                            let shared = shared(term, row).iter().map(|&x| prime.multiply(x, unprepared));
                            let shared: Vec<u64> = shared.collect();
                            for (sum, factor) in expected.iter_mut().zip(pair) {
                                ntt.tables().plan.mul_accumulate(sum, factor, &shared);
                            }
                        }
                        assert_eq!(*sums_of_row, expected, "{count} terms, {bits} bits, row {row}");
                    }
                    let terms: Vec<Term<'_, 2, 1>> =
                        operands.iter().map(|([a, b], shared)| ([&a[..], &b[..]], [&shared[..]])).collect();
                    let [first, second] = &mut sums;
                    (accelerated.multiply_add_pair)(&montgomery, [[first, second]], &terms);
                    assert_eq!(sums, expected, "{count} terms, {bits} bits");
                    assert_eq!(alone, expected[1], "{count} terms, {bits} bits");
                    let (mut x, mut y, factors) = (values(), values(), values());
                    let unprepared: Vec<u64> = factors.iter().map(|&f| prime.multiply(f, unprepared)).collect();
                    let products = y.iter().zip(&unprepared).map(|(&y, &f)| prime.multiply(y, f));
                    let expected: (Vec<u64>, Vec<u64>) = x
                        .iter()
                        .zip(products)
                        .map(|(&x, product)| (prime.add(x, product), prime.sub(x, product)))
                        .unzip();
                    (accelerated.butterfly)(&montgomery, &mut x, &mut y, &factors);
                    assert_eq!((x, y), expected, "{bits} bits");
                }
            }
        }
        assert!(Montgomery::new((1 << 50) + 1).is_none());
    }

    #[test]
    fn accelerated_transforms_are_the_portable_ones_at_every_degree_and_width() {
        if arch::kernels().is_none() {
            return;
        }
        let mut prg = Prg::from_seed(&Seed::from_bytes([4; 16]));
        for degree in [64, 128, 256, 512, 1024, 4096, 8192, 16_384] {
            for bits in [20, 31, 39, 45, 46, 47, 49, 50] {
                let Some(ntt) = Ntt::find(degree, bits, u64::MAX) else { continue };
                let (p, transform) = (ntt.prime().value(), ntt.tables().transform.as_ref().unwrap());
                let mut sparse = vec![0; degree];
                sparse[degree - 1] = p - 1;
                for values in [random(&mut prg, &ntt, degree), vec![p - 1; degree], vec![0; degree], sparse] {
                    let (mut portable, mut accelerated) = (values.clone(), values.clone());
                    ntt.tables().plan.fwd(&mut portable);
                    transform.forward(&mut accelerated, ALL_COLUMNS);
                    assert_eq!(portable, accelerated, "{bits} bits, {degree} there");
                    transform.inverse(&mut accelerated);
                    assert_eq!(accelerated, values, "{bits} bits, {degree} and back");
                    // Not only what comes of small polynomials.
                    let mut accelerated = values.clone();
                    transform.inverse(&mut accelerated);
                    ntt.tables().plan.fwd(&mut accelerated);
                    assert_eq!(accelerated, values, "{bits} bits, {degree} back");
                }
            }
        }
        // Numbers that are not reduced, also the largest that there may be.
        for (degree, bits) in [(4096, 20), (4096, 39), (8192, 45), (16_384, 46), (8192, 47), (4096, 50)] {
            let ntt = Ntt::find(degree, bits, u64::MAX).unwrap();
            let limit = if bits <= 46 { 1 << 46 } else { 2 * ntt.prime().value() };
            let drawn: Vec<u64> = (0..degree).map(|_| prg.below(limit)).collect();
            for values in [drawn, vec![limit - 1; degree]] {
                let (mut reduced, mut wide) =
                    (values.iter().map(|&x| ntt.prime().reduce(x)).collect::<Vec<_>>(), values);
                let mut unreduced = wide.clone();
                ntt.tables().plan.fwd(&mut reduced);
                ntt.forward(&mut wide);
                assert_eq!(reduced, wide, "{bits} bits, {degree} from numbers below {limit}");
                ntt.forward_unreduced(&mut unreduced, u64::BITS - (limit - 1).leading_zeros());
                assert_eq!(reduced, unreduced, "{bits} bits, {degree} from numbers below {limit}");
            }
        }
    }

    #[test]
    fn columns_of_zeros_can_be_left_out() {
        let mut prg = Prg::from_seed(&Seed::from_bytes([5; 16]));
        for degree in [64, 128, 256, 512, 1024, 4096, 8192, 32_768] {
            let ntt = Ntt::find(degree, 39, u64::MAX).unwrap();
            for columns in [0, 1, 1 << 63, 1 << 40 | 1 << 3, 0xff00, prg.word(), u64::MAX] {
                let mut values = random(&mut prg, &ntt, degree);
                let is_empty = |i: usize| columns >> (i % 512 / 8) & 1 == 0;
                (0..degree).filter(|&i| is_empty(i)).for_each(|i| values[i] = 0);
                let mut expected = values.clone();
                ntt.tables().plan.fwd(&mut expected);
                ntt.forward_columns(&mut values, columns);
                assert_eq!(values, expected, "columns {columns:b} of {degree}");
            }
        }
    }

    #[test]
    fn scaled_values_are_products_by_division() {
        let mut prg = Prg::from_seed(&Seed::from_bytes([3; 16]));
        for bits in [20, 30, 39, 49, 50, 51, 60] {
            let ntt = Ntt::find(64, bits, u64::MAX).unwrap();
            let prime = ntt.prime();
            let values: Vec<u64> = (0..61).map(|_| prg.word() >> 12).chain([0, 1, (1 << 52) - 1]).collect();
            for factor in [0, 1, prime.value() / 2, prime.value() - 1] {
                let expected: Vec<u64> = values.iter().map(|&x| prime.multiply(x, factor)).collect();
                let mut scaled = values.clone();
                ntt.scale(&mut scaled, factor);
                assert_eq!(scaled, expected, "{bits} bits, factor {factor}");
            }
        }
    }

    #[test]
    fn transformed_values_are_evaluations_in_bit_reversed_order() {
        let degree = 64;
        let ntt = Ntt::find(degree, 39, u64::MAX).unwrap();
        let prime = ntt.prime();
        let mut x = vec![0; degree];
        x[1] = 1;
        ntt.forward(&mut x);
        // The transform of X lists the points: odd powers of one root of order 2N, in bit-reversed order.
        let root = x[0];
        for (i, &point) in x.iter().enumerate() {
            let reversed = (i as u64).reverse_bits() >> (64 - degree.trailing_zeros());
            let expected = (0..2 * reversed + 1).fold(1, |power, _| prime.multiply(power, root));
            assert_eq!(point, expected, "point {i}");
        }
    }

    #[test]
    fn the_root_is_pinned_because_it_is_part_of_the_wire_format() {
        let ntt = Ntt::find(4096, 39, u64::MAX).unwrap();
        let mut x = vec![0; 4096];
        x[1] = 1;
        ntt.forward(&mut x);
        assert_eq!((ntt.prime().value(), x[0]), (549_755_731_969, 508_058_654_538));
    }

    #[test]
    fn no_prime_below_the_limit_gives_none() {
        assert!(Ntt::find(8192, 20, 16_384).is_none());
        assert!(Ntt::find(8192, 20, 0).is_none());
    }
}
