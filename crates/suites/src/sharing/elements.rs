//! Triples of single elements that two parties make before there is an input, without a dealer, by OT.
//!
//! Threat model and argument: `docs/reference/protocols/products.md`. Products of one kind are made together, some elements at a time,
//! with correlations that are made for them.

use std::collections::BTreeMap;

use privet_channel::{Channel, Cost};
use privet_gmw::{Rounds, cost};
use privet_ot::{Demand, OtParty, Stock};
use privet_ring::Modulus;

use super::triples::{self, Triple};
use super::{Plan, Triples};
use crate::Error;

/// Elements that are multiplied at once one by one, which bounds what their correlations take.
const AT_ONCE: usize = 1 << 15;

/// Elements that are multiplied at once where factors are shared, which bounds what their messages take.
const ROWS_AT_ONCE: usize = 1 << 17;

/// The least number of elements for which a common factor pays: its bits take twice the correlations of one element's.
const LEAST_ROW: usize = 4;

/// How a product is made, in a ring of `bits` bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Way {
    /// A value by itself.
    Square { bits: u32 },
    /// Rows of so many elements by a factor each.
    Rows { bits: u32, row: usize },
    /// Elements by elements.
    Pairs { bits: u32 },
}

impl Way {
    /// That of a product.
    fn of(plan: &Plan, triple: &Triple) -> Self {
        let (bits, len) = (triples::share_ring(plan, triple).bits(), triples::output_len(plan, triple));
        let [left, right] = &triple.operands;
        let row = len.checked_div(plan.masked()[triple.operands[few(plan, triple)].mask].len).unwrap_or(0);
        if left.mask == right.mask && left.origin == right.origin {
            Self::Square { bits }
        } else if row >= LEAST_ROW {
            Self::Rows { bits, row }
        } else {
            Self::Pairs { bits }
        }
    }

    /// How many values or factors are multiplied at once.
    fn at_once(self) -> usize {
        match self {
            Self::Square { .. } => 2 * AT_ONCE,
            Self::Rows { row, .. } => (ROWS_AT_ONCE / row).max(1),
            Self::Pairs { .. } => AT_ONCE,
        }
    }

    /// Elements that share a factor.
    fn row(self) -> usize {
        if let Self::Rows { row, .. } = self { row } else { 1 }
    }

    fn cost(self, count: usize) -> cost::Cost {
        match self {
            Self::Square { bits } => cost::square(count, bits),
            Self::Rows { bits, row } => cost::multiply_rows(count, row, bits),
            Self::Pairs { bits } => cost::multiply(count, bits),
        }
    }

    fn run(self, party: &mut privet_gmw::Party<'_>, x: &[u64], y: &[u64]) -> Result<Vec<u64>, Error> {
        Ok(match self {
            Self::Square { bits } => privet_gmw::square(party, x, Modulus::new(bits))?,
            Self::Rows { bits, .. } => privet_gmw::multiply_rows(party, x, y, Modulus::new(bits))?,
            Self::Pairs { bits } => privet_gmw::multiply(party, x, y, Modulus::new(bits))?,
        })
    }
}

/// Which operand is made of fewer elements.
fn few(plan: &Plan, triple: &Triple) -> usize {
    let [left, right] = triple.operands.each_ref().map(|operand| plan.masked()[operand.mask].len);
    usize::from(right < left)
}

/// Products of single elements that no dealer makes, by the way they are made; those of one way in the order of the program.
fn by_way(plan: &Plan) -> BTreeMap<Way, Vec<&Triple>> {
    let mut ways: BTreeMap<Way, Vec<&Triple>> = BTreeMap::new();
    for triple in plan.triples().iter().filter(|triple| !plan.is_dealt() && triple.matrices.is_none()) {
        ways.entry(Way::of(plan, triple)).or_default().push(triple);
    }
    ways
}

/// What runs take in which elements are multiplied, one after the other.
fn costs(plan: &Plan) -> Vec<cost::Cost> {
    let mut costs = Vec::new();
    for (way, triples) in by_way(plan) {
        let total = triples.iter().map(|triple| triples::output_len(plan, triple)).sum::<usize>() / way.row();
        let starts = (0..total).step_by(way.at_once());
        costs.extend(starts.map(|start| way.cost(way.at_once().min(total - start))));
    }
    costs
}

/// Correlations for each of the runs in which single elements are multiplied, one after the other.
pub(super) fn demands(plan: &Plan) -> Vec<Demand> {
    costs(plan).into_iter().map(|cost| cost.demand).collect()
}

/// What the client's channel counts while single elements are multiplied, without the correlations for it.
pub(super) fn cost(plan: &Plan) -> Cost {
    costs(plan).into_iter().fold(Cost::default(), |sum, cost| {
        let (bytes_sent, bytes_received, rounds) = (cost.client_bytes, cost.server_bytes, cost.rounds);
        sum + Cost { bytes_sent, bytes_received, messages_sent: rounds, messages_received: rounds, rounds }
    })
}

/// The most bytes that a run sends and receives.
pub(super) fn message_bytes(plan: &Plan) -> u64 {
    costs(plan).into_iter().map(|cost| cost.client_bytes + cost.server_bytes).max().unwrap_or(0)
}

/// Seeds of which a party knows one of two.
pub(super) fn seeds(plan: &Plan) -> u64 {
    let of = |(way, triples): (Way, Vec<&Triple>)| match way {
        Way::Rows { bits, row } => {
            triples.iter().map(|triple| triples::output_len(plan, triple) / row * bits as usize).sum::<usize>() as u64
        }
        Way::Square { .. } | Way::Pairs { .. } => 0,
    };
    2 * by_way(plan).into_iter().map(of).sum::<u64>()
}

/// Elements that a party holds while single elements are multiplied.
pub(super) fn held(plan: &Plan) -> u64 {
    let len = |triple: &&Triple| triples::output_len(plan, triple) as u64;
    4 * by_way(plan).values().flatten().map(len).sum::<u64>()
}

/// Multiplies the masks of all products of single elements: this party's parts of `C`, in the order of these products.
pub(super) fn multiply(
    party: &mut OtParty,
    channel: &mut Channel,
    plan: &Plan,
    masks: &Triples,
) -> Result<Vec<Vec<u64>>, Error> {
    let mut parts = BTreeMap::new();
    for (way, triples) in by_way(plan) {
        let (mut x, mut y, mut places) = (Vec::new(), Vec::new(), Vec::new());
        for triple in &triples {
            let operands = masks.operands(plan, triple);
            match way {
                Way::Square { .. } => x.extend(&operands[0]),
                Way::Pairs { .. } => {
                    x.extend(&operands[0]);
                    y.extend(&operands[1]);
                }
                Way::Rows { .. } => {
                    let few = few(plan, triple);
                    let order = by_factor(plan, triple, few);
                    x.extend(masks.mask(plan, triple.operands[few].mask));
                    y.extend(order.iter().map(|&place| operands[1 - few][place]));
                    places.push(order);
                }
            }
        }
        let mut products = Vec::new();
        let mut rows = y.chunks(way.at_once() * way.row());
        for x in x.chunks(way.at_once()) {
            let mut stock = Stock::generate(party, channel, &way.cost(x.len()).demand)?;
            let mut party =
                privet_gmw::Party { role: party.role(), channel, stock: &mut stock, rounds: Rounds::Linear };
            products.extend(way.run(&mut party, x, rows.next().unwrap_or_default())?);
        }
        let (mut rest, mut places) = (products.as_slice(), places.into_iter());
        for triple in triples {
            let part = rest.split_off(..triples::output_len(plan, triple)).expect("a product for each element");
            let mut products = part.to_vec();
            if let Some(places) = places.next() {
                places.into_iter().zip(part).for_each(|(place, product)| products[place] = *product);
            }
            parts.insert(triple.operation, products);
        }
    }
    Ok(parts.into_values().collect())
}

/// The places of a product's elements, those with one factor together. `few`: the operand that has the factors.
fn by_factor(plan: &Plan, triple: &Triple, few: usize) -> Vec<usize> {
    let operand = &triple.operands[few];
    let numbers: Vec<u64> = (0..plan.masked()[operand.mask].len as u64).collect();
    let factors = operand.origin.arrange(plan.program(), numbers.into(), Modulus::new(64));
    let mut places: Vec<usize> = (0..factors.len()).collect();
    places.sort_by_key(|&place| factors[place]);
    places
}
