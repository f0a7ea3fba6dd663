//! From one ring to another, or to a field and back: what the planner puts between operations.

use privet_fss::{Carried, ExtendBounded};
use privet_gmw::{Rounds, Sign, cost};
use privet_ring::{Field, Modulus};

use super::keys::Batch;
use super::ops;
use super::party::{Engine, Party};
use crate::Error;
use crate::ops::Bounds;

/// The same signed value in a wider ring.
pub(super) struct Extend {
    from: u32,
    to: u32,
    sign: Sign,
    /// What is added meanwhile.
    raised: u64,
}

impl Extend {
    /// From `from` bits to `to` bits, of a value of which the sign may be known.
    pub(super) fn new(from: u32, to: u32, sign: Sign) -> Self {
        Self { from, to, sign, raised: 0 }
    }

    /// The same of a value within `bounds`: where half of the ring holds these, what is added makes it non-negative.
    pub(super) fn within(self, bounds: Bounds) -> Self {
        match (self.sign, bounds) {
            (Sign::Unknown, Some([low, high])) if high.abs_diff(low) >> (self.from - 1) == 0 => {
                Self { sign: Sign::NonNegative, raised: low.wrapping_neg().cast_unsigned(), ..self }
            }
            _ => self,
        }
    }

    /// For `count` values in suite `gmw`.
    pub(super) fn cost(&self, count: usize, rounds: Rounds) -> cost::Cost {
        cost::extend(count, self.from, self.to, self.sign, rounds)
    }

    /// For `count` values in suite `fss`.
    pub(super) fn keys(&self, count: usize) -> Vec<Batch> {
        vec![match self.sign {
            Sign::NonNegative => Batch::new(ExtendBounded::non_negative(self.from, self.to), count),
            Sign::Unknown => Batch::new(privet_fss::Extend::new(self.from, self.to), count),
        }]
    }

    pub(super) fn run(&self, party: &mut Party<'_>, x: &[u64]) -> Result<Vec<u64>, Error> {
        if self.raised == 0 {
            return self.widen(party, x);
        }
        let (raised, from, to) = (party.role.public(self.raised), Modulus::new(self.from), Modulus::new(self.to));
        let x: Vec<u64> = x.iter().map(|x| from.reduce(x.wrapping_add(raised))).collect();
        let mut wide = self.widen(party, &x)?;
        wide.iter_mut().for_each(|x| *x = to.reduce(x.wrapping_sub(raised)));
        Ok(wide)
    }

    fn widen(&self, party: &mut Party<'_>, x: &[u64]) -> Result<Vec<u64>, Error> {
        let Self { from, to, sign, .. } = *self;
        Ok(match (party.engine(), sign) {
            (Engine::Gmw(mut party), _) => {
                privet_gmw::extend(&mut party, x, Modulus::new(from), Modulus::new(to), sign)?
            }
            (Engine::Fss(mut party, seeds, body), Sign::NonNegative) => {
                ExtendBounded::non_negative(from, to).evaluate(&mut party, &seeds.seed(), body, x)?
            }
            (Engine::Fss(mut party, seeds, body), Sign::Unknown) => {
                privet_fss::Extend::new(from, to).evaluate(&mut party, &seeds.seed(), body, x)?
            }
        })
    }
}

/// The value of a linear layer without the guard bits below its last place; in suite `gmw`.
pub(super) struct RoundOff {
    pub from: u32,
    pub to: u32,
}

impl RoundOff {
    pub(super) fn cost(&self, count: usize, rounds: Rounds) -> cost::Cost {
        cost::truncate_guarded(count, self.from - self.to, self.from, rounds)
    }

    pub(super) fn run(&self, party: &mut Party<'_>, x: &[u64]) -> Result<Vec<u64>, Error> {
        ops::round_off(party, x, [0, self.from - self.to], Modulus::new(self.from))
    }
}

/// A value of a ring in a field; in suite `gmw`.
pub(super) struct EnterField {
    pub from: u32,
    pub field: Field,
    pub sign: Sign,
}

impl EnterField {
    pub(super) fn cost(&self, count: usize, rounds: Rounds) -> cost::Cost {
        cost::to_field(count, self.from, self.field, self.sign, rounds)
    }

    pub(super) fn run(&self, party: &mut Party<'_>, x: &[u64]) -> Result<Vec<u64>, Error> {
        match party.engine() {
            Engine::Gmw(mut party) => {
                Ok(privet_gmw::to_field(&mut party, x, Modulus::new(self.from), self.field, self.sign)?)
            }
            Engine::Fss(..) => unreachable!("suite fss shares values in rings"),
        }
    }
}

/// A value of a field in the ring below it; in suite `gmw`.
pub(super) struct LeaveField {
    pub field: Field,
    pub to: u32,
}

impl LeaveField {
    pub(super) fn cost(&self, count: usize, rounds: Rounds) -> cost::Cost {
        cost::from_field(count, self.field, self.to, rounds)
    }

    pub(super) fn run(&self, party: &mut Party<'_>, x: &[u64]) -> Result<Vec<u64>, Error> {
        match party.engine() {
            Engine::Gmw(mut party) => Ok(privet_gmw::from_field(&mut party, x, self.field, Modulus::new(self.to))?),
            Engine::Fss(..) => unreachable!("suite fss shares values in rings"),
        }
    }
}
