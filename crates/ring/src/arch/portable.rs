//! Kernels in plain integer arithmetic. Inlined into functions that enable wider vectors, for which the compiler then
//! vectorises the same code.

use super::{Choice, Choices, Circle, Kernels, LANES, LIMB_BITS, Row, WideRow};
use crate::digit::Digit;

/// The kernels that run everywhere.
pub(super) const KERNELS: Kernels = Kernels {
    name: "portable",
    multiply_52: |sums, weights, stride, panel| multiply(sums, weights, stride, panel),
    multiply: |sums, weights, stride, panel| multiply(sums, weights, stride, panel),
    multiply_wide,
    accumulate: |target, source, factor| accumulate(target, source, factor),
    signed: |out, bits, x| signed(out, bits, x),
    add_products: |out, bits, x, flips, shares| add_products(out, bits, x, flips, shares),
    choose: |circle, tables| choose(circle, tables),
    choose_narrow: |circles, tables| circles.map(|circle| choose(circle, tables)),
    select: |bits, tables| select(bits, tables),
    compare: |numbers, digit, tables, out| compare(numbers, digit, tables, out),
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

/// A number from its limbs.
fn join(limbs: impl Iterator<Item = u64>) -> u128 {
    limbs.enumerate().fold(0, |sum, (i, limb)| sum.wrapping_add(u128::from(limb) << (i as u32 * LIMB_BITS)))
}

pub(super) fn multiply_wide(sums: &mut [WideRow], weights: &[&[u64]], stride: usize, panels: &[&[Row]]) {
    let depth = panels.first().map_or(0, |panel| panel.len());
    for (r, sum) in sums.iter_mut().enumerate() {
        let mut held: [u128; LANES] = std::array::from_fn(|lane| join(sum.0.iter().map(|limb| limb.0[lane])));
        for t in 0..depth {
            let weight = join(weights.iter().map(|limb| limb[r * stride + t]));
            for (lane, held) in held.iter_mut().enumerate() {
                let x = join(panels.iter().map(|panel| panel[t].0[lane]));
                *held = held.wrapping_add(x.wrapping_mul(weight));
            }
        }
        for (index, limb) in sum.0.iter_mut().enumerate() {
            let limbs = held.map(|held| (held >> (index as u32 * LIMB_BITS)) as u64 & ((1 << LIMB_BITS) - 1));
            *limb = Row(limbs);
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
pub(super) fn choose<T: Choice>(circle: Circle<'_>, tables: [&[Choices<T>]; 2]) -> [T; 2] {
    let mut lanes = [[T::ZERO; 8]; 2];
    for (part, (first, second)) in tables[0].iter().zip(tables[1]).enumerate() {
        let word = turned(circle, part);
        for (lanes, table) in lanes.iter_mut().zip([first, second]) {
            for (eighth, part) in table.0.as_chunks::<8>().0.iter().enumerate() {
                for (lane, sum) in lanes.iter_mut().enumerate() {
                    *sum = sum.plus(part[lane].where_set(word >> (8 * eighth + lane)));
                }
            }
        }
    }
    lanes.map(|lanes| lanes.into_iter().fold(T::ZERO, T::plus))
}

/// Word `part` of the circle from where it begins on.
#[inline(always)]
pub(super) fn turned((bits, begin): Circle<'_>, part: usize) -> u64 {
    // As many words are a power of two: nothing needs to be divided.
    let (at, last, shift) = (begin / 64 + part, bits.len() - 1, begin % 64);
    bits[at & last] >> shift | bits[(at + 1) & last] << 1 << (63 - shift)
}

#[inline(always)]
pub(super) fn select(bits: &[u64], tables: [&[u64]; 2]) -> [[u64; 64]; 2] {
    let mut sums = [[0_u64; 64]; 2];
    for (at, &word) in bits.iter().enumerate() {
        for (sums, table) in sums.iter_mut().zip(tables) {
            for (i, sum) in sums.iter_mut().enumerate() {
                *sum = sum.wrapping_add(table[at] & mask(word, i));
            }
        }
    }
    sums
}

#[inline(always)]
pub(super) fn compare(numbers: &[u64], digit: Digit, [low, high]: [&[u64]; 2], [less, equal]: [&mut [u64]; 2]) {
    let mask = u64::MAX >> (64 - (1 << digit.bits.min(6)));
    let words = less.iter_mut().zip(equal);
    for (word, ((less, equal), numbers)) in words.zip(numbers.chunks(64)).enumerate() {
        (*less, *equal) = (0, 0);
        for (i, number) in numbers.iter().enumerate() {
            let at = (number >> digit.low) as u32 & ((1 << digit.bits) - 1);
            let low = low[64 * word + i] >> digit.offset & mask;
            let high = high.get(64 * word + i).copied().unwrap_or(0);
            // Shifts by 64 and more leave nothing: the second one is of `at` below 64, the third of others.
            let first = low.unbounded_shr(at)
                | high.unbounded_shl(64_u32.wrapping_sub(at))
                | high.unbounded_shr(at.wrapping_sub(64));
            let behind = u64::from((first ^ high.unbounded_shr(at)).count_ones());
            *less |= ((behind ^ first) & 1) << i;
            *equal |= (first & 1) << i;
        }
    }
}

/// Packs values of `N` whole bytes.
#[inline(always)]
fn pack_whole<const N: usize>(out: &mut [u8], values: &[u64]) {
    for (out, value) in out.as_chunks_mut().0.iter_mut().zip(values) {
        *out = *value.to_le_bytes().first_chunk::<N>().expect("a word has eight bytes");
    }
}

/// The inverse of [`pack_whole`].
#[inline(always)]
fn unpack_whole<const N: usize>(out: &mut [u64], bytes: &[u8]) {
    for (out, bytes) in out.iter_mut().zip(bytes.as_chunks::<N>().0) {
        let mut word = [0; 8];
        word[..N].copy_from_slice(bytes);
        *out = u64::from_le_bytes(word);
    }
}

#[inline(always)]
pub(super) fn pack(out: &mut [u8], values: &[u64], bits: u32) {
    match bits {
        8 => return pack_whole::<1>(out, values),
        16 => return pack_whole::<2>(out, values),
        24 => return pack_whole::<3>(out, values),
        32 => return pack_whole::<4>(out, values),
        40 => return pack_whole::<5>(out, values),
        48 => return pack_whole::<6>(out, values),
        56 => return pack_whole::<7>(out, values),
        64 => return pack_whole::<8>(out, values),
        _ => {}
    }
    let (mut pending, mut pending_bits) = (0u128, 0u32);
    let mut words = out.chunks_mut(8);
    for &value in values {
        pending |= u128::from(value) << pending_bits;
        pending_bits += bits;
        if pending_bits >= 64 {
            if let Some(word) = words.next() {
                let len = word.len();
                word.copy_from_slice(&(pending as u64).to_le_bytes()[..len]);
            }
            pending >>= 64;
            pending_bits -= 64;
        }
    }
    if let Some(word) = words.next() {
        let len = word.len();
        word.copy_from_slice(&(pending as u64).to_le_bytes()[..len]);
    }
}

#[inline(always)]
pub(super) fn unpack(out: &mut [u64], bytes: &[u8], bits: u32) {
    match bits {
        8 => return unpack_whole::<1>(out, bytes),
        16 => return unpack_whole::<2>(out, bytes),
        24 => return unpack_whole::<3>(out, bytes),
        32 => return unpack_whole::<4>(out, bytes),
        40 => return unpack_whole::<5>(out, bytes),
        48 => return unpack_whole::<6>(out, bytes),
        56 => return unpack_whole::<7>(out, bytes),
        64 => return unpack_whole::<8>(out, bytes),
        _ => {}
    }
    let (mut pending, mut pending_bits) = (0u128, 0u32);
    let mut words = bytes.chunks(8);
    for out in out {
        if pending_bits < bits {
            let mut word = [0; 8];
            if let Some(chunk) = words.next() {
                word[..chunk.len()].copy_from_slice(chunk);
            }
            pending |= u128::from(u64::from_le_bytes(word)) << pending_bits;
            pending_bits += 64;
        }
        *out = pending as u64 & u64::MAX >> (64 - bits);
        pending >>= bits;
        pending_bits -= bits;
    }
}
