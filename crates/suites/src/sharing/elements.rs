//! What two parties multiply element by element before there is an input, without a dealer, by OT: triples of single elements, and the
//! server's factors by the client's masks.
//!
//! Threat model and argument: `docs/reference/protocols/products.md`. Products of one kind are made together, some elements at a time,
//! with correlations that are made for them.

use std::collections::BTreeMap;

use privet_channel::{Channel, Cost};
use privet_gmw::{Rounds, cost};
use privet_ot::{Demand, OtParty, Stock};
use privet_program::Weights;
use privet_ring::Modulus;

use super::encrypted::Chosen;
use super::plan::LinearLayer;
use super::triples::{self, Triple};
use super::{Encrypted, Plan, Triples};
use crate::Error;

/// Elements that are multiplied at once one by one, which bounds what their correlations take.
const AT_ONCE: usize = 1 << 15;

/// Elements that are multiplied at once where factors are shared, which bounds what their messages take; no row is longer.
const ROWS_AT_ONCE: usize = 1 << 17;

/// Bytes of pads and of sums that an element of a row takes while it is multiplied.
const ROW_BYTES: u64 = 40;

/// Products in either direction that are made at once.
const PRODUCTS_AT_ONCE: usize = 40 * AT_ONCE;

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
    /// Elements of the client by factors of the server of so many bits.
    Factors { bits: u32, factor_bits: u32 },
}

/// What is multiplied.
#[derive(Clone, Copy)]
enum Product<'a> {
    /// Two values.
    Values(&'a Triple),
    /// A value's mask and private weights.
    Layer(&'a LinearLayer),
}

impl Product<'_> {
    /// The index of its operation.
    fn operation(self) -> usize {
        match self {
            Self::Values(triple) => triple.operation,
            Self::Layer(layer) => layer.operation,
        }
    }

    /// Its number of elements.
    fn len(self, plan: &Plan) -> usize {
        match self {
            Self::Values(triple) => triples::output_len(plan, triple),
            Self::Layer(layer) => layer.plan.output_len(),
        }
    }
}

/// What a party has of products with private weights.
#[derive(Clone, Copy)]
pub(super) enum Factors<'a> {
    /// At the client, the masks of what linear layers read.
    Masks(&'a [Vec<u64>]),
    /// At the server.
    Weights(&'a Weights),
}

impl Factors<'_> {
    /// This party's operand of a layer.
    fn operand(self, layer: &LinearLayer) -> Vec<u64> {
        match self {
            Self::Masks(masks) => layer.mask_in(masks).to_vec(),
            Self::Weights(weights) => {
                weights.tensor(&layer.weight).iter().map(|weight| weight.cast_unsigned()).collect()
            }
        }
    }
}

/// A party's shares of what was multiplied, each vector in the order of the operations.
#[derive(Default)]
pub(super) struct Elements {
    /// Its parts of `C` of products of two values.
    pub products: Vec<Vec<u64>>,
    /// Its shares of `W r` of linear layers.
    pub layers: Vec<Vec<u64>>,
}

impl Way {
    /// That of a product.
    fn of(plan: &Plan, triple: &Triple) -> Self {
        let (bits, len) = (triples::share_ring(plan, triple).bits(), triples::output_len(plan, triple));
        let [left, right] = &triple.operands;
        let row = len.checked_div(plan.masked[triple.operands[few(plan, triple)].mask].len).unwrap_or(0);
        if left.mask == right.mask && left.origin == right.origin {
            Self::Square { bits }
        } else if (LEAST_ROW..=ROWS_AT_ONCE).contains(&row) {
            Self::Rows { bits, row }
        } else {
            Self::Pairs { bits }
        }
    }

    /// How many values or factors are multiplied at once.
    fn at_once(self) -> usize {
        match self {
            Self::Square { .. } => 2 * AT_ONCE,
            Self::Rows { row, .. } => ROWS_AT_ONCE / row,
            Self::Pairs { .. } | Self::Factors { .. } => AT_ONCE,
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
            Self::Factors { bits, factor_bits } => cost::scale(count, factor_bits, bits),
        }
    }

    fn run(self, party: &mut privet_gmw::Party<'_>, x: &[u64], y: &[u64]) -> Result<Vec<u64>, Error> {
        Ok(match self {
            Self::Square { bits } => privet_gmw::square(party, x, Modulus::new(bits))?,
            Self::Rows { bits, .. } => privet_gmw::multiply_rows(party, x, y, Modulus::new(bits))?,
            Self::Pairs { bits } => privet_gmw::multiply(party, x, y, Modulus::new(bits))?,
            Self::Factors { bits, factor_bits } => privet_gmw::scale(party, x, factor_bits, Modulus::new(bits))?,
        })
    }
}

/// Which operand is made of fewer elements.
fn few(plan: &Plan, triple: &Triple) -> usize {
    let [left, right] = triple.operands.each_ref().map(|operand| plan.masked[operand.mask].len);
    usize::from(right < left)
}

/// Products of single elements that no dealer makes, by the way they are made; those of one way in the order of the program.
fn by_way(plan: &Plan) -> BTreeMap<Way, Vec<Product<'_>>> {
    let mut ways: BTreeMap<Way, Vec<Product<'_>>> = BTreeMap::new();
    for triple in plan.triples.iter().filter(|triple| !plan.is_dealt() && triple.matrices.is_none()) {
        ways.entry(Way::of(plan, triple)).or_default().push(Product::Values(triple));
    }
    for layer in plan.linear() {
        if let Encrypted::Chosen(Chosen { bits, .. }) = layer.plan {
            // A weight has so many bits besides its sign.
            let factor_bits = plan.program().weight_bits() + 1;
            ways.entry(Way::Factors { bits, factor_bits }).or_default().push(Product::Layer(layer));
        }
    }
    ways
}

/// Values or factors that are multiplied at once.
struct Run {
    way: Way,
    count: usize,
}

impl Run {
    fn cost(&self) -> cost::Cost {
        self.way.cost(self.count)
    }
}

/// The runs in which single elements are multiplied, one after the other; correlations for those of a group are made together.
fn groups(plan: &Plan) -> Vec<Vec<Run>> {
    let (mut groups, mut count): (Vec<Vec<Run>>, _) = (Vec::new(), 0);
    for (way, products) in by_way(plan) {
        let mut rows = products.iter().map(|product| product.len(plan)).sum::<usize>() / way.row();
        while rows > 0 {
            let run = Run { way, count: rows.min(way.at_once()) };
            rows -= run.count;
            let products = run.cost().demand.products_sent_by_client.total();
            match groups.last_mut().filter(|_| count + products <= PRODUCTS_AT_ONCE) {
                Some(group) => group.push(run),
                None => {
                    groups.push(vec![run]);
                    count = 0;
                }
            }
            count += products;
        }
    }
    groups
}

/// Correlations for each group of runs, one after the other.
pub(super) fn demands(plan: &Plan) -> Vec<Demand> {
    let sum = |group: &Vec<Run>| group.iter().map(Run::cost).sum::<cost::Cost>().demand;
    groups(plan).iter().map(sum).collect()
}

/// What the client's channel counts while single elements are multiplied, without the correlations for it.
pub(super) fn cost(plan: &Plan) -> Cost {
    groups(plan).iter().flatten().map(Run::cost).fold(Cost::default(), |sum, cost| {
        let (bytes_sent, bytes_received, rounds) = (cost.client_bytes, cost.server_bytes, cost.rounds);
        sum + Cost { bytes_sent, bytes_received, messages_sent: rounds, messages_received: rounds, rounds }
    })
}

/// The most bytes that a run takes beside its correlations: messages both ways, and what rows are multiplied with.
pub(super) fn run_bytes(plan: &Plan) -> u64 {
    let bytes = |run: Run| {
        let rows = if let Way::Rows { row, .. } = run.way { ROW_BYTES * (run.count * row) as u64 } else { 0 };
        rows + run.cost().client_bytes + run.cost().server_bytes
    };
    groups(plan).into_iter().flatten().map(bytes).max().unwrap_or(0)
}

/// Seeds of rows that are read at one place: of each run two in either direction.
pub(super) fn seeds(plan: &Plan) -> u64 {
    4 * groups(plan).iter().flatten().filter(|run| matches!(run.way, Way::Rows { .. })).count() as u64
}

/// Elements that a party holds while single elements are multiplied.
pub(super) fn held(plan: &Plan) -> u64 {
    let len = |product: &Product<'_>| product.len(plan) as u64;
    4 * by_way(plan).values().flatten().map(len).sum::<u64>()
}

/// Multiplies the masks of all products of single elements, and those of linear layers by their factors.
pub(super) fn multiply(
    party: &mut OtParty,
    channel: &mut Channel,
    plan: &Plan,
    masks: &Triples,
    factors: Factors<'_>,
) -> Result<Elements, Error> {
    let operands = |(way, products)| (way, Operands::of(plan, masks, factors, way, products));
    let mut operands: BTreeMap<Way, Operands<'_>> = by_way(plan).into_iter().map(operands).collect();
    let mut stock = Stock::empty(party.role());
    for group in groups(plan) {
        let demand = group.iter().map(Run::cost).sum::<cost::Cost>().demand;
        stock = Stock::generate_in(stock, party, channel, &demand)?;
        for Run { way, count } in group {
            let mut party =
                privet_gmw::Party { role: party.role(), channel, stock: &mut stock, rounds: Rounds::Linear };
            let operands = operands.get_mut(&way).expect("all ways have operands");
            let (done, row) = (operands.products.len() / way.row(), way.row());
            let y = operands.y.get(done * row..(done + count) * row).unwrap_or_default();
            let products = way.run(&mut party, &operands.x[done..done + count], y)?;
            operands.products.extend(products);
        }
    }
    let parts: BTreeMap<usize, (bool, Vec<u64>)> =
        operands.into_values().flat_map(|operand| operand.parts(plan)).collect();
    let mut all = Elements::default();
    for (is_layer, part) in parts.into_values() {
        if is_layer { all.layers.push(part) } else { all.products.push(part) }
    }
    Ok(all)
}

/// The operands of all products of one way, and the products as far as they are made.
struct Operands<'a> {
    all: Vec<Product<'a>>,
    x: Vec<u64>,
    y: Vec<u64>,
    /// Of each product of rows, where its elements belong.
    places: Vec<Vec<usize>>,
    products: Vec<u64>,
}

impl<'a> Operands<'a> {
    fn of(plan: &Plan, masks: &Triples, factors: Factors<'_>, way: Way, all: Vec<Product<'a>>) -> Self {
        let (mut x, mut y, mut places) = (Vec::new(), Vec::new(), Vec::new());
        for product in &all {
            let triple = match product {
                Product::Values(triple) => triple,
                Product::Layer(layer) => {
                    x.extend(factors.operand(layer));
                    continue;
                }
            };
            let [left, right] = masks.operands(plan, triple);
            match way {
                Way::Square { .. } => x.extend(left),
                Way::Pairs { .. } | Way::Factors { .. } => {
                    x.extend(left);
                    y.extend(right);
                }
                Way::Rows { .. } => {
                    let few = few(plan, triple);
                    let (many, order) = (if few == 0 { right } else { left }, by_factor(plan, triple, few));
                    x.extend(masks.mask(plan, triple.operands[few].mask));
                    y.extend(order.iter().map(|&place| many[place]));
                    places.push(order);
                }
            }
        }
        Self { all, x, y, places, products: Vec::new() }
    }

    /// This party's part of each product, with the index of its operation and whether that is a linear layer.
    fn parts(self, plan: &Plan) -> Vec<(usize, (bool, Vec<u64>))> {
        let (mut rest, mut places) = (self.products.as_slice(), self.places.into_iter());
        let part = |product: Product<'_>| {
            let part = rest.split_off(..product.len(plan)).expect("a product for each element");
            let mut products = part.to_vec();
            if let Some(places) = places.next() {
                places.into_iter().zip(part).for_each(|(place, product)| products[place] = *product);
            }
            (product.operation(), (matches!(product, Product::Layer(_)), products))
        };
        self.all.into_iter().map(part).collect()
    }
}

/// The places of a product's elements, those with one factor together. `few`: the operand that has the factors.
fn by_factor(plan: &Plan, triple: &Triple, few: usize) -> Vec<usize> {
    let operand = &triple.operands[few];
    let numbers: Vec<u64> = (0..plan.masked[operand.mask].len as u64).collect();
    let factors = operand.origin.arrange(plan.program(), numbers.into(), Modulus::new(64));
    let mut places: Vec<usize> = (0..factors.len()).collect();
    places.sort_by_key(|&place| factors[place]);
    places
}
