//! The result of a comparison by digits in a ring: linear in opened bits and in products of the bits that hide them.
//!
//! As each factor of `l_m + e_m (l_(m-1) + ...)` is an opened bit, or 1 less a hidden one, the sum is linear in the hidden bits' monomials
//! ([`monomials`]), of which the dealer shares each as an element of the ring. Sums are made column by column: terms of opened bits choose
//! and sign whole columns of monomials.

use privet_prg::Wiped;
use privet_ring::select::add_products;
use privet_ring::{Bits, Modulus};
use rayon::prelude::*;
use zeroize::Zeroizing;

use crate::digits::{PART, monomials, multiply};
use crate::source::Region;
use crate::streams::Streams;
use crate::{Error, Role};

/// Parts that a thread takes at once: they are longer work than digits are.
const PARTS_A_JOB: usize = 2;

/// A part of the sum: where `chosen`, a number is added, or subtracted where it is `negated` as well. 64 elements to a word.
struct Term {
    /// The monomial whose share that is; without one, 1.
    monomial: Option<usize>,
    chosen: Vec<u64>,
    negated: Vec<u64>,
}

/// Everywhere, and the sign that changes nothing.
fn always(words: usize) -> [Vec<u64>; 2] {
    [vec![u64::MAX; words], vec![0; words]]
}

/// Writes the terms of the sum by opened columns, times a monomial or 1 (`one`), where `chosen` and with the sign of `negated`. `first`:
/// the first of the monomials of its digits times `one`.
fn terms(opened: &[&[u64]], one: Option<usize>, first: usize, [chosen, negated]: [&[u64]; 2], out: &mut Vec<Term>) {
    let and = |x: &[u64], y: &[u64]| x.iter().zip(y).map(|(x, y)| x & y).collect::<Vec<_>>();
    let xor = |x: &[u64], y: &[u64]| x.iter().zip(y).map(|(x, y)| x ^ y).collect::<Vec<_>>();
    // A bit that is opened as 1 is 1 less a hidden one, else it is the hidden one.
    let mut push_terms = |opened: &[u64], hidden: usize| {
        out.push(Term { monomial: one, chosen: and(chosen, opened), negated: negated.to_vec() });
        out.push(Term { monomial: Some(hidden), chosen: chosen.to_vec(), negated: xor(negated, opened) });
    };
    let [lower @ .., less, equal] = opened else { return push_terms(opened[0], first) };
    push_terms(less, first);
    let (plain, hidden) = (first + 2, first + 1);
    let times = plain + monomials(lower.len().div_ceil(2));
    terms(lower, one, plain, [&and(chosen, equal), negated], out);
    terms(lower, Some(hidden), times, [chosen, &xor(negated, equal)], out);
}

/// `sums[i] += x[i]` where the term is chosen, with its sign.
fn add(sums: &mut [u64], term: &Term, x: &[u64]) {
    // What is not chosen is subtracted and added again.
    let complement: Vec<u64> = term.chosen.iter().map(|word| !word).collect();
    let signs: Vec<u64> = complement.iter().zip(&term.negated).map(|(word, negated)| word | negated).collect();
    add_products(sums, &complement, x, &signs, x);
}

/// The monomials of so many digits' hidden bits in a ring, and perhaps a number that is added to the sum.
#[derive(Clone, Copy)]
pub(crate) struct RingProducts {
    pub(crate) digits: usize,
    pub(crate) ring: Modulus,
    /// Whether there is such a number.
    pub(crate) based: bool,
}

impl RingProducts {
    /// Ring elements of one comparison.
    pub(crate) fn count(&self) -> usize {
        monomials(self.digits) + usize::from(self.based)
    }

    /// Bytes of the server's shares for `count` comparisons: packed columns, part by part.
    pub(crate) fn bytes(&self, count: usize) -> usize {
        let part = |count| self.count() * self.ring.packed_bytes(count);
        count / PART * part(PART) + part(count % PART)
    }

    /// Writes the server's shares, of which the client's come from `parts`. `hidden`: the bits that hide columns; `bases`: what is added.
    pub(crate) fn deal(&self, hidden: &[Bits], bases: &[u64], parts: &mut [Streams], out: &mut [u8]) {
        let (ring, count, products) = (self.ring, hidden[0].len(), Zeroizing::new(multiply(hidden)));
        out.par_chunks_mut(self.bytes(PART)).zip(parts).enumerate().for_each(|(part, (packed, streams))| {
            let first = part * PART;
            let len = PART.min(count - first);
            let (words, ones) = (len.div_ceil(64), vec![1; len]);
            let [everywhere, _] = always(words);
            let (mut client_share, mut values) = (Wiped::from(vec![0; len]), Wiped::from(vec![0; len]));
            for (column, out) in packed.chunks_exact_mut(ring.packed_bytes(len)).enumerate() {
                // The client's share comes packed, and what is left takes its place.
                streams.packed_shares(out);
                ring.unpack_into(&mut client_share, out);
                let bits = match column.checked_sub(usize::from(self.based)) {
                    None => {
                        values.copy_from_slice(&bases[first..][..len]);
                        &vec![0; words]
                    }
                    Some(product) => {
                        values.fill(0);
                        &products[product].words()[first / 64..][..words]
                    }
                };
                add_products(&mut values, bits, &ones, &everywhere, &client_share);
                ring.reduce_all(&mut values);
                ring.pack_into(out, &values);
            }
        });
    }

    /// This party's shares of the sums, with what is added, from opened `columns`; the client's shares come from
    /// `parts`, the server's from `region`. Fails if `region` cannot be read.
    pub(crate) fn sum(
        &self,
        role: Role,
        columns: &[Bits],
        parts: &mut [Streams],
        region: Option<Region<'_>>,
    ) -> Result<Vec<u64>, Error> {
        let (ring, count) = (self.ring, columns[0].len());
        let mut sums = vec![0; count];
        let chunks = sums.par_chunks_mut(PART).zip(parts).enumerate().with_min_len(PARTS_A_JOB);
        let most = PART.min(count);
        let room = || (Wiped::from(vec![0; self.bytes(most)]), Wiped::from(vec![0; most]));
        chunks.try_for_each_init(room, |(buffer, column), (part, (sums, streams))| {
            let (first, len) = (part * PART, sums.len());
            let (words, column) = (len.div_ceil(64), &mut column[..len]);
            let columns: Vec<&[u64]> = columns.iter().map(|column| &column.words()[first / 64..][..words]).collect();
            let (mut terms, [chosen, negated]) = (Vec::new(), always(words));
            self::terms(&columns, None, 0, [&chosen, &negated], &mut terms);

            let packed = ring.packed_bytes(len);
            let bytes = match &region {
                None => {
                    let shares = &mut buffer[..self.count() * packed];
                    streams.packed_shares(shares);
                    shares
                }
                Some(region) => region.read(part * self.bytes(PART), self.count() * packed, buffer)?,
            };
            let (base, products) = bytes.split_at(if self.based { packed } else { 0 });
            if self.based {
                ring.unpack_into(sums, base);
            }
            column.fill(role.public(1));
            terms.iter().filter(|term| term.monomial.is_none()).for_each(|term| add(sums, term, column));
            for (monomial, bytes) in products.chunks_exact(packed).enumerate() {
                ring.unpack_into(column, bytes);
                let of_monomial = terms.iter().filter(|term| term.monomial == Some(monomial));
                of_monomial.for_each(|term| add(sums, term, column));
            }
            ring.reduce_all(sums);
            Ok::<_, Error>(())
        })?;
        Ok(sums)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digits::columns;

    #[test]
    fn the_sum_is_right_for_every_pair_of_digits_and_every_hidden_bit() {
        for digits in 1..=4 {
            // Digits of one bit: what is compared, what it is compared with, and the bits over what is opened; one element each.
            let elements: Vec<(u64, u64, u64)> = (0..1_u64 << (2 * digits))
                .flat_map(|pair| {
                    (0..1 << columns(digits)).map(move |flip| (pair & ((1 << digits) - 1), pair >> digits, flip))
                })
                .collect();
            let column = |bit: &dyn Fn(u64, u64, u64) -> bool| {
                Bits::from_bools(
                    &elements.iter().map(|&(public, secret, flip)| bit(public, secret, flip)).collect::<Vec<_>>(),
                )
            };
            let flips: Vec<Bits> = (0..columns(digits)).map(|at| column(&|_, _, flip| flip >> at & 1 == 1)).collect();
            let opened: Vec<Bits> = (0..columns(digits))
                .map(|at| {
                    column(&|public, secret, flip| {
                        let [p, s] = [public, secret].map(|x| x >> at.div_ceil(2) & 1);
                        (if at == 0 || at % 2 == 1 { p < s } else { p == s }) ^ (flip >> at & 1 == 1)
                    })
                })
                .collect();
            let products = multiply(&flips);
            let opened: Vec<&[u64]> = opened.iter().map(Bits::words).collect();
            let (mut terms, [chosen, negated]) = (Vec::new(), always(elements.len().div_ceil(64)));
            self::terms(&opened, None, 0, [&chosen, &negated], &mut terms);
            let mut sums = vec![0; elements.len()];
            for term in &terms {
                let x: Vec<u64> =
                    (0..elements.len()).map(|i| term.monomial.map_or(1, |at| u64::from(products[at].get(i)))).collect();
                add(&mut sums, term, &x);
            }
            let expected: Vec<u64> = elements.iter().map(|&(public, secret, _)| u64::from(public < secret)).collect();
            assert_eq!(sums, expected);
        }
    }
}
