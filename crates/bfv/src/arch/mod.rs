//! The choice between accelerated and portable code, made once.

use std::sync::LazyLock;

use privet_prg::is_portable_forced;
use pulp::Arch;

pub(crate) mod tile;
#[cfg(target_arch = "x86_64")]
mod transform;
mod values;
#[cfg(target_arch = "x86_64")]
pub(crate) mod x86;
#[cfg(target_arch = "x86_64")]
mod x86_tile;

#[cfg(target_arch = "x86_64")]
pub(crate) use transform::Transform;
pub use values::Values;

/// There is none for this processor.
#[cfg(not(target_arch = "x86_64"))]
#[derive(Clone, Debug)]
pub(crate) enum Transform {}

#[cfg(not(target_arch = "x86_64"))]
impl Transform {
    pub(crate) fn new(_: Montgomery, _: &[u64]) -> Option<Self> {
        None
    }

    pub(crate) fn forward(&self, _: &mut [u64], _: u64) {
        match *self {}
    }

    pub(crate) fn inverse(&self, _: &mut [u64]) {
        match *self {}
    }
}

/// Numbers in a vector.
#[cfg(target_arch = "x86_64")]
const LANES: usize = 8;

/// Values that go through several steps at a time: few enough for the nearest cache. They fill whole bytes at any width.
pub(crate) const CHUNK: usize = 512;

/// Terms that are added up before a reduction: with primes below 2^50 their sum stays below 2^103.
pub(crate) const TERMS: usize = 8;

/// Rows of factors that pairs are multiplied by at once: with their sums they fill the registers.
pub(crate) const ROWS: usize = 4;

/// What Montgomery's reduction (Math. Comp. 1985) by 2^52 takes for a prime below 2^50, or 2^52.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "no accelerated code for this processor"))]
pub(crate) struct Montgomery {
    /// The prime `p`.
    pub(crate) prime: u64,
    /// `1 / p mod 2^52`.
    pub(crate) inverse: u64,
    /// `2^52 mod p`: what one of two factors is multiplied by beforehand.
    pub(crate) radix: u64,
    /// `2^104 mod p`.
    pub(crate) square: u64,
}

impl Montgomery {
    /// For an odd prime below 2^50; `None` for a larger one.
    pub(crate) fn new(prime: u64) -> Option<Self> {
        Self::wide(prime).filter(|_| prime < 1 << 50)
    }

    /// For an odd prime below 2^52, as [`tile`] takes it; `None` for a larger one.
    pub(crate) fn wide(prime: u64) -> Option<Self> {
        // Newton's iteration doubles the bits that are right; an odd number is its own inverse modulo 8.
        let inverse = (0..5).fold(prime, |x, _| x.wrapping_mul(2_u64.wrapping_sub(prime.wrapping_mul(x))));
        let inverse = inverse & ((1 << 52) - 1);
        let square = ((1_u128 << 104) % u128::from(prime)) as u64;
        (prime < 1 << 52).then_some(Self { prime, inverse, radix: (1 << 52) % prime, square })
    }
}

/// What is added to `M` times `K` sums: the products of `K` factors with each of `M` others.
pub(crate) type Term<'a, const K: usize, const M: usize> = ([&'a [u64]; K], [&'a [u64]; M]);

/// `sums[m][k][i] = (sums[m][k][i] + sum over at most `TERMS` terms of factors[k][i] others[m][i] / 2^52) mod p`, everything reduced before
/// and after.
pub(crate) type MultiplyAdd<const K: usize, const M: usize> = fn(&Montgomery, [[&mut [u64]; K]; M], &[Term<'_, K, M>]);

/// `x = x f mod p` value by value for two vectors that share the factors `f`, everything reduced.
pub(crate) type Multiply = fn(&Montgomery, [&mut [u64]; 2], &[u64]);

/// `x = x f mod p` for each value `x` below 2^52, given `p`, `f` and `floor(2^52 f / p)`.
pub(crate) type Scale = fn(u64, u64, u64, &mut [u64]);

/// `(x, y) = (x + y f, x - y f)` value by value, everything reduced, for prepared factors `f`.
pub(crate) type Butterfly = fn(&Montgomery, &mut [u64], &mut [u64], &[u64]);

/// `x = fraction(x) + quotient(fraction1(x1))` for residues `x` and `x1` below 2^50: what [`crate::ntt::Ntt::turns`] states. Given the
/// factors and shifts of the two fractions, and a reciprocal below 2^52.
pub(crate) type Turns = fn([u64; 2], [u32; 2], u64, &mut [u64], &[u64]);

/// `to[i] = from[sources[i] % CHUNK]`, for sources of which each eight in turn lie in one vector of eight, in any order.
pub(crate) type Permute = fn(&mut [u64; CHUNK], &[u64; CHUNK], &[u32; CHUNK]);

/// What is accelerated.
#[derive(Clone, Copy)]
pub(crate) struct Kernels {
    pub(crate) multiply_add: MultiplyAdd<1, 1>,
    pub(crate) multiply_add_pair: MultiplyAdd<2, 1>,
    pub(crate) multiply_add_rows: MultiplyAdd<2, ROWS>,
    pub(crate) multiply: Multiply,
    pub(crate) scale: Scale,
    pub(crate) turns: Turns,
    pub(crate) butterfly: Butterfly,
    pub(crate) permute: Permute,
}

static KERNELS: LazyLock<Option<Kernels>> = LazyLock::new(|| accelerated().filter(|_| !is_portable_forced()));

/// The accelerated kernels, unless the machine has none or `PRIVET_PORTABLE=1` forbids them.
pub(crate) fn kernels() -> Option<Kernels> {
    *KERNELS
}

/// Runs a loop that the compiler can vectorise, compiled once for each width of vectors: for the widest that the machine has, unless
/// `PRIVET_PORTABLE=1` forbids them. Its body must be short: what is not inlined is compiled for narrow vectors alone.
pub(crate) fn vectorised<R>(body: impl FnOnce() -> R) -> R {
    if is_portable_forced() { body() } else { Arch::new().dispatch(body) }
}

/// The accelerated kernels, if the machine has them.
pub(crate) fn accelerated() -> Option<Kernels> {
    #[cfg(target_arch = "x86_64")]
    return x86::kernels();
    #[cfg(not(target_arch = "x86_64"))]
    None
}
