//! Kernels in plain integer arithmetic. Inlined into functions that enable wider vectors, for which the compiler then
//! vectorises the same code.

use super::{Kernels, LANES, Row};

/// The kernels that run everywhere.
pub(super) const KERNELS: Kernels = Kernels {
    name: "portable",
    multiply_52: |sums, weights, stride, panel| multiply(sums, weights, stride, panel),
    multiply: |sums, weights, stride, panel| multiply(sums, weights, stride, panel),
    accumulate: |target, source, factor| accumulate(target, source, factor),
    signed: |out, bits, x| signed(out, bits, x),
    add_products: |out, bits, x, flips, shares| add_products(out, bits, x, flips, shares),
    pack: |out, values, bits| pack(out, values, bits),
    unpack: |out, bytes, bits| unpack(out, bytes, bits),
};

#[inline(always)]
pub(super) fn multiply(sums: &mut [Row], weights: &[i64], stride: usize, panel: &[Row]) {
    for (r, sum) in sums.iter_mut().enumerate() {
        for (row, &weight) in panel.iter().zip(&weights[r * stride..]) {
            for lane in 0..LANES {
                sum.0[lane] = sum.0[lane].wrapping_add(row.0[lane].wrapping_mul(weight as u64));
            }
        }
    }
}

#[inline(always)]
pub(super) fn accumulate(target: &mut [u64], source: &[i64], factor: u64) {
    for (target, &source) in target.iter_mut().zip(source) {
        *target = target.wrapping_add(factor.wrapping_mul(source as u64));
    }
}

/// All ones where bit `i` of `word` is set, without a branch.
#[inline(always)]
fn mask(word: u64, i: usize) -> u64 {
    (word >> i & 1).wrapping_neg()
}

#[inline(always)]
pub(super) fn signed(out: &mut [u64], bits: &[u64], x: &[u64]) {
    for ((out, x), &word) in out.chunks_mut(64).zip(x.chunks(64)).zip(bits) {
        for (i, (out, x)) in out.iter_mut().zip(x).enumerate() {
            let mask = mask(word, i);
            *out = (x ^ mask).wrapping_sub(mask);
        }
    }
}

#[inline(always)]
pub(super) fn add_products(out: &mut [u64], bits: &[u64], x: &[u64], flips: &[u64], shares: &[u64]) {
    let inputs = x.chunks(64).zip(shares.chunks(64)).zip(bits.iter().zip(flips));
    for (out, ((x, shares), (&bits, &flips))) in out.chunks_mut(64).zip(inputs) {
        for (i, (out, (x, share))) in out.iter_mut().zip(x.iter().zip(shares)).enumerate() {
            let flip = mask(flips, i);
            let term = (share ^ flip).wrapping_sub(flip).wrapping_add(x & mask(bits, i));
            *out = out.wrapping_add(term);
        }
    }
}

#[inline(always)]
pub(super) fn pack(out: &mut [u8], values: &[u64], bits: u32) {
    let (mut pending, mut held) = (0u128, 0u32);
    let mut words = out.chunks_mut(8);
    for &value in values {
        pending |= u128::from(value) << held;
        held += bits;
        if held >= 64 {
            if let Some(word) = words.next() {
                let len = word.len();
                word.copy_from_slice(&(pending as u64).to_le_bytes()[..len]);
            }
            pending >>= 64;
            held -= 64;
        }
    }
    if let Some(word) = words.next() {
        let len = word.len();
        word.copy_from_slice(&(pending as u64).to_le_bytes()[..len]);
    }
}

#[inline(always)]
pub(super) fn unpack(out: &mut [u64], bytes: &[u8], bits: u32) {
    let (mut pending, mut held) = (0u128, 0u32);
    let mut words = bytes.chunks(8);
    for out in out {
        if held < bits {
            let mut word = [0; 8];
            if let Some(chunk) = words.next() {
                word[..chunk.len()].copy_from_slice(chunk);
            }
            pending |= u128::from(u64::from_le_bytes(word)) << held;
            held += 64;
        }
        *out = pending as u64 & u64::MAX >> (64 - bits);
        pending >>= bits;
        held -= bits;
    }
}
