//! What both parties derive from a layer's public shape: parameters, tiling, costs.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use privet_bfv::{Parameters, Resharing};
use privet_channel::{Cost, HEADER_BYTES};

use crate::correlation::Correlation;
use crate::error::{Error, Misuse};
use crate::layer::Layer;
use crate::mail::PER_MESSAGE;
use crate::packing::Packing;
use crate::tiling::{Choices, MOST_LEVELS, Price, Saving, Tiling};

/// Most bits of a weight: those of the widest ring, whose elements may be weights.
const WIDEST_WEIGHTS: u32 = 50;

/// Most results of a layer.
pub(crate) const MOST_RESULTS: usize = 1 << 24;

/// How a layer is computed. Both parties derive it from public shapes and widths alone. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Plan(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    layer: Layer,
    weight_bits: u32,
    parameters: Parameters,
    packing: Packing,
}

impl Plan {
    /// The plan of a single layer over Z_2^`ring_bits` with weights below `2^weight_bits` in absolute value, under parameters
    /// of its own. Use [`Plan::for_program`] to share one key among layers.
    ///
    /// # Errors
    /// [`Misuse`] for an impossible shape, or if no secure parameters hold the noise.
    pub fn new(layer: &Layer, ring_bits: u32, weight_bits: u32, resharing: Resharing) -> Result<Self, Error> {
        Self::for_program(std::slice::from_ref(layer), ring_bits, weight_bits, resharing)?
            .pop()
            .ok_or(Misuse::NoLayers.into())
    }

    /// The plans of all linear layers of a program, under the same parameters: those that its heaviest layer needs.
    ///
    /// # Errors
    /// As [`Plan::new`]; [`Misuse::NoLayers`] if there is none.
    pub fn for_program(
        layers: &[Layer],
        ring_bits: u32,
        weight_bits: u32,
        resharing: Resharing,
    ) -> Result<Vec<Self>, Error> {
        Self::for_program_saving(layers, ring_bits, weight_bits, resharing, Saving::Work)
    }

    /// As [`Plan::for_program`], for parties that save bytes or work first.
    ///
    /// # Errors
    /// As [`Plan::for_program`].
    pub fn for_program_saving(
        layers: &[Layer],
        ring_bits: u32,
        weight_bits: u32,
        resharing: Resharing,
        saving: Saving,
    ) -> Result<Vec<Self>, Error> {
        if !(1..=WIDEST_WEIGHTS).contains(&weight_bits) {
            return Err(Misuse::WeightWidth { weight_bits }.into());
        }
        let correlations = layers.iter().map(Correlation::new).collect::<Result<Vec<_>, _>>()?;
        let inner = correlations.iter().map(|correlation| correlation.inner).max().ok_or(Misuse::NoLayers)?;
        let results = correlations.iter().map(|correlation| correlation.output_len).fold(0, usize::saturating_add);
        if let Some(large) = correlations.iter().find(|correlation| correlation.output_len > MOST_RESULTS) {
            return Err(Misuse::TooManyResults { outputs: large.output_len }.into());
        }
        let plain = Parameters::choose(ring_bits, weight_bits, inner, results, resharing)?;
        let (parameters, tilings) = cheapest(&correlations, plain, saving)?;
        let plan = |((correlation, layer), tiling): ((Correlation, &Layer), Tiling)| {
            let packing = Packing::new(correlation, tiling, parameters.degree());
            Self(Arc::new(Inner { layer: layer.clone(), weight_bits, parameters: parameters.clone(), packing }))
        };
        Ok(correlations.into_iter().zip(layers).zip(tilings).map(plan).collect())
    }

    /// The layer.
    pub fn layer(&self) -> &Layer {
        &self.0.layer
    }

    /// The parameters, which keys must be made for.
    pub fn parameters(&self) -> &Parameters {
        &self.0.parameters
    }

    /// Weights stay below `2^weight_bits` in absolute value.
    pub fn weight_bits(&self) -> u32 {
        self.0.weight_bits
    }

    /// Elements of the input.
    pub fn input_len(&self) -> usize {
        self.correlation().input_len
    }

    /// Elements of the weights.
    pub fn weights_len(&self) -> usize {
        self.correlation().weights_len
    }

    /// Elements of the output.
    pub fn output_len(&self) -> usize {
        self.correlation().output_len
    }

    /// Ciphertexts that the client sends.
    pub fn input_ciphertexts(&self) -> usize {
        self.packing().inputs()
    }

    /// Ciphertexts that the server sends.
    pub fn output_ciphertexts(&self) -> usize {
        self.packing().replies()
    }

    /// How often the server folds one sum of products into another before it replies.
    pub fn folds(&self) -> usize {
        self.packing().sums() - self.packing().replies()
    }

    /// Coefficients that replies hold, all together: what a key is worn by.
    pub fn replied_results(&self) -> usize {
        (0..self.output_ciphertexts()).map(|index| self.packing().used(index)).sum()
    }

    /// Polynomials of weights: none where ciphertexts are multiplied by the weights themselves.
    pub fn weight_polynomials(&self) -> usize {
        if self.packing().tiling.blocks.is_some() { 0 } else { self.packing().weights() }
    }

    /// Products of a ciphertext and a polynomial of weights.
    pub fn products(&self) -> usize {
        self.packing().sums() * self.packing().counts.channels
    }

    /// How far the shares may be off, in units of the last place.
    pub fn error_bound(&self) -> u64 {
        self.parameters().error_bound()
    }

    /// What the client's channel counts for the layer ([`crate::encrypt`] and [`crate::decrypt`]): bytes and messages each
    /// way, one round. Several layers that are all encrypted before the first is decrypted take one round together.
    pub fn cost(&self) -> Cost {
        let messages = |ciphertexts: usize| ciphertexts.div_ceil(PER_MESSAGE);
        let (sent, received) = (self.input_ciphertexts(), self.output_ciphertexts());
        let up = sent * self.parameters().ciphertext_bytes() + messages(sent) * HEADER_BYTES;
        let down: usize = (0..received).map(|index| self.reply_bytes(index)).sum();
        Cost {
            bytes_sent: up as u64,
            bytes_received: (down + messages(received) * HEADER_BYTES) as u64,
            messages_sent: messages(sent) as u64,
            messages_received: messages(received) as u64,
            rounds: 1,
        }
    }

    /// Bytes of the public key's message, which the client sends once per session.
    pub fn public_key_cost(&self) -> Cost {
        let bytes = self.parameters().public_key_bytes() + HEADER_BYTES;
        Cost { bytes_sent: bytes as u64, messages_sent: 1, ..Cost::default() }
    }

    /// What an evaluation costs, in nanoseconds over 1 Gbit/s on two cores; keys are not in it.
    pub fn price(&self) -> u64 {
        self.packing().tiling.price(self.correlation(), self.parameters(), Saving::Work).whole
    }

    pub(crate) fn packing(&self) -> &Packing {
        &self.0.packing
    }

    pub(crate) fn reply_bytes(&self, index: usize) -> usize {
        self.parameters().reply_bytes(self.packing().used(index))
    }

    /// Whether both describe the same work.
    pub(crate) fn agrees_with(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
            || (self.layer() == other.layer()
                && self.weight_bits() == other.weight_bits()
                && self.parameters().agrees_with(other.parameters())
                // The rest of the program has a part in it.
                && self.packing() == other.packing())
    }

    fn correlation(&self) -> &Correlation {
        &self.packing().correlation
    }
}

/// The parameters and tilings with the lowest price, keys included: where work is saved, of those that take hardly more of it than without
/// merging; where bytes are, also at twice the degree, where the modulus leaves more room to merge.
fn cheapest(
    correlations: &[Correlation],
    plain: Parameters,
    saving: Saving,
) -> Result<(Parameters, Vec<Tiling>), Error> {
    let wider = plain.doubled().filter(|_| saving == Saving::Bytes);
    let [narrow, wide] = [Some(plain), wider].map(|plain| plain.map(|plain| of_degree(correlations, plain, saving)));
    let offers = [narrow, wide].into_iter().flatten().collect::<Result<Vec<_>, _>>()?;
    let (parameters, tilings, _) = offers.into_iter().min_by_key(|(_, _, price)| *price).expect("an offer");
    Ok((parameters, tilings))
}

/// The cheapest of the degree of `plain`, with its price.
fn of_degree(
    correlations: &[Correlation],
    plain: Parameters,
    saving: Saving,
) -> Result<(Parameters, Vec<Tiling>, u64), Error> {
    let key_bytes = plain.merging_key_bytes();
    let most = key_bytes.map_or(0, |_| MOST_LEVELS);
    // Layers of one shape are alike.
    let mut choices: HashMap<&Correlation, Vec<Choices>> = HashMap::new();
    for correlation in correlations {
        if !choices.contains_key(correlation) {
            choices.insert(correlation, Tiling::choose(correlation, &plain, most, saving)?);
        }
    }
    let chosen: Vec<&Vec<Choices>> = correlations.iter().map(|correlation| &choices[correlation]).collect();
    let price = |levels: u32, which: usize| {
        let keys = Price::of_keys(levels, key_bytes.unwrap_or(0), saving);
        chosen.iter().map(|tilings| tilings[levels as usize][which].1).fold(keys, Price::add)
    };
    let tilings = |levels: u32, which: usize| -> Vec<Tiling> {
        chosen.iter().map(|tilings| tilings[levels as usize][which].0).collect()
    };
    let without = price(0, 0);
    let all = (1..=most).flat_map(|levels| (0..saving.weights()).map(move |which| (levels, which)));
    let priced = all.map(|(levels, which)| (price(levels, which), levels, which));
    let pays = |offer: &(Price, u32, usize)| saving == Saving::Bytes || offer.0.pays_beside(&without);
    let mut offers: Vec<_> = priced.filter(pays).collect();
    offers.sort_by_key(|(price, levels, _)| (price.whole, *levels));
    // More levels than the noise allows are refused one by one.
    let mut refused = most + 1;
    for (_, levels, which) in offers {
        if levels >= refused {
            continue;
        }
        let Some(parameters) = plain.merging(levels) else {
            refused = levels;
            continue;
        };
        // Its modulus may be wider than the one that the offer was priced with.
        let tilings = tilings(levels, which);
        if !tilings.iter().all(|tiling| tiling.suits(&parameters)) {
            continue;
        }
        let keys = Price::of_keys(levels, parameters.merging_key_bytes().unwrap_or(0), saving);
        let prices = correlations
            .iter()
            .zip(&tilings)
            .map(|(correlation, tiling)| tiling.price(correlation, &parameters, saving));
        let whole = prices.fold(keys, Price::add).whole;
        if whole < without.whole {
            return Ok((parameters, tilings, whole));
        }
    }
    let tilings = tilings(0, 0);
    Ok((plain, tilings, without.whole))
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (parameters, cost) = (self.parameters(), self.cost());
        let [wide, narrow] = parameters.prime_bits();
        let megabytes = |bytes: u64| bytes as f64 / 1e6;
        write!(
            f,
            "{} ciphertexts up ({:.2} MB), {} down ({:.2} MB), {} products with {} weight polynomials, {} folds; \
             N = {}, q of {wide} + {narrow} bits, replies of {} bits",
            self.input_ciphertexts(),
            megabytes(cost.bytes_sent),
            self.output_ciphertexts(),
            megabytes(cost.bytes_received),
            self.products(),
            self.weight_polynomials(),
            self.folds(),
            parameters.degree(),
            parameters.reply_bits(),
        )
    }
}
