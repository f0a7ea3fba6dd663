//! What both parties derive from a layer's public shape: parameters, packing, costs.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use privet_bfv::slots::{Parameters, Rotation};
use privet_channel::{Cost, HEADER_BYTES};
use privet_ring::Field;

use crate::correlation::Correlation;
use crate::error::{Error, Misuse};
use crate::layer::Layer;
use crate::plan::MOST_RESULTS;

use super::packing::{Packing, Steps};
use super::server::{INPUTS_AT_ONCE, STEPS_AT_ONCE, outputs_apart};
use super::steps;

/// Ciphertexts and replies travel this many to a message: half a megabyte or so.
const PER_MESSAGE: usize = 4;

/// Slots of a row at the one degree that there is.
const ROW: usize = 4096;

/// How a layer is computed. Both parties derive it from public shapes and widths alone. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Plan(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    layer: Layer,
    field: Field,
    parameters: Parameters,
    packing: Packing,
}

impl Plan {
    /// The plans of all linear layers of a program modulo the field's prime, under the same parameters.
    ///
    /// # Errors
    /// [`Misuse`] for an impossible shape, an image whose rows exceed a row of slots, or if no secure parameters hold the noise;
    /// [`Misuse::NoLayers`] if there is none.
    pub fn for_program(layers: &[Layer], field: Field) -> Result<Vec<Self>, Error> {
        let packed = layers.iter().map(|layer| {
            let correlation = Correlation::new(layer)?;
            match correlation.output_len {
                outputs if outputs > MOST_RESULTS => Err(Misuse::TooManyResults { outputs }.into()),
                _ => packing(&correlation),
            }
        });
        let packings = packed.collect::<Result<Vec<_>, Error>>()?;
        let most = |count: fn(&Steps) -> usize| {
            let ways = packings.iter().flat_map(Packing::ways);
            ways.map(|(steps, _)| count(steps)).max().ok_or(Misuse::NoLayers)
        };
        let replies = packings.iter().map(|packing| packing.tiles() * packing.outputs).sum();
        let (terms, turns) = (most(products_of)?, most(|steps| turns(steps).count())?);
        let parameters = Parameters::choose(field.prime(), terms, turns, replies)?;
        let plan = |(packing, layer): (Packing, &Layer)| {
            Self(Arc::new(Inner { layer: layer.clone(), field, parameters: parameters.clone(), packing }))
        };
        Ok(packings.into_iter().zip(layers).map(plan).collect())
    }

    /// The layer.
    pub fn layer(&self) -> &Layer {
        &self.0.layer
    }

    /// The field of inputs and results.
    pub fn field(&self) -> Field {
        self.0.field
    }

    /// The parameters, which keys must be made for.
    pub fn parameters(&self) -> &Parameters {
        &self.0.parameters
    }

    /// Elements of the input.
    pub fn input_len(&self) -> usize {
        self.packing().correlation.input_len
    }

    /// Elements of the weights.
    pub fn weights_len(&self) -> usize {
        self.packing().correlation.weights_len
    }

    /// Elements of the output.
    pub fn output_len(&self) -> usize {
        self.packing().correlation.output_len
    }

    /// Ciphertexts that the client sends.
    pub fn input_ciphertexts(&self) -> usize {
        self.packing().tiles() * self.packing().inputs
    }

    /// Ciphertexts that the server sends.
    pub fn output_ciphertexts(&self) -> usize {
        self.packing().tiles() * self.packing().outputs
    }

    /// Products of a ciphertext and a polynomial of weights, at most.
    pub fn products(&self) -> usize {
        self.packing().tiles() * in_all(self.packing(), products_of)
    }

    /// Rotations of sums.
    pub fn rotations(&self) -> usize {
        self.packing().tiles() * in_all(self.packing(), |steps| turns(steps).count())
    }

    /// What the client's channel counts for the layer: bytes and messages each way, one round. Layers that are all encrypted
    /// before the first is decrypted take one round together.
    pub fn cost(&self) -> Cost {
        let messages = |ciphertexts: usize| ciphertexts.div_ceil(PER_MESSAGE);
        let (sent, received) = (self.input_ciphertexts(), self.output_ciphertexts());
        let bytes = |count: usize, each: usize| (count * each + messages(count) * HEADER_BYTES) as u64;
        Cost {
            bytes_sent: bytes(sent, self.parameters().ciphertext_bytes()),
            bytes_received: bytes(received, self.parameters().reply_bytes()),
            messages_sent: messages(sent) as u64,
            messages_received: messages(received) as u64,
            rounds: 1,
        }
    }

    /// The keys' messages, which the client sends once per session for all layers.
    pub fn keys_cost(plans: &[&Self]) -> Cost {
        let Some(parameters) = plans.first().map(|plan| plan.parameters()) else {
            return Cost::default();
        };
        let keys = rotations_of(plans).len();
        let bytes = parameters.ciphertext_bytes() + keys * parameters.rotation_key_bytes() + (1 + keys) * HEADER_BYTES;
        Cost { bytes_sent: bytes as u64, messages_sent: 1 + keys as u64, ..Cost::default() }
    }

    /// Most bytes that the keys of these layers take at the server.
    pub fn keys_memory(plans: &[&Self]) -> u64 {
        let key_memory = plans.first().map_or(0, |plan| plan.parameters().rotation_key_memory());
        rotations_of(plans).len() as u64 * key_memory
    }

    /// Most bytes that [`super::evaluate`] takes, with this many threads, beyond weights and keys.
    pub fn server_memory(&self, threads: usize) -> u64 {
        let (parameters, packing) = (self.parameters(), self.packing());
        let [inputs, outputs] = [packing.inputs, packing.outputs].map(|count| count as u64);
        let weights = INPUTS_AT_ONCE as u64 * parameters.weights_memory() + parameters.working_memory();
        let ciphertext = parameters.ciphertext_memory();
        let threads_used = threads as u64;
        let tasks = match outputs_apart(packing.outputs, threads) {
            true => threads_used * (5 * ciphertext + weights),
            false => (4 + STEPS_AT_ONCE as u64 + threads_used) * ciphertext + threads_used * weights,
        };
        let replies = (outputs + 2 * PER_MESSAGE as u64) * (parameters.reply_bytes() + 8 * parameters.degree()) as u64;
        // A whole message may wait beside a tile's ciphertexts.
        let arriving = PER_MESSAGE as u64 * (parameters.ciphertext_bytes() as u64 + ciphertext);
        inputs * ciphertext + arriving + tasks + replies + 8 * self.output_len() as u64
    }

    /// Most bytes that [`super::encrypt`] or [`super::decrypt`] takes, with this many threads.
    pub fn client_memory(&self, threads: usize) -> u64 {
        let parameters = self.parameters();
        let messages = 2 * PER_MESSAGE * parameters.ciphertext_bytes();
        let opened = PER_MESSAGE * 24 * parameters.degree();
        threads as u64 * parameters.working_memory() + (messages + opened + 8 * self.output_len()) as u64
    }

    pub(super) fn packing(&self) -> &Packing {
        &self.0.packing
    }

    /// Whether both describe the same work.
    pub(super) fn agrees_with(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
            || (self.layer() == other.layer() && self.parameters().agrees_with(other.parameters()))
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (parameters, cost) = (self.parameters(), self.cost());
        let megabytes = |bytes: u64| bytes as f64 / 1e6;
        write!(
            f,
            "{} ciphertexts up ({:.2} MB), {} down ({:.2} MB), {} products, {} rotations; N = {}, q of 3 x {} bits, \
             replies of {} bits, p = {}",
            self.input_ciphertexts(),
            megabytes(cost.bytes_sent),
            self.output_ciphertexts(),
            megabytes(cost.bytes_received),
            self.products(),
            self.rotations(),
            parameters.degree(),
            parameters.prime_bits(),
            parameters.reply_bits(),
            parameters.prime(),
        )
    }
}

/// The ciphertexts of each message.
pub(super) fn messages(ciphertexts: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
    crate::mail::in_groups(ciphertexts, PER_MESSAGE)
}

/// Every rotation that some of these layers takes.
pub(super) fn rotations_of(plans: &[&Plan]) -> BTreeSet<Rotation> {
    plans.iter().flat_map(|plan| plan.packing().ways()).flat_map(|(steps, _)| turns(steps)).collect()
}

/// What the ways to all output ciphertexts of a tile count together.
fn in_all(packing: &Packing, count: impl Fn(&Steps) -> usize) -> usize {
    packing.ways().map(|(steps, times)| times * count(steps)).sum()
}

/// Products that are summed up in an output ciphertext.
fn products_of(steps: &Steps) -> usize {
    steps.iter().map(|(_, inputs)| inputs.len()).sum()
}

/// The rotations on the way to an output ciphertext.
fn turns(steps: &Steps) -> impl Iterator<Item = Rotation> + '_ {
    let turns = steps::turns(steps.iter().map(|(step, _)| step));
    turns.flat_map(|turn| turn.rotation.into_iter().chain(turn.swap.then_some(Rotation::Swap)))
}

/// The packing that is cheapest by bytes (8 ns each, as on 1 Gbit/s) and work (two cores).
fn packing(correlation: &Correlation) -> Result<Packing, Error> {
    let blocks = (0..=ROW.trailing_zeros()).map(|bits| 1 << bits);
    let price = |packing: &Packing| {
        let products = in_all(packing, products_of);
        let turns = in_all(packing, |steps| turns(steps).count());
        let each = 1_200_000 * packing.inputs + 850_000 * packing.outputs + 40_000 * products + 150_000 * turns;
        packing.tiles() as u128 * each as u128
    };
    let too_wide = || {
        let elements = correlation.axes.iter().map(|axis| axis.outputs + axis.reach).max().unwrap_or(0);
        Misuse::KernelTooLarge { elements, degree: ROW }
    };
    let fitting = blocks.filter_map(|block| Packing::new(correlation, ROW, block));
    Ok(fitting.min_by_key(price).ok_or_else(too_wide)?)
}
