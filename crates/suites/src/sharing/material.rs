//! What `prepare` makes and `infer` uses up, and its form in the store.
//!
//! A stored entry begins with the bodies of its keys, which are written as the dealer sends them and read as gates need
//! them, so that no party ever holds them all; or with all chunks of correlations but the first ([`super::refill`]). The head follows:
//! masks and shares packed to the ring's width, then the first stock of correlations or the seed of the keys.

use std::io::{Read, Seek, SeekFrom};

use privet_ot::{Role, Stock};
use privet_prg::Seed;
use privet_ring::Modulus;
use privet_seal::Stored;
use zeroize::Zeroizing;

use super::keys::{self, Keys};
use super::party::fss_role;
use super::triples::{self, Triples};
use super::{Plan, Suite};
use crate::Error;

/// What non-linear steps use up.
pub enum Correlated {
    /// In suite `gmw`: what the first steps use up, and in an entry from the store the file that has the rest.
    Stock(Box<Stock>, Option<Stored>),
    /// In suite `fss`.
    Keys(Keys),
}

/// The client's half: its masks, its shares of `W r`, its correlations.
pub struct ClientMaterial {
    /// Uniform `r` for each opening.
    pub masks: Vec<Vec<u64>>,
    /// Share of `W r` for each linear layer.
    pub shares: Vec<Vec<u64>>,
    /// For products of two values.
    pub triples: Triples,
    /// For the non-linear steps.
    pub correlated: Correlated,
}

/// The server's half: its shares of `W r`, its correlations.
pub struct ServerMaterial {
    /// Share of `W r` for each linear layer.
    pub shares: Vec<Vec<u64>>,
    /// For products of two values.
    pub triples: Triples,
    /// For the non-linear steps.
    pub correlated: Correlated,
}

impl ClientMaterial {
    /// The head of the stored form.
    pub fn head(&self, plan: &Plan) -> Vec<u8> {
        let mut bytes = packed(&self.masks, plan.mask_ring());
        bytes.extend(packed(&self.shares, plan.product_ring()));
        self.triples.write(plan, &mut bytes);
        self.correlated.write(&mut bytes);
        bytes
    }

    /// Reads the stored form: its head now, its keys as they are needed.
    ///
    /// # Errors
    /// [`Error::Misuse`] or [`Error::Correlations`] if it is not this plan's material.
    pub fn read(stored: Stored, plan: &Plan) -> Result<Self, Error> {
        let (head, body) = read_head(stored, plan, Role::Client)?;
        let mut rest = head.as_slice();
        let masks = unpack(plan.mask_ring(), &mut rest, plan.masks().iter().copied())?;
        let shares = unpack(plan.product_ring(), &mut rest, outputs(plan))?;
        let triples = triples(plan, &mut rest)?;
        Ok(Self { masks, shares, triples, correlated: correlated(plan, rest, body)? })
    }
}

impl ServerMaterial {
    /// The head of the stored form.
    pub fn head(&self, plan: &Plan) -> Vec<u8> {
        let mut bytes = packed(&self.shares, plan.product_ring());
        self.triples.write(plan, &mut bytes);
        self.correlated.write(&mut bytes);
        bytes
    }

    /// Reads the stored form: its head now, its keys as they are needed.
    ///
    /// # Errors
    /// [`Error::Misuse`] or [`Error::Correlations`] if it is not this plan's material.
    pub fn read(stored: Stored, plan: &Plan) -> Result<Self, Error> {
        let (head, body) = read_head(stored, plan, Role::Server)?;
        let mut rest = head.as_slice();
        let shares = unpack(plan.product_ring(), &mut rest, outputs(plan))?;
        let triples = triples(plan, &mut rest)?;
        Ok(Self { shares, triples, correlated: correlated(plan, rest, body)? })
    }
}

impl Triples {
    /// Writes their part of an entry's head: nothing in a plan without products.
    fn write(&self, plan: &Plan, bytes: &mut Vec<u8>) {
        if !plan.triples().is_empty() {
            bytes.extend(self.seed.as_bytes());
            let shares = plan.triples().iter().zip(&self.shares);
            bytes.extend(shares.flat_map(|(triple, share)| triples::share_ring(plan, triple).pack(share)));
        }
    }
}

fn triples(plan: &Plan, bytes: &mut &[u8]) -> Result<Triples, Error> {
    if plan.triples().is_empty() {
        return Ok(Triples::none());
    }
    let (seed, rest) = bytes.split_first_chunk().ok_or_else(damaged)?;
    *bytes = rest;
    let share = |triple| unpack_one(triples::share_ring(plan, triple), bytes, triples::output_len(plan, triple));
    let shares = plan.triples().iter().map(share).collect::<Result<_, _>>()?;
    Ok(Triples::new(plan, Seed::from_bytes(*seed), shares))
}

impl Correlated {
    /// Writes the end of an entry's head.
    fn write(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Stock(stock, _) => bytes.extend(Zeroizing::new(stock.to_bytes()).iter()),
            Self::Keys(keys) => bytes.extend(keys.seed().as_bytes()),
        }
    }
}

fn packed(vectors: &[Vec<u64>], ring: Modulus) -> Vec<u8> {
    vectors.iter().flat_map(|vector| ring.pack(vector)).collect()
}

/// What a stored entry begins with.
struct Body {
    stored: Stored,
    /// Whether that is correlations.
    is_chunked: bool,
}

/// The head of a stored entry, and the file with what comes before.
fn read_head(mut stored: Stored, plan: &Plan, role: Role) -> Result<(Vec<u8>, Body), Error> {
    let keys: u64 = plan.keys().iter().map(|batches| keys::body_bytes(batches, fss_role(role))).sum();
    let mut later = plan.later_bytes(role);
    // Versions before 0.3 had no chunks: all of their entry is the head, and shorter by the headers of later chunks.
    if later > 0 && stored.seek(SeekFrom::End(0)).map_err(unreadable)? <= plan.whole_bytes(role) {
        later = 0;
    }
    let mut head = Vec::new();
    stored.seek(SeekFrom::Start(keys + later)).and_then(|_| stored.read_to_end(&mut head)).map_err(unreadable)?;
    Ok((head, Body { stored, is_chunked: later > 0 }))
}

fn correlated(plan: &Plan, rest: &[u8], body: Body) -> Result<Correlated, Error> {
    match plan.options().suite {
        Suite::Gmw { .. } => {
            let stock = Stock::from_bytes(rest)?;
            let demand = if body.is_chunked { plan.stored_chunks()[0].demand } else { plan.online_cost().demand };
            if stock.left() != demand {
                return Err(damaged());
            }
            Ok(Correlated::Stock(Box::new(stock), body.is_chunked.then_some(body.stored)))
        }
        Suite::Fss => {
            let seed = Seed::from_bytes(rest.try_into().map_err(|_| damaged())?);
            Ok(Correlated::Keys(Keys::new(seed, body.stored)))
        }
    }
}

fn outputs(plan: &Plan) -> impl Iterator<Item = usize> {
    plan.prepared_linear().iter().map(|layer| layer.plan.output_len())
}

fn unpack(ring: Modulus, bytes: &mut &[u8], lengths: impl Iterator<Item = usize>) -> Result<Vec<Vec<u64>>, Error> {
    lengths.map(|len| unpack_one(ring, bytes, len)).collect()
}

fn unpack_one(ring: Modulus, bytes: &mut &[u8], len: usize) -> Result<Vec<u64>, Error> {
    let (vector, rest) = bytes.split_at_checked(ring.packed_bytes(len)).ok_or_else(damaged)?;
    *bytes = rest;
    ring.unpack(vector, len).map_err(|_| damaged())
}

pub(super) fn unreadable(error: std::io::Error) -> Error {
    Error::Misuse(format!("material cannot be read: {error}"))
}

pub(super) fn damaged() -> Error {
    Error::Misuse("the stored material is of another program or damaged: prepare again".into())
}
