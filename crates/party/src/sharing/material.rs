//! What `prepare` makes and `infer` uses up, and its form in the store.

use privet_ot::Stock;
use privet_ring::Modulus;

use super::Plan;
use crate::Error;

/// The client's half: its masks, its shares of `W r`, its correlations.
pub struct ClientMaterial {
    /// Uniform `r` for each opening.
    pub masks: Vec<Vec<u64>>,
    /// Share of `W r` for each linear layer.
    pub shares: Vec<Vec<u64>>,
    /// Correlations for the non-linear steps.
    pub stock: Stock,
}

/// The server's half: its shares of `W r`, its correlations.
pub struct ServerMaterial {
    /// Share of `W r` for each linear layer.
    pub shares: Vec<Vec<u64>>,
    /// Correlations for the non-linear steps.
    pub stock: Stock,
}

impl ClientMaterial {
    /// The stored form: masks and shares packed to the ring's width, then the stock.
    pub fn to_bytes(&self, plan: &Plan) -> Vec<u8> {
        let mut bytes = pack(plan, self.masks.iter().chain(&self.shares));
        bytes.extend(self.stock.to_bytes());
        bytes
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// [`Error::Misuse`] or [`Error::Correlations`] if the bytes are not this plan's material.
    pub fn from_bytes(bytes: &[u8], plan: &Plan) -> Result<Self, Error> {
        let mut rest = bytes;
        let masks = unpack(plan, &mut rest, plan.masks().iter().copied())?;
        let shares = unpack(plan, &mut rest, outputs(plan))?;
        Ok(Self { masks, shares, stock: Stock::from_bytes(rest)? })
    }
}

impl ServerMaterial {
    /// The stored form: shares packed to the ring's width, then the stock.
    pub fn to_bytes(&self, plan: &Plan) -> Vec<u8> {
        let mut bytes = pack(plan, self.shares.iter());
        bytes.extend(self.stock.to_bytes());
        bytes
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// [`Error::Misuse`] or [`Error::Correlations`] if the bytes are not this plan's material.
    pub fn from_bytes(bytes: &[u8], plan: &Plan) -> Result<Self, Error> {
        let mut rest = bytes;
        let shares = unpack(plan, &mut rest, outputs(plan))?;
        Ok(Self { shares, stock: Stock::from_bytes(rest)? })
    }
}

fn outputs(plan: &Plan) -> impl Iterator<Item = usize> {
    plan.linear().iter().map(|layer| layer.plan.output_len())
}

fn pack<'a>(plan: &Plan, vectors: impl Iterator<Item = &'a Vec<u64>>) -> Vec<u8> {
    let ring = Modulus::new(plan.program().ring_bits());
    vectors.flat_map(|vector| ring.pack(vector)).collect()
}

fn unpack(plan: &Plan, bytes: &mut &[u8], lengths: impl Iterator<Item = usize>) -> Result<Vec<Vec<u64>>, Error> {
    let ring = Modulus::new(plan.program().ring_bits());
    let damaged = || Error::Misuse("the stored material is of another program or damaged: prepare again".into());
    lengths
        .map(|len| {
            let (vector, rest) = bytes.split_at_checked(ring.packed_bytes(len)).ok_or_else(damaged)?;
            *bytes = rest;
            ring.unpack(vector, len).map_err(|_| damaged())
        })
        .collect()
}
