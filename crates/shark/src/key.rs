//! The keys of authentication codes: a dealer knows them, each party has a share.
//!
//! `Delta` (128 bits) authenticates values, `delta` (64 bits, odd) bits. Both are fixed for as long as a client and a server
//! keep a [setup](crate::setup), so they are made from the setup's seeds.

use privet_fss::{Role, Seeds};
use privet_prg::{Prg, Seed};
use zeroize::{Zeroize, ZeroizeOnDrop};

/// One party's shares of both keys.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct Key {
    #[zeroize(skip)]
    role: Role,
    /// Share of `Delta`: the two add up to it modulo 2^128.
    values: u128,
    /// Share of `delta`: their exclusive or is `delta`.
    bits: u64,
}

impl Key {
    /// The shares of the party with this seed of a setup.
    pub fn new(role: Role, seed: &Seed) -> Self {
        let mut prg = Prg::from_seed(seed);
        let (values, bits) = (prg.block(), prg.word());
        // So that the lowest bits of two shares of a bit's code are shares of the bit.
        Self { role, values, bits: bits & !1 | u64::from(role == Role::Server) }
    }

    /// Whose it is.
    pub fn role(&self) -> Role {
        self.role
    }

    /// This party's share of a bit that is 1: `delta`'s.
    pub(crate) fn bits(&self) -> u64 {
        self.bits
    }

    /// This party's shares of the public constant 1: of the value, and of its code.
    pub(crate) fn units(&self) -> [u128; 2] {
        [u128::from(self.role == Role::Server), self.values]
    }
}

/// Both keys, as the dealer has them.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct Keys {
    pub(crate) values: u128,
    pub(crate) bits: u64,
}

impl Keys {
    /// Those of the setup with these seeds.
    pub fn new(seeds: &Seeds) -> Self {
        let [client, server] =
            [(Role::Client, &seeds.client), (Role::Server, &seeds.server)].map(|(r, s)| Key::new(r, s));
        Self { values: client.values.wrapping_add(server.values), bits: client.bits ^ server.bits }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_party_of_every_setup_has_keys_of_its_own() {
        let setups = [1, 3].map(|i| Seeds { client: Seed::from_block(i), server: Seed::from_block(i + 1) });
        let keys = setups.each_ref().map(Keys::new);
        let shares = [1, 2, 3, 4].map(|i| Key::new(Role::Client, &Seed::from_block(i)));
        let values: HashSet<u128> =
            keys.iter().map(|keys| keys.values).chain(shares.iter().map(|key| key.values)).collect();
        let bits: HashSet<u64> = keys.iter().map(|keys| keys.bits).chain(shares.iter().map(|key| key.bits)).collect();
        assert_eq!((values.len(), bits.len()), (6, 6));
        assert!(keys.iter().all(|keys| keys.bits & 1 == 1));
    }
}
