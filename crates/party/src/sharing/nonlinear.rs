//! The non-linear steps of a party, on what its suite runs them on.

use privet_channel::Channel;
use privet_fss::{Compared, Extend, ExtendBounded, Source};
use privet_gmw::{Rounds, Sign, Truncation, drop_low_bits};
use privet_ot::{Role, Stock};
use privet_prg::Prg;
use privet_ring::tournament::Ties;
use privet_ring::window::Groups;
use privet_ring::{Field, Modulus};

use super::{Correlated, Options, Suite};
use crate::Error;

/// A party with what it uses up.
pub(super) struct Party<'a> {
    pub role: Role,
    pub channel: &'a mut Channel,
    pub supply: &'a mut Supply,
}

/// What non-linear steps use up.
pub(super) enum Supply {
    /// Suite `gmw`.
    Stock { stock: Box<Stock>, rounds: Rounds },
    /// Suite `fss`: a generator of seeds, and the bodies of keys.
    Keys { seeds: Box<Prg>, body: Box<dyn Source> },
}

impl Supply {
    /// # Errors
    /// [`Error::Misuse`] if the material is of another suite or its keys are in the store.
    pub(super) fn new(correlated: Correlated, options: Options) -> Result<Self, Error> {
        match (correlated, options.suite) {
            (Correlated::Stock(stock), Suite::Gmw { rounds }) => Ok(Self::Stock { stock, rounds }),
            (Correlated::Keys(keys), Suite::Fss) => {
                let (seeds, body) = keys.open()?;
                Ok(Self::Keys { seeds: Box::new(seeds), body: Box::new(body) })
            }
            _ => Err(Error::Misuse("the material was made for another suite".into())),
        }
    }

    /// Fills an empty buffer of suite `gmw`; what it may still hold is gone.
    pub(super) fn refill(&mut self, with: Stock) {
        if let Self::Stock { stock, .. } = self {
            **stock = with;
        }
    }
}

impl<'a> Party<'a> {
    /// `max(x, 0)` of shares in `from`, in `to`.
    pub(super) fn relu(&mut self, x: &[u64], from: Modulus, to: Modulus) -> Result<Vec<u64>, Error> {
        match self.engine() {
            Engine::Gmw(mut party) => Ok(privet_gmw::relu(&mut party, x, from)?),
            Engine::Fss(mut party, seeds, body) => {
                let relu = privet_fss::Relu::new(from.bits(), to.bits());
                Ok(relu.evaluate(&mut party, &seeds.seed(), body, x)?)
            }
        }
    }

    /// The maximum of each group of elements of `x`.
    pub(super) fn max_pool(&mut self, x: &[u64], groups: &Groups, ring: Modulus) -> Result<Vec<u64>, Error> {
        match self.engine() {
            Engine::Gmw(mut party) => Ok(privet_gmw::max_pool(&mut party, x, groups, ring)?),
            Engine::Fss(mut party, seeds, body) => {
                Ok(privet_fss::max_pool(&mut party, ring.bits(), seeds, body, x, groups)?)
            }
        }
    }

    /// The position of each group's largest element, in the second ring.
    pub(super) fn argmax(&mut self, groups: &[Vec<u64>], ties: Ties, rings: [Modulus; 2]) -> Result<Vec<u64>, Error> {
        match self.engine() {
            Engine::Gmw(mut party) => Ok(privet_gmw::argmax(&mut party, groups, ties, rings[0], rings[1])?),
            Engine::Fss(mut party, seeds, body) => {
                Ok(privet_fss::argmax(&mut party, seeds, body, groups, ties, rings)?)
            }
        }
    }

    /// `floor(x / 2^bits)`, in the ring that is smaller by `bits` bits.
    pub(super) fn truncate(&mut self, x: &[u64], bits: u32, ring: Modulus, how: Truncation) -> Result<Vec<u64>, Error> {
        if bits == 0 {
            return Ok(x.to_vec());
        }
        if how == Truncation::OneBit {
            return Ok(drop_low_bits(self.role, x, bits, ring));
        }
        match self.engine() {
            Engine::Gmw(mut party) => Ok(privet_gmw::truncate_exactly(&mut party, x, bits, ring)?),
            Engine::Fss(mut party, seeds, body) => {
                let truncate = privet_fss::Truncate::new(ring.bits(), bits);
                Ok(truncate.evaluate(&mut party, &seeds.seed(), body, x)?)
            }
        }
    }

    /// `floor(x / 2^bits)` in the ring that is smaller by `bits` and `guard` bits, where `x` has `guard` bits below its last
    /// place and is off there by one at most; in suite `gmw`.
    pub(super) fn settle(&mut self, x: &[u64], bits: u32, guard: u32, ring: Modulus) -> Result<Vec<u64>, Error> {
        let half = if self.role == Role::Server { 1 << (guard - 1) } else { 0 };
        let raised: Vec<u64> = x.iter().map(|&x| ring.reduce(x.wrapping_add(half))).collect();
        match self.engine() {
            Engine::Gmw(mut party) => Ok(privet_gmw::truncate_guarded(&mut party, &raised, bits + guard, ring)?),
            Engine::Fss(..) => unreachable!("a dealer's products have no guard bits"),
        }
    }

    /// The same signed value in a wider ring.
    pub(super) fn extend(&mut self, x: &[u64], from: Modulus, to: Modulus, sign: Sign) -> Result<Vec<u64>, Error> {
        match self.engine() {
            Engine::Gmw(mut party) => Ok(privet_gmw::extend(&mut party, x, from, to, sign)?),
            Engine::Fss(mut party, seeds, body) => Ok(match sign {
                Sign::NonNegative => {
                    let extend = ExtendBounded::non_negative(from.bits(), to.bits());
                    extend.evaluate(&mut party, &seeds.seed(), body, x)?
                }
                Sign::Unknown => Extend::new(from.bits(), to.bits()).evaluate(&mut party, &seeds.seed(), body, x)?,
            }),
        }
    }

    /// A value of a ring in a field; in suite `gmw`.
    pub(super) fn enter_field(
        &mut self,
        x: &[u64],
        from: Modulus,
        field: Field,
        sign: Sign,
    ) -> Result<Vec<u64>, Error> {
        match self.engine() {
            Engine::Gmw(mut party) => Ok(privet_gmw::to_field(&mut party, x, from, field, sign)?),
            Engine::Fss(..) => unreachable!("suite fss shares values in rings"),
        }
    }

    /// A value of a field in the ring below it; in suite `gmw`.
    pub(super) fn leave_field(&mut self, x: &[u64], field: Field, to: Modulus) -> Result<Vec<u64>, Error> {
        match self.engine() {
            Engine::Gmw(mut party) => Ok(privet_gmw::from_field(&mut party, x, field, to)?),
            Engine::Fss(..) => unreachable!("suite fss shares values in rings"),
        }
    }

    fn engine(&mut self) -> Engine<'_> {
        let Self { role, channel, .. } = self;
        match self.supply {
            Supply::Stock { stock, rounds, .. } => {
                Engine::Gmw(privet_gmw::Party { role: *role, channel, stock, rounds: *rounds })
            }
            Supply::Keys { seeds, body } => {
                Engine::Fss(privet_fss::Party { role: fss_role(*role), channel }, seeds, body.as_mut())
            }
        }
    }
}

/// A suite's own view of a party.
enum Engine<'a> {
    Gmw(privet_gmw::Party<'a>),
    Fss(privet_fss::Party<'a>, &'a mut Prg, &'a mut dyn Source),
}

/// The role as suite `fss` names it.
pub(super) fn fss_role(role: Role) -> privet_fss::Role {
    match role {
        Role::Client => privet_fss::Role::Client,
        Role::Server => privet_fss::Role::Server,
    }
}
