//! Maxima of groups and where they are, as a knockout tournament of `max(a, b) = b + relu(a - b)`.
//!
//! A level opens the differences behind fresh masks and takes one [`Relu`]: two rounds. The position of a winner is
//! `i_b + [a >= b] (i_a - i_b)` with the bit that the ReLU has anyway; the differences of positions are opened along with those
//! of values, so that positions take no round of their own.

use privet_fss::KeyBytes;
use privet_ring::Modulus;
use privet_ring::tournament::matches;

use crate::dealer::{Dealer, MASK_BYTES};
use crate::{Error, Masked, Party, Relu, Values, select};

/// Maxima in Z_2^n of groups whose members differ by less than `2^(n-1)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tournament {
    ring: Modulus,
    groups: Vec<Vec<usize>>,
    positions: bool,
}

impl Tournament {
    /// Only the maxima. `groups`: indices of the values, each group with at least one.
    ///
    /// # Panics
    /// If a group is empty, or unless `1 <= bits <= 64`.
    pub fn maxima(bits: u32, groups: Vec<Vec<usize>>) -> Self {
        assert!(groups.iter().all(|group| !group.is_empty()), "no group is empty");
        Self { ring: Modulus::new(bits), groups, positions: false }
    }

    /// The maxima and their positions within each group: the first of several.
    ///
    /// # Panics
    /// If a group is empty, or unless `1 <= bits <= 64`.
    pub fn positions(bits: u32, groups: Vec<Vec<usize>>) -> Self {
        Self { positions: true, ..Self::maxima(bits, groups) }
    }

    fn relu(&self) -> Relu {
        Relu::new(self.ring.bits(), 0, self.ring.bits())
    }

    /// Matches of each level.
    fn levels(&self) -> Vec<usize> {
        matches(self.groups.iter().map(Vec::len))
    }

    /// Bytes of the key.
    pub fn key_bytes(&self) -> KeyBytes {
        let level = |count: usize| {
            let masks = if self.positions { 2 } else { 1 };
            let selected = if self.positions { select::key_bytes(count) } else { KeyBytes::default() };
            self.relu().key_bytes(count) + selected + KeyBytes { words: 0, corrections: masks * count * MASK_BYTES }
        };
        self.levels().into_iter().map(level).fold(KeyBytes::default(), |sum, level| sum + level)
    }

    /// Bytes of each message that either party sends.
    pub fn message_bytes(&self) -> Vec<usize> {
        let opened = if self.positions { 32 } else { 16 };
        self.levels()
            .into_iter()
            .flat_map(|count| [vec![count * opened], self.relu().message_bytes(count)].concat())
            .collect()
    }

    /// Deals.
    ///
    /// # Errors
    /// If a body cannot be written.
    pub fn deal(&self, dealer: &mut Dealer<'_>) -> Result<(), Error> {
        for count in self.levels() {
            let both = dealer.masks(if self.positions { 2 * count } else { count })?;
            let hidden = self.relu().deal(dealer, &both[..count])?;
            if self.positions {
                select::deal(dealer, &hidden, &both[count..])?;
            }
        }
        Ok(())
    }

    /// The maximum of each group, and its position if this tournament has them. Two rounds for each level.
    ///
    /// # Errors
    /// If the link or the key fails.
    pub fn evaluate(&self, party: &mut Party<'_>, x: &Values) -> Result<(Values, Option<Values>), Error> {
        let members: Vec<usize> = self.groups.concat();
        let mut values = x.gather(&members);
        let places: Vec<u64> = self.groups.iter().flat_map(|group| 0..group.len() as u64).collect();
        let mut positions = self.positions.then(|| Values::public(party.key(), &places));
        let mut sizes: Vec<usize> = self.groups.iter().map(Vec::len).collect();
        while sizes.iter().any(|size| *size > 1) {
            let level = Level::new(&sizes);
            let relu = self.relu();
            let differences = level.differences(&values);
            let Some(places) = positions.take() else {
                let masked = party.mask(&differences, self.ring)?;
                values = level.winners(&values, &relu.evaluate(party, &masked)?);
                sizes = level.sizes;
                continue;
            };
            let mut all = differences;
            all.extend(&level.differences(&places));
            let (masked, steps) = party.mask(&all, self.ring)?.split(level.first.len());
            let (gains, choice) = relu.evaluate_with_sign(party, &masked)?;
            let steps = select::evaluate(party, &choice, &steps)?;
            values = level.winners(&values, &gains);
            positions = Some(level.winners(&places, &steps));
            sizes = level.sizes;
        }
        Ok((values, positions))
    }
}

/// Who meets whom in one level, as indices of the values that are left.
struct Level {
    first: Vec<usize>,
    second: Vec<usize>,
    /// For each value of the next level, its match, or else the one value that goes on without.
    next: Vec<Result<usize, usize>>,
    sizes: Vec<usize>,
}

impl Level {
    fn new(sizes: &[usize]) -> Self {
        let mut level = Self { first: Vec::new(), second: Vec::new(), next: Vec::new(), sizes: Vec::new() };
        let mut start = 0;
        for &size in sizes {
            for pair in 0..size / 2 {
                level.next.push(Ok(level.first.len()));
                level.first.push(start + 2 * pair);
                level.second.push(start + 2 * pair + 1);
            }
            if size % 2 == 1 {
                level.next.push(Err(start + size - 1));
            }
            start += size;
            level.sizes.push(size.div_ceil(2));
        }
        level
    }

    fn differences(&self, values: &Values) -> Values {
        values.gather(&self.first).sub(&values.gather(&self.second))
    }

    /// The second of each pair and what the first adds to it, and those without a match.
    fn winners(&self, values: &Values, gains: &Values) -> Values {
        let mut all = values.gather(&self.second).add(gains);
        let matches = all.len();
        all.extend(values);
        let places: Vec<usize> = self.next.iter().map(|next| next.unwrap_or_else(|alone| matches + alone)).collect();
        all.gather(&places)
    }
}

impl Masked {
    /// The first `count` values, and the others.
    fn split(&self, count: usize) -> (Self, Self) {
        (self.slice(0..count), self.slice(count..self.len()))
    }
}
