//! A public function of each element by lines: a point function over the table, or a vector of shared bits.
//!
//! Both take arguments beyond the table. In suite `fss` their ring may have too many bits above it: there two ReLUs bring them into the
//! table first, and the second one is what a function that rises goes on by.

use privet_gmw::{Rounds, Sign, cost};
use privet_ot::Role;
use privet_ring::{Field, Lines, Modulus};

use super::super::Suite;
use super::super::conversion::Extend;
use super::super::keys::Batch;
use super::super::memory::{PER_COMPARISON, PER_INDEX};
use super::super::party::{Engine, Party};
use super::super::state::State;
use super::relu::relu;
use super::{Context, Protocol};
use crate::Error;
use crate::ops::{Piecewise, roomy_bits};

/// How an argument reaches the table.
struct Way {
    /// Its ring, which is widened to hold the table and as much again on both sides.
    ring: u32,
    /// Whether ReLUs come first.
    clamps: bool,
    /// Whether the function goes on above the table.
    rises: bool,
    /// The ring that the table is looked up in.
    table: u32,
}

impl Piecewise<'_> {
    fn way(&self, width: u32, suite: Suite) -> Way {
        let least = self.bits + 2;
        let ring = width.max(least);
        let clamps = suite == Suite::Fss && ring - self.bits > privet_fss::Piecewise::MOST_ABOVE;
        Way { ring, clamps, rises: self.rises && !clamps, table: if clamps { least } else { ring } }
    }

    /// ReLUs that bring an argument into the table.
    fn relus(&self) -> usize {
        if self.nonnegative { 1 } else { 2 }
    }

    /// The ring of the result: as many bits as later steps read, or as the values take where truncations alone read them and nothing
    /// computes in the ring that they leave; without a dealer as the argument's ring has at least.
    fn wide(&self, width: u32, context: &Context) -> u32 {
        let held = match context.bounds {
            Some(bounds) if context.fits_any_ring && context.bits_read < context.ring_bits => {
                context.bits_read.min(roomy_bits(&bounds))
            }
            _ => context.bits_read,
        };
        let least = match context.options.suite {
            Suite::Fss => self.step_bits() + 1,
            Suite::Gmw { .. } => self.way(width, context.options.suite).ring,
        };
        held.max(least).min(context.ring_bits)
    }

    /// The ring that what lies above the table is brought to, to count `2^f` times in a ring of `wide` bits.
    fn above(&self, wide: u32) -> u32 {
        wide - self.step_bits()
    }

    /// What suite `gmw` looks up.
    fn shared(&self, way: &Way, wide: u32, lines: &Lines) -> privet_gmw::Piecewise {
        let Self { bits, index_bits, nonnegative, rises, .. } = *self;
        let of = privet_gmw::Piecewise::new(way.ring, [bits, index_bits], nonnegative, rises, wide);
        of.narrowed(lines)
    }

    fn gate(&self, way: &Way, wide: u32) -> privet_fss::Piecewise {
        privet_fss::Piecewise::new(way.table, [self.step_bits(), self.index_bits], way.rises, wide)
    }
}

impl Protocol for Piecewise<'_> {
    fn width(&self, inputs: &[u32], context: &Context) -> u32 {
        self.wide(inputs[0], context)
    }

    fn cost(&self, width: u32, rounds: Rounds, context: &Context) -> cost::Cost {
        let (way, len) = (self.way(width, context.options.suite), self.node.input().len());
        let wide = self.wide(width, context);
        let lines = self.lines(way.rises, Modulus::new(wide));
        let cost = cost::piecewise(len, &self.shared(&way, wide, &lines), rounds);
        match way.ring > width {
            true => cost + cost::extend(len, width, way.ring, Sign::Unknown, rounds),
            false => cost,
        }
    }

    fn keys(&self, [width, wide]: [u32; 2], context: &Context) -> Vec<Batch> {
        let (way, len) = (self.way(width, context.options.suite), self.node.input().len());
        let mut keys = Vec::new();
        if way.ring > width {
            keys.extend(Extend::new(width, way.ring, Sign::Unknown).keys(len));
        }
        if way.clamps {
            keys.extend((0..self.relus()).map(|_| Batch::new(privet_fss::Relu::new(way.ring, way.ring), len)));
        }
        keys.push(Batch::new(self.gate(&way, wide), len));
        if way.clamps && self.rises && way.ring < self.above(wide) {
            keys.extend(Extend::new(way.ring, self.above(wide), Sign::NonNegative).keys(len));
        }
        keys
    }

    fn working_memory(&self, _field: Option<Field>) -> u64 {
        // In suite `gmw` a bit for each line, and a product for each bit of a distance.
        let bits = 2 << self.index_bits;
        let products = u64::from(self.step_bits()) * (PER_COMPARISON + PER_INDEX);
        self.node.input().len() as u64 * (bits / 8 + products + PER_COMPARISON)
    }

    fn run(&self, state: &mut State<'_>, party: &mut Party<'_>) -> Result<Vec<u64>, Error> {
        let ((x, ring), to) = (state.input(self.node), state.output_ring(self.node));
        let way = self.way(ring.bits(), state.plan.options().suite);
        let (width, ring, role) = (ring.bits(), Modulus::new(way.ring), party.role);
        let less = |x: &[u64], public: i64| -> Vec<u64> {
            let public = if role == Role::Server { public.cast_unsigned() } else { 0 };
            x.iter().map(|x| ring.reduce(x.wrapping_sub(public))).collect()
        };
        let mut x = match width < way.ring {
            true => less(&Extend::new(width, way.ring, Sign::Unknown).run(party, x)?, self.low),
            false => less(x, self.low),
        };
        if !way.clamps {
            return self.look_up(party, &x, &way, to);
        }
        if !self.nonnegative {
            x = relu(party, &x, [ring; 2])?;
        }
        let over = relu(party, &less(&x, (1 << self.bits) - 1), [ring; 2])?;
        let table = Modulus::new(way.table);
        let mut within = ring.sub(&x, &over);
        table.reduce_all(&mut within);
        let values = self.look_up(party, &within, &way, to)?;
        if !self.rises {
            return Ok(values);
        }
        let above = self.above(to.bits());
        let over = match way.ring < above {
            true => Extend::new(way.ring, above, Sign::NonNegative).run(party, &over)?,
            false => over,
        };
        let raised: Vec<u64> = over.iter().map(|x| to.reduce(x << self.step_bits())).collect();
        Ok(to.add(&values, &raised))
    }
}

impl Piecewise<'_> {
    /// The lines' values at `x`, in the table's ring.
    fn look_up(&self, party: &mut Party<'_>, x: &[u64], way: &Way, to: Modulus) -> Result<Vec<u64>, Error> {
        let lines = self.lines(way.rises, to);
        Ok(match party.engine() {
            Engine::Gmw(mut party) => {
                privet_gmw::piecewise(&mut party, x, &self.shared(way, to.bits(), &lines), &lines)?
            }
            Engine::Fss(mut party, seeds, body) => {
                self.gate(way, to.bits()).evaluate(&mut party, &seeds.seed(), body, x, &lines)?
            }
        })
    }
}
