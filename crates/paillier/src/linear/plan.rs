//! How many products each way takes, and which is cheaper.

use crate::arch::LANES;
use crate::linear::runs::Runs;
use crate::linear::weights::Windows;

/// Most bits of a table's index: a table has a number of each pattern, and eight tables are in use at once.
const MOST_INDEX_BITS: usize = 10;

/// A way to compute dot products.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plan {
    /// Tables of all patterns of `bits` weight bits of each of `inputs` inputs, shared by all outputs, and by windows
    /// that read the same `run` of inputs.
    Tables {
        /// Inputs that windows read together; a divisor of their number.
        run: usize,
        /// Inputs of a table, all of one run.
        inputs: usize,
        /// Weight bits of each.
        bits: usize,
    },
    /// Buckets for signed digits of weights.
    Buckets {
        /// Bits of a digit.
        bits: usize,
        /// Parts into which inputs are divided, each with buckets of its own.
        parts: usize,
    },
}

impl Plan {
    /// The cheapest for a matrix with so many rows, of weights of `weight_bits`, applied to these windows; and how many
    /// vectors of eight products that takes, without the few for inversions.
    pub(super) fn choose(outputs: usize, weight_bits: usize, windows: &Windows) -> (usize, Self) {
        let all = 0..windows.count();
        let reads = [windows.run(), windows.inputs()].map(|run| Runs::of(windows, run, all.clone()));
        let shapes =
            (1..=MOST_INDEX_BITS).flat_map(|inputs| (1..=MOST_INDEX_BITS / inputs).map(move |bits| (inputs, bits)));
        let tables = shapes.flat_map(|(inputs, bits)| {
            reads.iter().map(move |runs| {
                let plan = Self::Tables { run: runs.length(), inputs, bits };
                (table_products(outputs, weight_bits, windows.count(), runs, inputs, bits), plan)
            })
        });
        let buckets = (1..=8).flat_map(|bits| (1..=LANES).map(move |parts| (bits, parts))).map(|(bits, parts)| {
            let plan = Self::Buckets { bits, parts };
            (bucket_products(outputs, weight_bits, windows, bits, parts), plan)
        });
        tables.chain(buckets).min_by_key(|(products, _)| *products).expect("there are shapes of tables")
    }
}

/// Vectors of eight products that tables take, without the few for inversions.
fn table_products(
    outputs: usize,
    weight_bits: usize,
    windows: usize,
    runs: &Runs<'_>,
    inputs: usize,
    bits: usize,
) -> usize {
    let blocks = runs.length().div_ceil(inputs);
    let digits = (weight_bits - 1).div_ceil(bits);
    let tables = (runs.distinct() * blocks).div_ceil(LANES) << (inputs * bits);
    let rows = (outputs * (digits + 1)).div_ceil(LANES) * blocks * runs.read();
    let finish = windows * outputs.div_ceil(LANES) * (weight_bits + digits + 3);
    tables + rows + finish
}

/// The same for buckets.
fn bucket_products(outputs: usize, weight_bits: usize, windows: &Windows, bits: usize, parts: usize) -> usize {
    let digits = weight_bits.div_ceil(bits);
    let half = 1 << (bits - 1);
    let count = windows.count() * outputs;
    let vectors = (count * digits * parts).div_ceil(LANES);
    let units = (2 * count).div_ceil(LANES);
    vectors * (windows.inputs().div_ceil(parts) + 4 * half) + units * (weight_bits + digits * parts + 3)
}
