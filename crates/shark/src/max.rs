//! Maxima of groups and where they are, as a knockout tournament of `max(a, b) = b + relu(a - b)`.
//!
//! A level opens the differences behind fresh masks and takes one [`Relu`]: two rounds. The position of a winner is
//! `i_b + [a >= b] (i_a - i_b)` with the bit that the ReLU has anyway; the differences of positions are opened along with those
//! of values, so that positions take no round of their own.

use privet_fss::KeyBytes;
use privet_ring::window::Groups;
use privet_ring::{Modulus, tournament};

use crate::dealer::{Dealer, MASK_BYTES};
use crate::{Error, Gate, Masked, Party, Relu, Values, select};

/// Maxima in Z_2^n of groups whose members differ by less than `2^(n-1)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tournament {
    ring: Modulus,
    /// Matches of each level.
    levels: Vec<usize>,
    positions: bool,
}

impl Tournament {
    /// Only the maxima. `sizes`: how many groups there are of each size, which is at least 1.
    ///
    /// # Panics
    /// If a group is empty, or unless `1 <= bits <= 64`.
    pub fn maxima(bits: u32, sizes: impl IntoIterator<Item = (usize, usize)>) -> Self {
        let sizes: Vec<_> = sizes.into_iter().collect();
        assert!(sizes.iter().all(|(size, count)| *size > 0 || *count == 0), "no group is empty");
        Self { ring: Modulus::new(bits), levels: tournament::matches(sizes), positions: false }
    }

    /// The maxima and their positions within each group: the first of several.
    ///
    /// # Panics
    /// If a group is empty, or unless `1 <= bits <= 64`.
    pub fn positions(bits: u32, sizes: impl IntoIterator<Item = (usize, usize)>) -> Self {
        Self { positions: true, ..Self::maxima(bits, sizes) }
    }

    fn relu(&self) -> Relu {
        Relu::new(self.ring.bits(), 0, self.ring.bits())
    }

    /// Bytes of the key.
    pub fn key_bytes(&self) -> KeyBytes {
        let level = |count: usize| {
            let masks = if self.positions { 2 } else { 1 };
            let selected = if self.positions { select::key_bytes(count) } else { KeyBytes::default() };
            self.relu().key_bytes(count) + selected + KeyBytes { words: 0, corrections: masks * count * MASK_BYTES }
        };
        self.levels.iter().copied().map(level).fold(KeyBytes::default(), |sum, level| sum + level)
    }

    /// Bytes of each message that either party sends.
    pub fn message_bytes(&self) -> Vec<usize> {
        let opened = if self.positions { 32 } else { 16 };
        self.levels
            .iter()
            .flat_map(|&count| [vec![count * opened], self.relu().message_bytes(count)].concat())
            .collect()
    }

    /// Deals.
    pub fn deal(&self, dealer: &mut Dealer<'_>) -> Result<(), Error> {
        for &count in &self.levels {
            let both = dealer.masks(if self.positions { 2 * count } else { count })?;
            let hidden = self.relu().deal_with_sign(dealer, &both[..count])?;
            if self.positions {
                select::deal(dealer, &hidden, &both[count..])?;
            }
        }
        Ok(())
    }

    /// The maximum of each of `groups` (of indices into `x`), and its position if this tournament has them. Two rounds for
    /// each level.
    ///
    /// # Panics
    /// If the groups are not of the sizes that this was made for.
    pub fn evaluate(
        &self,
        party: &mut Party<'_>,
        groups: &Groups,
        x: &Values,
    ) -> Result<(Values, Option<Values>), Error> {
        let mut sizes = groups.runs();
        assert_eq!(tournament::matches(sizes.iter().copied()), self.levels, "groups of other sizes");
        let mut values = x.gather(&groups.indices().collect::<Vec<_>>());
        let mut positions = self.positions.then(|| {
            let places: Vec<u64> = groups.sizes().flat_map(|size| 0..size as u64).collect();
            Values::public(party.key(), &places)
        });
        while sizes.iter().any(|&(size, count)| size > 1 && count > 0) {
            let relu = self.relu();
            let mut all = differences(&values, &sizes);
            if let Some(places) = positions.take() {
                let matches = all.len();
                all.extend(&differences(&places, &sizes));
                let (masked, steps) = party.mask_owned(all, self.ring)?.split(matches);
                let (gains, choice) = relu.evaluate_with_sign(party, &masked)?;
                let steps = select::evaluate(party, &choice, &steps)?;
                values = winners(&values, &sizes, &gains);
                positions = Some(winners(&places, &sizes, &steps));
            } else {
                let masked = party.mask_owned(all, self.ring)?;
                values = winners(&values, &sizes, &relu.evaluate(party, &masked)?);
            }
            tournament::next_level(&mut sizes);
        }
        Ok((values, positions))
    }
}

/// The first of each pair without the second.
fn differences(values: &Values, sizes: &[(usize, usize)]) -> Values {
    Values { parts: values.parts.each_ref().map(|part| tournament::differences(part, sizes, u128::wrapping_sub)) }
}

/// The second of each pair and what the first adds to it, and those without a match.
fn winners(values: &Values, sizes: &[(usize, usize)], gains: &Values) -> Values {
    let part = |kind: usize| tournament::winners(&values.parts[kind], sizes, &gains.parts[kind], u128::wrapping_add);
    Values { parts: [part(0), part(1)] }
}

impl Masked {
    /// The first `count` values, and the others.
    fn split(&self, count: usize) -> (Self, Self) {
        (self.slice(0..count), self.slice(count..self.len()))
    }
}
