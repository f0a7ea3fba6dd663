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

static MULTIPLY_ADD: LazyLock<Option<MultiplyAdd>> =
    LazyLock::new(|| accelerated().filter(|_| !privet_prg::is_portable_forced()));

/// The accelerated sum of products, unless the machine has none or `PRIVET_PORTABLE=1` forbids it.
pub(crate) fn multiply_add() -> Option<MultiplyAdd> {
    *MULTIPLY_ADD
}

/// The accelerated sum of products, if the machine has one.
pub(crate) fn accelerated() -> Option<MultiplyAdd> {
    #[cfg(target_arch = "x86_64")]
    return x86::multiply_add();
    #[cfg(not(target_arch = "x86_64"))]
    None
}
