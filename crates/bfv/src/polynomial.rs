//! Polynomials modulo `X^N + 1` and some primes, as residues modulo each; what hides them under a key.

use privet_prg::{Prg, Seed};
use zeroize::{Zeroize, Zeroizing};

use crate::arch::{CHUNK, Values, vectorised};
use crate::error::{Error, PeerMisbehaved};
use crate::ntt::Ntt;
use crate::sample::{self, Uniform};
use crate::wire::{pack, packed_bytes, unpack_to};

/// Residues modulo each of `L` primes, `[L][N]`: coefficients or transformed values, as the context says.
#[derive(Clone, Debug)]
pub(crate) struct Polynomial<const L: usize = 2>(pub(crate) [Values; L]);

/// A transformed polynomial that others are multiplied by, in the form that [`Ntt::multiply_add`] takes.
#[derive(Clone, Debug)]
pub(crate) struct Multiplier<const L: usize = 2>(pub(crate) [Values; L]);

impl<const L: usize> Polynomial<L> {
    pub(crate) fn zero(degree: usize) -> Self {
        Self(std::array::from_fn(|_| Values::zero(degree)))
    }

    /// The coefficients of a signed polynomial of at most `degree` terms.
    pub(crate) fn from_signed<T: Copy + Into<i64>>(ntts: &[Ntt; L], degree: usize, coefficients: &[T]) -> Self {
        Self(ntts.each_ref().map(|ntt| {
            let mut residues = Values::zero(degree);
            ntt.prime().reduce_signed_to(&mut residues[..coefficients.len()], coefficients);
            residues
        }))
    }

    /// Adds fresh errors to the coefficients.
    pub(crate) fn add_errors(&mut self, ntts: &[Ntt; L], prg: &mut Prg) {
        sample::errors(self.0[0].len(), prg, |first, errors| {
            for (residues, ntt) in self.0.iter_mut().zip(ntts) {
                let (prime, sums) = (*ntt.prime(), residues[first..].iter_mut().zip(errors));
                vectorised(|| sums.for_each(|(residue, &error)| *residue = prime.add_signed(*residue, error.into())));
            }
        });
    }

    pub(crate) fn add(&mut self, ntts: &[Ntt; L], other: &Self) {
        for ((sum, other), ntt) in self.0.iter_mut().zip(&other.0).zip(ntts) {
            let prime = *ntt.prime();
            vectorised(|| sum.iter_mut().zip(other).for_each(|(sum, &x)| *sum = prime.add(*sum, x)));
        }
    }

    pub(crate) fn forward(mut self, ntts: &[Ntt; L]) -> Self {
        self.0.iter_mut().zip(ntts).for_each(|(residues, ntt)| ntt.forward(residues));
        self
    }

    pub(crate) fn inverse(mut self, ntts: &[Ntt; L]) -> Self {
        self.0.iter_mut().zip(ntts).for_each(|(residues, ntt)| ntt.inverse(residues));
        self
    }

    /// A transformed polynomial as a multiplier.
    pub(crate) fn multiplier(mut self, ntts: &[Ntt; L]) -> Multiplier<L> {
        self.0.iter_mut().zip(ntts).for_each(|(values, ntt)| ntt.prepare(values));
        Multiplier(self.0)
    }

    /// Adds products of transformed polynomials to this one.
    pub(crate) fn multiply_add(&mut self, ntts: &[Ntt; L], terms: &[(&Self, &Multiplier<L>)]) {
        for (i, (sum, ntt)) in self.0.iter_mut().zip(ntts).enumerate() {
            let terms: Vec<(&[u64], &[u64])> = terms.iter().map(|(a, b)| (&a.0[i][..], &b.0[i][..])).collect();
            ntt.multiply_add(sum, &terms);
        }
    }

    /// The values at `sources`, in their order.
    pub(crate) fn permuted(&self, sources: &[u32]) -> Self {
        Self(self.0.each_ref().map(|values| {
            let mut permuted = Values::zero(sources.len());
            permuted.iter_mut().zip(sources).for_each(|(x, &source)| *x = values[source as usize]);
            permuted
        }))
    }

    /// A transformed polynomial divided by the last of its primes, rounding. `quotients` are the others, of which none is below half
    /// of the last, and `inverses` what the last one's inverse is modulo each.
    pub(crate) fn divide<const K: usize>(
        mut self,
        ntts: &[Ntt; L],
        quotients: &[Ntt; K],
        inverses: &[u64; K],
    ) -> Polynomial<K> {
        let mut rest = std::mem::take(&mut self.0[K]);
        let mut divided = Polynomial(std::array::from_fn(|i| std::mem::take(&mut self.0[i])));
        for ((values, ntt), &inverse) in divided.0.iter_mut().zip(quotients).zip(inverses) {
            ntt.scale(values, inverse);
        }
        let mut room = Values::zero(rest.len());
        divided.round_off([&mut rest, &mut room], &ntts[K], quotients, inverses);
        divided
    }

    /// Rounds a transformed polynomial that was multiplied by the inverse of the prime `last`, after what it was modulo that prime: `rest`,
    /// transformed. The primes and inverses are as [`Polynomial::divide`] has them; nothing of use is left in `rest` and `off`.
    pub(crate) fn round_off(
        &mut self,
        [rest, off]: [&mut Values; 2],
        last: &Ntt,
        ntts: &[Ntt; L],
        inverses: &[u64; L],
    ) {
        last.inverse(rest);
        let (divisor, above) = (*last.prime(), last.prime().value() / 2);
        // From above by half, so that what is taken off is nearest to zero.
        vectorised(|| rest.iter_mut().for_each(|x| *x = divisor.add(*x, above)));
        for ((values, ntt), &inverse) in self.0.iter_mut().zip(ntts).zip(inverses) {
            let prime = *ntt.prime();
            let half = prime.multiply(above, inverse);
            for (off, rest) in off.chunks_mut(CHUNK).zip(rest.chunks(CHUNK)) {
                off.copy_from_slice(rest);
                ntt.scale(off, inverse);
                vectorised(|| off.iter_mut().for_each(|off| *off = prime.sub(*off, half)));
            }
            ntt.forward(off);
            vectorised(|| values.iter_mut().zip(&*off).for_each(|(x, &off)| *x = prime.sub(*x, off)));
        }
    }

    /// Writes a seed and this polynomial, of coefficients `x`, as `x + e - a s`, transformed: the seed stands for `a`. `negated`:
    /// `-s`, transformed.
    pub(crate) fn write_masked(mut self, ntts: &[Ntt; L], negated: &Multiplier<L>, prg: &mut Prg, out: &mut Vec<u8>) {
        self.add_errors(ntts, prg);
        let mut masked = self.forward(ntts);
        let seed = prg.seed();
        let (mut uniform, mut a) = (Uniform::new(&seed), [0; CHUNK]);
        out.extend_from_slice(seed.as_bytes());
        for ((masked, negated), ntt) in masked.0.iter_mut().zip(&negated.0).zip(ntts) {
            for (masked, negated) in masked.chunks_mut(CHUNK).zip(negated.chunks(CHUNK)) {
                let a = &mut a[..masked.len()];
                uniform.fill(ntt.prime(), a);
                ntt.multiply_add(masked, &[(a, negated)]);
                pack(masked, ntt.prime().bits(), out);
            }
        }
    }

    /// Reads what [`Polynomial::write_masked`] wrote, refusing residues that are not reduced: the polynomial, and what the seed
    /// stands for.
    pub(crate) fn read_masked(
        ntts: &[Ntt; L],
        degree: usize,
        what: &'static str,
        bytes: &[u8],
    ) -> Result<[Self; 2], Error> {
        Self::read_masked_as(ntts, degree, what, bytes, |_, _, _| ())
    }

    /// [`Polynomial::read_masked`] with what `finish` makes of some values of both, while they are in the nearest cache: of those from a place on,
    /// modulo the prime with this number.
    pub(crate) fn read_masked_as(
        ntts: &[Ntt; L],
        degree: usize,
        what: &'static str,
        bytes: &[u8],
        finish: impl Fn(usize, usize, [&mut [u64]; 2]),
    ) -> Result<[Self; 2], Error> {
        let lengths = ntts.each_ref().map(|ntt| packed_bytes(degree, ntt.prime().bits()));
        let expected = size_of::<Seed>() + lengths.iter().sum::<usize>();
        let (seed, mut rest) = match bytes.split_first_chunk() {
            Some((seed, rest)) if bytes.len() == expected => (Seed::from_bytes(*seed), rest),
            _ => return Err(PeerMisbehaved::WrongLength { what, expected, actual: bytes.len() }.into()),
        };
        let mut uniform = Uniform::new(&seed);
        let mut parts = [(); 2].map(|()| Self(std::array::from_fn(|_| Values::with_capacity(degree))));
        let mut chunks = [(); 2].map(|()| Values::zero(CHUNK.min(degree)));
        for (i, (ntt, length)) in ntts.iter().zip(lengths).enumerate() {
            let (part, after) = rest.split_at(length);
            rest = after;
            let prime = ntt.prime();
            let places = (0..degree).step_by(CHUNK);
            for (first, packed) in places.zip(part.chunks(packed_bytes(chunks[0].len(), prime.bits()))) {
                let [residues, a] = &mut chunks;
                unpack_to(what, packed, residues, prime.bits())?;
                let largest = vectorised(|| residues.iter().fold(0, |most, &x| x.max(most)));
                if largest >= prime.value() {
                    let index = first + residues.iter().position(|&x| x >= prime.value()).unwrap_or_default();
                    return Err(PeerMisbehaved::NotReduced { what, index, prime: prime.value() }.into());
                }
                uniform.fill(prime, a);
                finish(i, first, [residues, a]);
                parts.iter_mut().zip(&chunks).for_each(|(part, chunk)| part.0[i].extend_from(chunk));
            }
        }
        Ok(parts)
    }

    /// Adds an encryption of zero `(b u, a u + e)` with fresh ternary `u` and error `e` to a ciphertext; gives coefficients.
    ///
    /// The first part carries no error of its own: it leaves under a uniform mask or a flood, which hides whatever it is.
    pub(crate) fn randomise(
        [mut c0, mut c1]: [Self; 2],
        [b, a]: [&Multiplier<L>; 2],
        ntts: &[Ntt; L],
        prg: &mut Prg,
    ) -> [Self; 2] {
        let degree = c0.0[0].len();
        let secret = sample::ternary(degree, prg);
        let mut u = Zeroizing::new(Values::zero(degree));
        for (i, ntt) in ntts.iter().enumerate() {
            ntt.prime().reduce_signed_to(&mut u, &secret);
            ntt.forward(&mut u);
            ntt.multiply_add_pair([&mut c0.0[i], &mut c1.0[i]], &[([&b.0[i], &a.0[i]], [&u])]);
        }
        let mut c1 = c1.inverse(ntts);
        c1.add_errors(ntts, prg);
        [c0.inverse(ntts), c1]
    }
}

#[cfg(test)]
impl<const L: usize> Multiplier<L> {
    /// The polynomial that this was made of.
    pub(crate) fn polynomial(&self, ntts: &[Ntt; L]) -> Polynomial<L> {
        let mut values = self.0.clone();
        values.iter_mut().zip(ntts).for_each(|(values, ntt)| ntt.undo(values));
        Polynomial(values)
    }
}

impl<const L: usize> Zeroize for Polynomial<L> {
    fn zeroize(&mut self) {
        self.0.zeroize();
    }
}

impl<const L: usize> Zeroize for Multiplier<L> {
    fn zeroize(&mut self) {
        self.0.zeroize();
    }
}
