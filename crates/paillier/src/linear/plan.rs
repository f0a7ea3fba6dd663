//! How many products each way takes, and which is cheaper.

use crate::arch::LANES;

/// Most bits of a table's index: a table has a number of each pattern, and eight tables are in use at once.
const MOST_INDEX_BITS: usize = 10;

/// A way to compute dot products.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plan {
    /// Tables of all patterns of `bits` weight bits of each of `inputs` inputs, shared by all outputs.
    Tables {
        /// Inputs of a table.
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
    /// The cheapest for a matrix of `outputs` rows and `inputs` columns, of weights of `weight_bits`, applied to so
    /// many windows.
    pub fn choose(outputs: usize, inputs: usize, weight_bits: usize, windows: usize) -> Self {
        let tables = (1..=MOST_INDEX_BITS)
            .flat_map(|inputs| (1..=MOST_INDEX_BITS / inputs).map(move |bits| Self::Tables { inputs, bits }));
        let buckets = (1..=8).flat_map(|bits| (1..=LANES).map(move |parts| Self::Buckets { bits, parts }));
        tables
            .chain(buckets)
            .min_by_key(|plan| plan.products(outputs, inputs, weight_bits, windows))
            .unwrap_or(Self::Tables { inputs: 1, bits: 1 })
    }

    /// Vectors of eight products that it takes, without the few for inversions.
    pub fn products(self, outputs: usize, inputs: usize, weight_bits: usize, windows: usize) -> usize {
        match self {
            Self::Tables { inputs: group, bits } => {
                let blocks = inputs.div_ceil(group);
                let digits = (weight_bits - 1).div_ceil(bits);
                let table = blocks.div_ceil(LANES) << (group * bits);
                let rows = (outputs * (digits + 1)).div_ceil(LANES) * blocks;
                let finish = outputs.div_ceil(LANES) * (weight_bits + digits + 3);
                windows * (table + rows + finish)
            }
            Self::Buckets { bits, parts } => {
                let digits = weight_bits.div_ceil(bits);
                let half = 1 << (bits - 1);
                let vectors = (windows * outputs * digits * parts).div_ceil(LANES);
                let units = (2 * windows * outputs).div_ceil(LANES);
                vectors * (inputs.div_ceil(parts) + 4 * half) + units * (weight_bits + digits * parts + 3)
            }
        }
    }
}
