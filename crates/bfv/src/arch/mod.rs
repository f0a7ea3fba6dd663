//! The choice between accelerated and portable code, made once.

use std::sync::LazyLock;

#[cfg(target_arch = "x86_64")]
pub(crate) mod x86;

/// Terms that are added up before a reduction: with primes below 2^50 their sum stays below 2^104.
pub(crate) const TERMS: usize = 8;

/// What a lazily reduced sum needs to know of a prime below 2^50.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "no accelerated code for this processor"))]
pub(crate) struct Lazy {
    /// The prime `p`.
    pub(crate) prime: u64,
    /// `floor(2^52 / p)`.
    pub(crate) inverse: u64,
    /// `2^52 mod p`.
    pub(crate) shift: u64,
    /// `floor(2^52 shift / p)`.
    pub(crate) shift_inverse: u64,
}

impl Lazy {
    /// For a prime below 2^50; `None` for a larger one.
    pub(crate) fn new(prime: u64) -> Option<Self> {
        let shift = (1 << 52) % prime;
        let shift_inverse = ((u128::from(shift) << 52) / u128::from(prime)) as u64;
        (prime < 1 << 50).then_some(Self { prime, inverse: (1 << 52) / prime, shift, shift_inverse })
    }
}

/// `sum[i] = (sum[i] + sum over at most `TERMS` terms of a[i] b[i]) mod p`, everything reduced before and after.
pub(crate) type MultiplyAdd = fn(&Lazy, &mut [u64], &[(&[u64], &[u64])]);

/// `x = x f mod p` for each value `x` below 2^52, given `p`, `f` and `floor(2^52 f / p)`.
pub(crate) type Scale = fn(u64, u64, u64, &mut [u64]);

/// What is accelerated.
#[derive(Clone, Copy)]
pub(crate) struct Kernels {
    pub(crate) multiply_add: MultiplyAdd,
    pub(crate) scale: Scale,
}

static KERNELS: LazyLock<Option<Kernels>> =
    LazyLock::new(|| accelerated().filter(|_| !privet_prg::is_portable_forced()));

/// The accelerated kernels, unless the machine has none or `PRIVET_PORTABLE=1` forbids them.
pub(crate) fn kernels() -> Option<Kernels> {
    *KERNELS
}

/// The accelerated kernels, if the machine has them.
pub(crate) fn accelerated() -> Option<Kernels> {
    #[cfg(target_arch = "x86_64")]
    return x86::kernels();
    #[cfg(not(target_arch = "x86_64"))]
    None
}
