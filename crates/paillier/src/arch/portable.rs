//! Plain code, one lane after the other: the reference for the accelerated forms.

use super::{Kernels, LANES, LIMB_BITS, MOST_LIMBS, Row};

pub(super) const KERNELS: Kernels = Kernels { name: "portable", multiply, gather, scatter, select, select_shared };

const MASK: u128 = (1 << LIMB_BITS) - 1;

/// See [`Kernels::multiply`]: column by column, so that each column is one sum of at most 256 products of 104 bits.
pub(super) fn multiply(out: &mut [Row], a: &[Row], b: &[Row], modulus: &[Row], inverse: &Row) {
    let limbs = out.len();
    let mut scratch = [[0; MOST_LIMBS]; 4];
    for lane in 0..LANES {
        let [a_lane, b_reversed, n_lane, m_reversed] = &mut scratch;
        for i in 0..limbs {
            a_lane[i] = a[i].0[lane];
            b_reversed[limbs - 1 - i] = b[i].0[lane];
            n_lane[i] = modulus[i].0[lane];
        }
        let mut sum = 0_u128;
        for column in 0..limbs {
            sum += dot(&a_lane[..=column], &b_reversed[limbs - 1 - column..limbs]);
            sum += dot(&n_lane[1..=column], &m_reversed[limbs - column..limbs]);
            let quotient = (sum as u64).wrapping_mul(inverse.0[lane]) & MASK as u64;
            m_reversed[limbs - 1 - column] = quotient;
            sum += u128::from(quotient) * u128::from(n_lane[0]);
            sum >>= LIMB_BITS;
        }
        for column in 1..limbs {
            sum += dot(&a_lane[column..limbs], &b_reversed[..limbs - column]);
            sum += dot(&n_lane[column..limbs], &m_reversed[..limbs - column]);
            out[column - 1].0[lane] = (sum & MASK) as u64;
            sum >>= LIMB_BITS;
        }
        out[limbs - 1].0[lane] = (sum & MASK) as u64;
    }
}

/// Sum of products of limbs.
fn dot(a: &[u64], b: &[u64]) -> u128 {
    a.iter().zip(b).map(|(&a, &b)| u128::from(a) * u128::from(b)).sum()
}

/// See [`Kernels::gather`].
fn gather(out: &mut [Row], numbers: &[&[u64]; LANES]) {
    for (limb, row) in out.iter_mut().enumerate() {
        row.0 = numbers.map(|number| number[limb]);
    }
}

/// See [`Kernels::scatter`].
fn scatter(out: &mut [u64], rows: &[Row]) {
    for (lane, number) in out.chunks_exact_mut(rows.len()).enumerate() {
        number.iter_mut().zip(rows).for_each(|(limb, row)| *limb = row.0[lane]);
    }
}

/// See [`Kernels::select`].
fn select(out: &mut [Row], table: &[Row], digits: &Row) {
    out.fill(Row::ZERO);
    for (index, entry) in table.chunks_exact(out.len()).enumerate() {
        let masks = masks(index, digits);
        for (out, row) in out.iter_mut().zip(entry) {
            for (lane, mask) in masks.iter().enumerate() {
                out.0[lane] |= row.0[lane] & mask;
            }
        }
    }
}

/// See [`Kernels::select_shared`].
fn select_shared(out: &mut [Row], table: &[u64], digits: &Row) {
    out.fill(Row::ZERO);
    for (index, entry) in table.chunks_exact(out.len()).enumerate() {
        let masks = masks(index, digits);
        for (out, limb) in out.iter_mut().zip(entry) {
            for (lane, mask) in masks.iter().enumerate() {
                out.0[lane] |= limb & mask;
            }
        }
    }
}

/// All bits in the lanes whose digit is `index`, none in the others, without a branch.
fn masks(index: usize, digits: &Row) -> [u64; LANES] {
    digits.0.map(|digit| {
        let difference = digit ^ index as u64;
        ((difference | difference.wrapping_neg()) >> 63).wrapping_sub(1)
    })
}
