//! What each protocol takes: correlations from the stock, bytes on the wire and rounds, as formulas.
//!
//! Bytes count a frame of 5 bytes for each message, as [`privet_channel::Cost`] does; `tests/cost.rs` holds every
//! formula against the wire.

use std::ops::{Add, RangeInclusive};

use privet_channel::HEADER_BYTES;
use privet_ot::{Demand, OneHotCounts, ProductCounts, Role, TableCounts};
use privet_ring::tournament::matches;
use privet_ring::{Field, Modulus};

use crate::lanes::{asker, halves};
use crate::tables::Step;
use crate::{Piecewise, Rounds, Sign};

/// Correlations and traffic of a protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Correlations taken from each party's stock.
    pub demand: Demand,
    /// Bytes that the client sends.
    pub client_bytes: u64,
    /// Bytes that the server sends.
    pub server_bytes: u64,
    /// Exchanges, or flights in one direction, that follow one another.
    pub rounds: u64,
}

impl Cost {
    fn exchange(demand: Demand, bytes: usize) -> Self {
        let bytes = message(bytes);
        Self { demand, client_bytes: bytes, server_bytes: bytes, rounds: 1 }
    }
}

impl Add for Cost {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            demand: self.demand + other.demand,
            client_bytes: self.client_bytes + other.client_bytes,
            server_bytes: self.server_bytes + other.server_bytes,
            rounds: self.rounds + other.rounds,
        }
    }
}

impl std::iter::Sum for Cost {
    fn sum<I: Iterator<Item = Self>>(costs: I) -> Self {
        costs.fold(Self::default(), |sum, cost| sum + cost)
    }
}

fn message(payload: usize) -> u64 {
    (payload + HEADER_BYTES) as u64
}

/// [`crate::and`] of `n` bits.
pub fn and(n: usize) -> Cost {
    and_with_pairs(n, 0)
}

/// [`crate::and_with_pairs`] of `n` bits, and of `m` with an operand in common.
pub fn and_with_pairs(n: usize, m: usize) -> Cost {
    Cost::exchange(Demand { triples: n, paired_triples: m, ..Demand::default() }, (2 * n + 3 * m).div_ceil(8))
}

/// [`crate::private_and`] of `n` bits.
pub fn private_and(n: usize) -> Cost {
    Cost::exchange(Demand { private_ands: n, ..Demand::default() }, n.div_ceil(8))
}

/// [`crate::carry`] of `n` sums of `bits` bits.
pub fn carry(n: usize, bits: u32, rounds: Rounds) -> Cost {
    let bits = bits as usize;
    if rounds != Rounds::Log && bits > 1 {
        return lookups(n, &Step::all(bits, rounds), rounds);
    }
    let widths = std::iter::successors(Some(bits), |&width| (width > 2).then_some(width.div_ceil(2)));
    let tree: Cost = widths.filter(|&width| width > 1).map(|width| and_with_pairs(n, n * (width / 2 - 1))).sum();
    private_and(n * bits) + tree
}

/// [`carry`] and an exchange that follows it lane by lane, with a frame for each.
fn carry_then(n: usize, bits: u32, rounds: Rounds, exchange: Cost) -> Cost {
    let lanes = if bits > 1 { halves(n, rounds)[0].len() } else { 1 };
    let frames = message(0) * (lanes - 1) as u64;
    let client_bytes = exchange.client_bytes + frames;
    let server_bytes = exchange.server_bytes + frames;
    carry(n, bits, rounds) + Cost { client_bytes, server_bytes, ..exchange }
}

/// The steps of an adder for `n` sums, half of them begun by either party.
fn lookups(n: usize, steps: &[Step], rounds: Rounds) -> Cost {
    let mut cost = Cost { rounds: steps.len() as u64 + 1, ..Cost::default() };
    let halves = halves(n, rounds).into_iter().enumerate();
    for (half, n) in halves.flat_map(|(half, lanes)| lanes.into_iter().map(move |n| (half, n))) {
        for (index, step) in steps.iter().enumerate() {
            let demand = &mut cost.demand;
            demand.private_ands += step.private_ands() * n;
            match (step, step.tables()) {
                (_, Some((shape, count))) => {
                    let tables = match asker(half, index) {
                        Role::Client => &mut demand.tables_sent_by_server,
                        Role::Server => &mut demand.tables_sent_by_client,
                    };
                    *tables = *tables + TableCounts::of(shape, count * n);
                }
                (Step::Join(pairs), None) => {
                    demand.triples += n;
                    demand.paired_triples += (pairs - 1) * n;
                }
                (_, None) => {}
            }
        }
        for flight in 0..=steps.len() {
            let answer = flight.checked_sub(1).map_or(0, |last| steps[last].bits()[1]);
            let question = steps.get(flight).map_or(0, |step| step.bits()[0]);
            let bytes = message((n * (answer + question)).div_ceil(8));
            match asker(half, flight) {
                Role::Client => cost.client_bytes += bytes,
                Role::Server => cost.server_bytes += bytes,
            }
        }
    }
    cost
}

/// [`crate::multiply`] of `n` pairs of values of `bits` bits.
pub fn multiply(n: usize, bits: u32) -> Cost {
    let products = n * bits as usize;
    Cost::exchange(both_ways(ProductCounts::of(bits, products)), products.div_ceil(8) + bit_by_bit(n, 1..=bits))
}

/// [`crate::scale`] of `n` values of `bits` bits by factors of `factor_bits` bits.
pub fn scale(n: usize, factor_bits: u32, bits: u32) -> Cost {
    let choice_bits = factor_bits.min(bits);
    let products = n * choice_bits as usize;
    Cost {
        demand: Demand { products_sent_by_client: ProductCounts::of(bits, products), ..Demand::NONE },
        client_bytes: message(bit_by_bit(n, bits - choice_bits + 1..=bits)),
        server_bytes: message(products.div_ceil(8)),
        rounds: 1,
    }
}

/// [`crate::square`] of `n` values of `bits` bits.
pub fn square(n: usize, bits: u32) -> Cost {
    if bits == 1 { Cost::default() } else { multiply(n.div_ceil(2), bits - 1) }
}

/// [`crate::multiply_rows`] of `rows` factors of `bits` bits and as many rows of `row` values.
pub fn multiply_rows(rows: usize, row: usize, bits: u32) -> Cost {
    let products = 2 * rows * bits as usize;
    Cost::exchange(both_ways(ProductCounts::of(u64::BITS, products)), products.div_ceil(8))
        + Cost::exchange(Demand::NONE, bit_by_bit(rows * row, 1..=bits))
}

/// Products, as many in either direction.
fn both_ways(products: ProductCounts) -> Demand {
    Demand { products_sent_by_server: products, products_sent_by_client: products, ..Demand::NONE }
}

/// Bytes of `n` values for each bit that they are multiplied by, of which only the bits above it count: so many.
pub(crate) fn bit_by_bit(n: usize, counting: RangeInclusive<u32>) -> usize {
    counting.map(|bits| Modulus::new(bits).packed_bytes(n)).sum()
}

/// [`crate::mux`] of `n` values of `bits` bits.
pub fn mux(n: usize, bits: u32) -> Cost {
    mux_all(n, &[bits])
}

/// [`crate::mux_all`] of vectors of `n` values whose widths are `widths`.
pub fn mux_all(n: usize, widths: &[u32]) -> Cost {
    let products = widths.iter().map(|&bits| ProductCounts::of(bits, n)).fold(ProductCounts::NONE, Add::add);
    let bytes = widths.iter().map(|&bits| n.div_ceil(8) + Modulus::new(bits).packed_bytes(n)).sum();
    Cost::exchange(both_ways(products), bytes)
}

/// [`crate::is_non_negative`] of `n` values of `bits` bits.
pub fn is_non_negative(n: usize, bits: u32, rounds: Rounds) -> Cost {
    carry(n, bits - 1, rounds)
}

/// [`crate::relu`] of `n` values of `bits` bits.
pub fn relu(n: usize, bits: u32, rounds: Rounds) -> Cost {
    carry_then(n, bits - 1, rounds, mux(n, bits))
}

/// [`crate::step`] of `n` values of `bits` bits into a ring of `to` bits.
pub fn step(n: usize, bits: u32, to: u32, rounds: Rounds) -> Cost {
    is_non_negative(n, bits, rounds) + bit_product(n, to - 1)
}

/// [`crate::leaves`] of `n` trees of depth `depth`, with nodes of `bits` bits, into a ring of `to` bits.
pub fn leaves(n: usize, depth: u32, bits: u32, to: u32, rounds: Rounds) -> Cost {
    let paths: Cost = (1..depth).map(|level| and(n << level)).sum();
    is_non_negative(n * ((1 << depth) - 1), bits, rounds) + paths + bit_product(n << depth, to - 1)
}

/// [`crate::bit_product`] of `n` pairs of bits in a ring of `bits` bits.
pub fn bit_product(n: usize, bits: u32) -> Cost {
    product_of_width(n, bits, bits)
}

/// A product of bits for each of `n` in a ring or field of `bits` bits, over correlations of `width` bits.
fn product_of_width(n: usize, bits: u32, width: u32) -> Cost {
    Cost {
        demand: Demand { products_sent_by_server: ProductCounts::of(width, n), ..Demand::default() },
        client_bytes: message(n.div_ceil(8)),
        server_bytes: message(Modulus::new(bits).packed_bytes(n)),
        rounds: 1,
    }
}

/// [`crate::extend`] of `n` values from `from` bits to `to` bits.
pub fn extend(n: usize, from: u32, to: u32, sign: Sign, rounds: Rounds) -> Cost {
    wraps(n, from, sign, rounds) + bit_product(n, to - from)
}

/// [`crate::to_field`] of `n` values from a ring of `from` bits.
pub fn to_field(n: usize, from: u32, field: Field, sign: Sign, rounds: Rounds) -> Cost {
    wraps(n, from, sign, rounds) + product_of_width(n, field.packing().bits(), u64::BITS)
}

/// [`crate::from_field`] of `n` values to a ring of `to` bits.
pub fn from_field(n: usize, field: Field, to: u32, rounds: Rounds) -> Cost {
    carry(n, field.packing().bits(), rounds) + bit_product(n, to)
}

/// What tells whether shares of `bits` bits wrap, but for a product.
fn wraps(n: usize, bits: u32, sign: Sign, rounds: Rounds) -> Cost {
    match sign {
        Sign::NonNegative => Cost::default(),
        Sign::Unknown => carry(n, bits, rounds),
    }
}

/// [`crate::truncate_exactly`] of `n` values of `ring` bits by `bits` bits.
pub fn truncate_exactly(n: usize, bits: u32, ring: u32, rounds: Rounds) -> Cost {
    carry_then(n, bits, rounds, bit_product(n, ring - bits))
}

/// [`crate::truncate_guarded`] of `n` values of `ring` bits by `bits` bits.
pub fn truncate_guarded(n: usize, bits: u32, ring: u32, rounds: Rounds) -> Cost {
    carry_then(n, bits - 1, rounds, bit_product(n, ring - bits))
}

/// [`crate::piecewise`] of `n` values.
pub fn piecewise(n: usize, of: &Piecewise, rounds: Rounds) -> Cost {
    let carries = of.added(rounds) as usize - 1;
    let adder: Cost = match rounds {
        Rounds::Linear => private_and(n) + (1..carries).map(|_| and(n)).sum(),
        Rounds::Log | Rounds::Blocks => {
            let spans = (0..).map(|level| 1_usize << level).take_while(|&span| span < carries);
            let level = |span: usize| {
                let first = carries.min(2 * span) - span;
                let all = (0..carries).filter(|i| i & span != 0).count();
                and_with_pairs(n * first, n * (all - first))
            };
            private_and(n * carries) + spans.map(level).sum()
        }
    };
    let (blocks, signs) = (of.blocks(rounds), usize::from(!of.nonnegative));
    let above: Cost = match blocks {
        0 => Cost::default(),
        _ => {
            let passed = blocks - 1 + signs;
            let last = if of.nonnegative { and(n) } else { Cost::default() };
            lookups(n, &[Step::Above(blocks)], rounds) + (0..passed).map(|_| and_with_pairs(0, n)).sum() + last
        }
    };
    let tops = match blocks {
        0 => (of.planes() - of.bits) as usize,
        _ => carries - of.bits as usize + blocks + signs,
    };
    let levels = std::iter::successors(Some(tops), |left| Some(left.div_ceil(2))).take_while(|&left| left > 1);
    let inside: Cost = levels.map(|left| and(n * (left / 2))).sum();
    let vectors = Demand { one_hots: OneHotCounts::of(of.index_bits, n), ..Demand::NONE };
    let opened = Cost::exchange(vectors, (n * of.index_bits as usize).div_ceil(8));
    let distances: Vec<u32> = (0..of.step_bits()).map(|bit| of.products - bit).collect();
    let widened = match of.products < of.to {
        true => extend(n, of.products, of.to, Sign::NonNegative, rounds),
        false => Cost::default(),
    };
    let sides = match (of.widened(), of.nonnegative) {
        (None, true) => mux(n, of.to),
        (None, false) => mux_all(n, &[of.to, of.beyond()]),
        (Some(width), _) => mux_all(n, &[of.to, of.to, of.ring]) + extend(n, of.ring, width, Sign::NonNegative, rounds),
    };
    adder + above + inside + opened + mux_all(n, &distances) + widened + mux(n, of.to - 1) + sides
}

/// [`crate::max_pool`] over groups, of which `sizes` tells how many there are of each size.
pub fn max_pool(sizes: impl IntoIterator<Item = (usize, usize)>, bits: u32, rounds: Rounds) -> Cost {
    matches(sizes).into_iter().map(|pairs| relu(pairs, bits, rounds)).sum()
}

/// [`crate::argmax`] over `groups` groups of `size` values of `bits` bits, with positions of `index_bits` bits.
pub fn argmax(groups: usize, size: usize, bits: u32, index_bits: u32, rounds: Rounds) -> Cost {
    let level = |pairs| is_non_negative(pairs, bits, rounds) + mux_all(pairs, &[bits, index_bits]);
    matches([(size, groups)]).into_iter().map(level).sum()
}

/// [`crate::open_to_server`] of `n` values of `bits` bits.
pub fn open_to_server(n: usize, bits: u32) -> Cost {
    Cost { client_bytes: message(Modulus::new(bits).packed_bytes(n)), rounds: 1, ..Cost::default() }
}

/// [`crate::open_to_client`] of `n` values of `bits` bits.
pub fn open_to_client(n: usize, bits: u32) -> Cost {
    Cost { server_bytes: message(Modulus::new(bits).packed_bytes(n)), rounds: 1, ..Cost::default() }
}

/// [`crate::open`] of `n` values of `bits` bits.
pub fn open(n: usize, bits: u32) -> Cost {
    Cost::exchange(Demand::NONE, Modulus::new(bits).packed_bytes(n))
}
