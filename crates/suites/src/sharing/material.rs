//! What `prepare` makes and `infer` uses up, and its form in the store.
//!
//! A stored entry begins with the bodies of its keys, which are written as the dealer sends them and read as gates need
//! them, so that no party ever holds them all; or with all chunks of correlations but the first ([`super::refill`]). The head follows:
//! masks and shares packed to the ring's width, then the first stock of correlations or the seed of the keys.

use std::io::{self, Read, Seek, SeekFrom, Write};

use privet_ot::{Role, Stock};
use privet_prg::Seed;
use privet_ring::Modulus;
use privet_seal::Stored;

use super::keys::{self, Keys};
use super::plan::LinearLayer;
use super::triples::{self, Triples};
use super::{Plan, Suite, refill};
use crate::{Error, StoreError};

/// What non-linear steps use up.
pub enum Correlated {
    /// In suite `gmw`: what the first steps use up, and in an entry from the store the file that has the rest.
    Stock(Box<Stock>, Option<Stored>),
    /// In suite `fss`.
    Keys(Keys),
}

/// A party's half: its shares of `W r`, its correlations, and at the client the masks `r`.
pub struct Material {
    /// Uniform `r` for each opening; none at the server.
    pub masks: Vec<Vec<u64>>,
    /// Share of `W r` for each linear layer.
    pub shares: Vec<Vec<u64>>,
    /// For products of two values.
    pub triples: Triples,
    /// For the non-linear steps.
    pub correlated: Correlated,
}

impl Material {
    /// Writes the head of the stored form.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(&self, plan: &Plan, out: &mut dyn Write) -> io::Result<()> {
        self.masks.iter().try_for_each(|mask| out.write_all(&plan.mask_ring().pack(mask)))?;
        let mut shares = plan.prepared_linear().iter().zip(&self.shares);
        shares.try_for_each(|(layer, share)| out.write_all(&plan.share_ring(layer).pack(share)))?;
        self.triples.write(plan, out)?;
        self.correlated.write(out)
    }

    /// Reads the stored form of `role`'s half: its head now, its keys as they are needed.
    ///
    /// # Errors
    /// [`Error::Misuse`] or [`Error::Correlations`] if it is not this plan's material.
    pub fn read(stored: Stored, plan: &Plan, role: Role) -> Result<Self, Error> {
        let mut head = Head::of(stored, plan, role)?;
        let masks = if role == Role::Client { plan.masks() } else { &[] };
        let masks = masks.iter().map(|&len| head.vector(plan.mask_ring(), len)).collect::<Result<_, _>>()?;
        let share = |layer: &LinearLayer| head.vector(plan.share_ring(layer), layer.plan.output_len());
        let shares = plan.prepared_linear().iter().map(share).collect::<Result<_, _>>()?;
        let triples = head.triples(plan)?;
        Ok(Self { masks, shares, triples, correlated: head.correlated(plan)? })
    }
}

impl Triples {
    /// Writes their part of an entry's head: nothing in a plan without products.
    fn write(&self, plan: &Plan, out: &mut dyn Write) -> io::Result<()> {
        if plan.triples.is_empty() {
            return Ok(());
        }
        out.write_all(self.seed.as_bytes())?;
        let mut shares = plan.triples.iter().zip(&self.shares);
        shares.try_for_each(|(triple, share)| out.write_all(&triples::share_ring(plan, triple).pack(share)))
    }
}

impl Correlated {
    /// Writes the end of an entry's head.
    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        match self {
            Self::Stock(stock, _) => stock.write(out),
            Self::Keys(keys) => out.write_all(keys.seed().as_bytes()),
        }
    }
}

/// The head of a stored entry, as far as it is still to be read.
struct Head {
    stored: Stored,
    bytes_left: u64,
    /// Whether correlations come before it.
    is_chunked: bool,
}

impl Head {
    fn of(mut stored: Stored, plan: &Plan, role: Role) -> Result<Self, Error> {
        let keys: u64 = plan.keys.iter().map(|batches| keys::body_bytes(batches, role)).sum();
        let (mut later, end) = (plan.later_bytes(role), stored.seek(SeekFrom::End(0)).map_err(unreadable)?);
        // Versions before 0.3 had no chunks: all of their entry is the head.
        if later > 0 && end != plan.entry_bytes(role) {
            later = 0;
        }
        stored.seek(SeekFrom::Start(keys + later)).map_err(unreadable)?;
        Ok(Self { stored, bytes_left: end.saturating_sub(keys + later), is_chunked: later > 0 })
    }

    fn bytes(&mut self, count: usize) -> Result<Vec<u8>, Error> {
        self.bytes_left = self.bytes_left.checked_sub(count as u64).ok_or_else(damaged)?;
        let mut bytes = vec![0; count];
        self.stored.read_exact(&mut bytes).map_err(unreadable)?;
        Ok(bytes)
    }

    fn vector(&mut self, ring: Modulus, len: usize) -> Result<Vec<u64>, Error> {
        ring.unpack(&self.bytes(ring.packed_bytes(len))?, len).map_err(|_| damaged())
    }

    fn seed(&mut self) -> Result<Seed, Error> {
        let bytes = self.bytes(16)?;
        Ok(Seed::from_bytes(bytes.try_into().expect("16 bytes")))
    }

    fn triples(&mut self, plan: &Plan) -> Result<Triples, Error> {
        if plan.triples.is_empty() {
            return Ok(Triples::none());
        }
        let seed = self.seed()?;
        let share = |triple| self.vector(triples::share_ring(plan, triple), triples::output_len(plan, triple));
        let shares = plan.triples.iter().map(share).collect::<Result<_, _>>()?;
        Ok(Triples::new(plan, seed, shares))
    }

    /// All that is left.
    fn correlated(mut self, plan: &Plan) -> Result<Correlated, Error> {
        match plan.options().suite {
            Suite::Gmw { .. } => {
                let stock = refill::read(&mut self.stored, self.bytes_left, Stock::empty(Role::Client))?;
                let demand = if self.is_chunked { plan.stored_chunks()[0].demand } else { plan.online_cost().demand };
                if !stock.has_left(&demand) {
                    return Err(damaged());
                }
                Ok(Correlated::Stock(Box::new(stock), self.is_chunked.then_some(self.stored)))
            }
            Suite::Fss => {
                let seed = self.seed()?;
                if self.bytes_left > 0 {
                    return Err(damaged());
                }
                Ok(Correlated::Keys(Keys::new(seed, self.stored)))
            }
        }
    }
}

/// That material cannot be written.
pub(super) fn unwritten(error: io::Error) -> Error {
    StoreError::Io { path: "a temporary entry".into(), error }.into()
}

pub(super) fn unreadable(error: std::io::Error) -> Error {
    Error::Misuse(format!("material cannot be read: {error}"))
}

pub(super) fn damaged() -> Error {
    Error::Misuse("the stored material is of another program or damaged: prepare again".into())
}
