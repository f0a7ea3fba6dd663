//! What the assumptions of oblivious transfer cost an attacker, in bits, and how often an extension rests on each.
//!
//! A figure of `b` bits says that an attacker who takes `2^t` steps succeeds with a chance of `2^(t-b)` at most, by the cheapest attack
//! known. `docs/explanation/security-budget.md` adds figures up.

use crate::random::CHUNK;
use crate::schedule::{parts, runs};
use crate::silent::parameters::{INSTANCES, Parameters};
use crate::silent::position::{Position, Step};
use crate::{Demand, Extension, Role, Size};

/// Base OT: the computational Diffie-Hellman problem in a group of 252-bit order, by Pollard's rho.
pub const BASE_BITS: f64 = 126.0;

/// Base OTs of a setup, both directions together.
pub const BASE_COUNT: u64 = 256;

/// Sessions in a row that follow from the same base OTs, if each leaves something for the next ([`crate::Kept`]). Whoever breaks
/// one follows the later ones, so their terms add up.
pub const SESSIONS: u64 = 16;

/// An AES-128 key, by search.
pub const SEED_BITS: f64 = 128.0;

/// What an extension rests on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Strength {
    /// AES keys from which the trees of SoftSpokenOT and their streams grow, both directions together.
    pub seeds: u64,
    /// Bits of `delta`, by search.
    pub delta_bits: f64,
    /// Hashes of OTs under one key, of which an attacker compares each trial with all.
    pub hashed: u64,
    /// Bits of the weakest LPN instance; none without silent OT.
    pub lpn_bits: Option<f64>,
    /// LPN instances, both directions together.
    pub instances: u64,
    /// Hashes of a tree's nodes under one key.
    pub tree_hashes: u64,
}

/// The cheapest attack known on the weakest LPN instance of any size, in bits (the table of `docs/reference/protocols/ot.md`, to which tests
/// hold the parameters).
const LPN_BITS: f64 = 132.2;

impl Extension {
    /// What making `demand` rests on.
    pub fn strength(self, demand: &Demand) -> Strength {
        let field = self.field();
        let groups = 128 / field.k();
        // A table's entries are hashed, not its OTs.
        let directions = [Role::Client, Role::Server].map(|sender| {
            let tables = demand.tables(sender);
            (demand.ots(sender) - tables.ots() + 8 * tables.eights + 16 * tables.sixteens) as u64
        });
        let common = Strength {
            seeds: 2 * (groups << field.k()) as u64,
            // The lowest bit of `delta` is fixed.
            delta_bits: 127.0,
            hashed: directions.into_iter().max().unwrap_or(0).min(CHUNK as u64),
            lpn_bits: None,
            instances: 0,
            tree_hashes: 0,
        };
        match self {
            Self::SoftSpoken(_) => common,
            Self::Silent(size) => {
                let most = size.ladder().iter().map(Parameters::tree_hashes).max().unwrap_or(0);
                let iterations = [Role::Client, Role::Server].map(|sender| iterations(size, demand, sender));
                let instances = INSTANCES as u64 * iterations.iter().sum::<u64>();
                Strength { lpn_bits: Some(LPN_BITS), instances, tree_hashes: most, ..common }
            }
        }
    }
}

/// Iterations of one direction.
fn iterations(size: Size, demand: &Demand, sender: Role) -> u64 {
    let (mut position, mut count) = (Position::new(size.ladder()), 0);
    for part in parts(demand) {
        for run in runs(&part, sender) {
            while let Some(step) = position.step(run.count()) {
                count += u64::from(!matches!(step, Step::Grow(_)));
            }
        }
    }
    count
}

impl Parameters {
    /// Nodes of a group's trees that the receiver does not know and of which it sees the hash: one a level of every tree.
    fn tree_hashes(&self) -> u64 {
        self.group_blocks() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FieldBits, TableCounts, cost};

    const DEMAND: Demand = Demand { private_ands: 3_000_000, triples: 10_000_000, ..Demand::NONE };

    #[test]
    fn iterations_are_those_whose_seeds_travel() {
        for size in Size::ALL {
            let bytes = |demand: &Demand| cost::generate(demand, size, Role::Client).bytes_received;
            let only = Demand { private_ands: 3_000_000, ..Demand::NONE };
            let trees = size.ladder()[0];
            assert!(bytes(&only) > (trees.groups() * trees.group_blocks() * 16) as u64);
            assert_eq!(iterations(size, &only, Role::Client), 0);
            let count = iterations(size, &only, Role::Server);
            let last = size.ladder().last().expect("a ladder");
            let most = only.private_ands.div_ceil(last.free_groups(last) * last.group_outputs()) + size.ladder().len();
            assert!((1..=most as u64).contains(&count), "{count} of at most {most}");
        }
    }

    #[test]
    fn every_extension_states_what_it_rests_on() {
        for extension in Extension::ALL {
            let strength = extension.strength(&DEMAND);
            let silent = matches!(extension, Extension::Silent(_));
            assert_eq!((strength.lpn_bits.is_some(), strength.instances > 0), (silent, silent), "{extension:?}");
            assert_eq!(strength.hashed, 4096);
        }
        assert_eq!(Extension::SoftSpoken(FieldBits::Four).strength(&DEMAND).seeds, 2 * 32 * 16);
    }

    #[test]
    fn entries_of_tables_are_counted_as_hashes() {
        let few = Demand { tables_sent_by_server: TableCounts { eights: 1, sixteens: 10 }, ..Demand::NONE };
        assert_eq!(Extension::SoftSpoken(FieldBits::Four).strength(&few).hashed, 168);
    }
}
