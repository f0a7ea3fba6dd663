//! What a client and a server keep for all runs of a program: keys, and the server's weights as authenticated values.
//!
//! The dealer draws two seeds for it. Each party's keys come from its seed. Of a vector `W` of weights in Z_2^n the server
//! publishes `V = W - A`, with `A` uniform in Z_2^n from the server's seed, and the integers `W' = V + A` are authenticated: the
//! client's share of the value is zero, the server's is `W'`; the shares of the code of `A` are random at the client, from
//! its seed, and dealt to the server, and each party adds `Delta_i V`. The dealer learns `A` and no weight, the client `V`,
//! which is uniform.
//!
//! The dealer needs no memory: from the seeds it makes the keys ([`Keys::new`]) and `A` ([`Hiding`]) again for every run.
//!
//! A setup ends with the first error of which [`crate::Error::spoils_setup`] is true.

use std::io::Write;

use privet_fss::{Error as KeyError, Role, Seeds, Source};
use privet_prg::{Prg, Seed};
use privet_ring::Modulus;
use privet_ring::wide::{Cut, Operand};
use rayon::prelude::*;
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::dealer::{MASK_BYTES, Masks};
use crate::{Error, Key, Keys, PeerMisbehaved, Values};

/// What is drawn from a seed behind the keys.
fn stream(seed: &Seed) -> Prg {
    let mut prg = Prg::from_seed(seed);
    // A block that no key is made of: keys take the first two.
    let _ = [prg.seed(), prg.seed()];
    Prg::from_seed(&prg.seed())
}

fn hidden(prg: &mut Prg, ring: Modulus, count: usize) -> Zeroizing<Vec<u64>> {
    let mut hidden = Zeroizing::new(vec![0; count]);
    prg.fill_words(&mut hidden);
    ring.reduce_all(&mut hidden);
    hidden
}

/// The dealer's side of a setup: what hides the weights, vector by vector in the program's order.
pub struct Hiding {
    keys: Keys,
    hidden: Prg,
    codes: Prg,
}

impl Hiding {
    /// Of the setup with these seeds.
    pub fn new(seeds: &Seeds) -> Self {
        Self { keys: Keys::new(seeds), hidden: stream(&seeds.server), codes: stream(&seeds.client) }
    }

    /// `A` of the next vector of `count` weights: what [`crate::Layer::deal`] needs in each run.
    pub fn next(&mut self, ring: Modulus, count: usize) -> Zeroizing<Vec<u64>> {
        hidden(&mut self.hidden, ring, count)
    }

    /// Writes the server's shares of the codes of the next vector, 16 bytes for each weight: once for a setup.
    ///
    /// # Errors
    /// If `out` fails.
    pub fn deal(&mut self, ring: Modulus, count: usize, out: &mut dyn Write) -> Result<(), KeyError> {
        let hidden = self.next(ring, count);
        let mut codes: Masks = Zeroizing::new(vec![0; count]);
        self.codes.fill_blocks(&mut codes);
        for (code, hidden) in codes.iter_mut().zip(hidden.iter()) {
            *code = self.keys.values.wrapping_mul((*hidden).into()).wrapping_sub(*code).to_le();
        }
        Ok(out.write_all(bytemuck::must_cast_slice(&codes))?)
    }
}

/// One party's side of a setup, which takes up the weights vector by vector in the program's order.
pub struct Setup {
    key: Key,
    stream: Prg,
}

impl Setup {
    /// Of the party with this seed.
    pub fn new(role: Role, seed: &Seed) -> Self {
        Self { key: Key::new(role, seed), stream: stream(seed) }
    }

    /// This party's keys.
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// Hides the server's next vector; reads the shares of its codes from `body`. Returns the message for the client too.
    ///
    /// # Errors
    /// What `body` fails with.
    ///
    /// # Panics
    /// At the client.
    pub fn hide(&mut self, ring: Modulus, weights: &[i64], body: &mut dyn Source) -> Result<(Weights, Vec<u8>), Error> {
        assert_eq!(self.key.role(), Role::Server, "the weights are the server's");
        let hidden = hidden(&mut self.stream, ring, weights.len());
        let (codes, _) = body.pull(weights.len() * MASK_BYTES)?.as_chunks();
        let public = weights.iter().zip(hidden.iter()).map(|(w, a)| ring.reduce((*w as u64).wrapping_sub(*a)));
        let public: Vec<u64> = public.collect();
        let codes = Zeroizing::new(codes.iter().map(|code| u128::from_le_bytes(*code)).collect());
        let message = ring.pack(&public);
        Ok((Weights::new(&self.key, ring, &message, public, Some(&hidden), codes), message))
    }

    /// Takes up the server's next vector of `count` weights from its message.
    ///
    /// # Errors
    /// If the message has another length or bits behind its end.
    ///
    /// # Panics
    /// At the server.
    pub fn take(&mut self, ring: Modulus, count: usize, message: &[u8]) -> Result<Weights, Error> {
        assert_eq!(self.key.role(), Role::Client, "the weights are the server's");
        let public = read_hidden(ring, count, message)?;
        let mut codes = Zeroizing::new(vec![0; count]);
        self.stream.fill_blocks(&mut codes);
        Ok(Weights::new(&self.key, ring, message, public, None, codes))
    }
}

/// `V` of a vector of `count` weights from the server's message, `[n]`.
///
/// # Errors
/// If the message has another length or bits behind its end.
pub fn read_hidden(ring: Modulus, count: usize, message: &[u8]) -> Result<Vec<u64>, Error> {
    let public = ring.unpack(message, count)?;
    if ring.pack(&public) == message { Ok(public) } else { Err(PeerMisbehaved::Padding.into()) }
}

/// One party's half of a vector of authenticated weights, ready for products; wiped on drop.
pub struct Weights {
    role: Role,
    pub(crate) public: Vec<u64>,
    /// `W'` at the server; the client's shares are zero.
    pub(crate) whole: Option<Cut>,
    /// Shares of `Delta W'`.
    pub(crate) codes: Cut,
    digest: [u8; 32],
}

impl Weights {
    /// `hidden`: `A`, at the server; `codes`: shares of its codes.
    fn new(
        key: &Key,
        ring: Modulus,
        message: &[u8],
        public: Vec<u64>,
        hidden: Option<&[u64]>,
        mut codes: Zeroizing<Vec<u128>>,
    ) -> Self {
        let [_, code] = key.units();
        let whole = hidden.map(|hidden| {
            let whole = public.iter().zip(hidden).map(|(v, a)| u128::from(*v) + u128::from(*a));
            Operand::doubles(&Zeroizing::new(whole.collect::<Vec<_>>()), ring.bits() + 1).cut()
        });
        codes.par_iter_mut().zip(&public).with_min_len(4096).for_each(|(share, v)| {
            *share = share.wrapping_add(code.wrapping_mul((*v).into()));
        });
        let digest = Sha256::new_with_prefix(ring.bits().to_le_bytes()).chain_update(message).finalize().into();
        let codes = Operand::doubles(&codes, u128::BITS).cut();
        Self { role: key.role(), public, whole, codes, digest }
    }

    /// Whose half it is.
    pub fn role(&self) -> Role {
        self.role
    }

    /// Number of weights.
    pub fn len(&self) -> usize {
        self.public.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.public.is_empty()
    }

    /// `V`, `[n]`.
    pub fn public(&self) -> &[u64] {
        &self.public
    }

    /// A hash of `V`, which both parties have [`crate::Party::state`]d in every run: so a client that was sent another `V`
    /// notices for certain.
    pub fn digest(&self) -> &[u8; 32] {
        &self.digest
    }

    /// The weights as values: for biases.
    pub fn values(&self) -> Values {
        let shares = self.whole.as_ref().map_or_else(|| vec![0; self.len()], Cut::values);
        Values::from_parts(shares, self.codes.values())
    }
}
