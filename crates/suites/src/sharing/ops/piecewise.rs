//! A public function of each element by lines: a point function over the table, or a vector of shared bits.
//!
//! Both take arguments beyond the table. In suite `fss` their ring may have too many bits above it: there two ReLUs bring them into the
//! table first, and the second one is what a function that rises goes on by.

use privet_fss::Above;
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
        let bits = match context.bounds {
            Some(bounds) if context.fits_any_ring && context.bits_read < context.ring_bits => {
                context.bits_read.min(roomy_bits(&bounds))
            }
            _ => context.bits_read,
        };
        let least = match context.options.suite {
            Suite::Fss => self.step_bits() + 1,
            Suite::Gmw { .. } => self.way(width, context.options.suite).ring,
        };
        bits.max(least).min(context.ring_bits)
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

    /// What suite `fss` looks up. Where ReLUs come first no argument is below the table.
    fn gate(&self, way: &Way, lines: &Lines, wide: u32) -> privet_fss::Piecewise {
        let above = match lines.above() {
            [0, _] if self.nonnegative || way.clamps => Above::OnlyConstant,
            [0, _] => Above::Constant,
            [step, from] if from.is_multiple_of(step) => Above::RisingWhole,
            _ => Above::Rising,
        };
        privet_fss::Piecewise::new(way.table, [self.step_bits(), self.index_bits], above, wide)
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
        let lines = self.lines(way.rises, Modulus::new(wide));
        keys.push(Batch::new(self.gate(&way, &lines, wide), len));
        if way.clamps && self.rises && way.ring < self.above(wide) {
            keys.extend(Extend::new(way.ring, self.above(wide), Sign::NonNegative).keys(len));
        }
        keys
    }

    fn lines(&self, [width, wide]: [u32; 2], context: &Context) -> Option<Lines> {
        let way = self.way(width, context.options.suite);
        Some(Self::lines(self, way.rises, Modulus::new(wide)))
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
        let looked_up = (state.plan.lines(self.node.operation.output), to);
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
            return self.look_up(party, &x, &way, looked_up);
        }
        if !self.nonnegative {
            x = relu(party, &x, [ring; 2])?;
        }
        let over = relu(party, &less(&x, (1 << self.bits) - 1), [ring; 2])?;
        let table = Modulus::new(way.table);
        let mut within = ring.sub(&x, &over);
        table.reduce_all(&mut within);
        let values = self.look_up(party, &within, &way, looked_up)?;
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
    /// The values of lines into a ring at `x`, in the table's ring.
    fn look_up(
        &self,
        party: &mut Party<'_>,
        x: &[u64],
        way: &Way,
        (lines, to): (&Lines, Modulus),
    ) -> Result<Vec<u64>, Error> {
        Ok(match party.engine() {
            Engine::Gmw(mut party) => privet_gmw::piecewise(&mut party, x, &self.shared(way, to.bits(), lines), lines)?,
            Engine::Fss(mut party, seeds, body) => {
                self.gate(way, lines, to.bits()).evaluate(&mut party, &seeds.seed(), body, x, lines)?
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::thread;

    use privet_channel::{Channel, pair};
    use privet_gmw::Truncation;
    use privet_ot::Stock;
    use privet_prg::{Prg, Seed};
    use privet_program::{Operator, Program};

    use super::super::super::party::Supply;
    use super::*;
    use crate::ops::{Bounds, Node, Rules, signed_bits};

    /// What both parties' shares add up to after a protocol of suite `gmw`, on correlations from an ideal dealer.
    fn joined(
        cost: cost::Cost,
        shares: &[Vec<u64>; 2],
        ring: Modulus,
        protocol: impl Fn(&mut Party<'_>, &[u64]) -> Vec<u64> + Sync,
    ) -> [Vec<u64>; 2] {
        let (ends, stocks) = (pair(), Stock::deal(&cost.demand, &mut Prg::from_seed(&Seed::from_bytes([3; 16]))));
        let run = |role, channel: &mut Channel, stock| {
            let supply = &mut Supply::Stock { stock: Box::new(stock), rounds: Rounds::Linear };
            let mut result = protocol(&mut Party { role, channel, supply }, &shares[usize::from(role == Role::Server)]);
            channel.flush().expect("the link holds");
            ring.reduce_all(&mut result);
            result
        };
        let ((mut near, mut far), run) = (ends, &run);
        thread::scope(|scope| {
            let server = scope.spawn(move || run(Role::Server, &mut far, stocks.1));
            let client = run(Role::Client, &mut near, stocks.0);
            [client, server.join().expect("the server does not panic")]
        })
    }

    /// Every value of the argument's ring, behind shares of every kind: looked up, truncated in either mode, and extended by the bounds that
    /// the planner knows, in suite `gmw`.
    #[test]
    fn what_a_function_gives_is_extended_by_its_bounds_for_every_argument_of_its_ring() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/smooth/program.json");
        let program = Program::parse(&std::fs::read(path).expect("a fixture")).expect("a program");
        let node = Node::all(&program).find(|node| matches!(node.operation.operator, Operator::Piecewise { .. }));
        let function = node.and_then(Node::piecewise).expect("a function by lines");
        let (width, dropped, narrow) = (function.bits + 2, function.step_bits(), 18);
        let (ring, to) = (Modulus::new(width), Modulus::new(narrow + dropped));
        let way = function.way(width, Suite::Gmw { rounds: Rounds::Linear });
        let lines = function.lines(way.rises, to);
        let of = function.shared(&way, to.bits(), &lines);
        let half = 1_i64 << (width - 1);
        let arguments: Vec<i64> = (-half..half).collect();
        let mut prg = Prg::from_seed(&Seed::from_bytes([4; 16]));
        let mut client = vec![0; arguments.len()];
        prg.fill_words(&mut client);
        ring.reduce_all(&mut client);
        let server = arguments.iter().zip(&client).map(|(x, c)| ring.reduce(x.cast_unsigned().wrapping_sub(*c)));
        let shares = [client.clone(), server.collect()];
        let n = arguments.len();

        let bounds = function.bounds(&[None], width).expect("bounds");
        let looked_up = joined(cost::piecewise(n, &of, Rounds::Linear), &shares, to, |party, x| {
            function.look_up(party, x, &way, (&lines, to)).expect("a look-up")
        });
        let signed = |shares: &[Vec<u64>; 2], ring: Modulus| -> Vec<i64> {
            ring.add(&shares[0], &shares[1]).into_iter().map(|x| ring.signed(x)).collect()
        };
        let values = signed(&looked_up, to);
        assert_eq!([values.iter().min(), values.iter().max()], bounds.each_ref().map(Some), "bounds are reached");

        for truncation in [Truncation::Exact, Truncation::OneBit] {
            let narrowed = match truncation {
                Truncation::Exact => {
                    let cost = cost::truncate_exactly(n, dropped, to.bits(), Rounds::Linear);
                    joined(cost, &looked_up, Modulus::new(narrow), |party, x| match party.engine() {
                        Engine::Gmw(mut party) => {
                            privet_gmw::truncate_exactly(&mut party, x, dropped, to).expect("a truncation")
                        }
                        Engine::Fss(..) => unreachable!("a party of suite gmw"),
                    })
                }
                Truncation::OneBit => {
                    let narrowed = |role: Role, x: &[u64]| privet_gmw::drop_low_bits(role, x, dropped, to);
                    [narrowed(Role::Client, &looked_up[0]), narrowed(Role::Server, &looked_up[1])]
                }
            };
            let off = i64::from(truncation == Truncation::OneBit);
            let [low, high] = bounds.map(|bound| bound >> dropped);
            let widest = [low - off, high + off];
            assert!(signed_bits(&widest) <= narrow, "the ring holds them");
            let quotients = signed(&narrowed, Modulus::new(narrow));
            assert!(quotients.iter().zip(&values).all(|(x, value)| (0..=off).contains(&(x - (value >> dropped)))));
            let extended = |bounds: Bounds| {
                let extend = Extend::new(narrow, 37, Sign::Unknown).within(bounds);
                let cost = extend.cost(n, Rounds::Linear);
                assert_eq!(cost.rounds, 1, "without a comparison");
                let wide = joined(cost, &narrowed, Modulus::new(37), |party, x| extend.run(party, x).expect("a link"));
                signed(&wide, Modulus::new(37))
            };
            assert_eq!(extended(Some(widest)), quotients, "{truncation:?}");
            // The control: bounds that leave out a quarter of the ring, and values that are in it, are right for some shares alone.
            let above = low + (1 << (narrow - 2));
            let wrong = extended(Some([above; 2])).iter().zip(&quotients).filter(|(one, other)| one != other).count();
            assert!(wrong > 0 && wrong < n, "{wrong} of {n}");
        }
    }
}
