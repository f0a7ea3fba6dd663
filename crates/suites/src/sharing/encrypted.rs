//! The offline half of linear layers: under BFV, in the ring or modulo a prime, which of the two is the plan's; or by OT, where elements meet
//! a factor each ([`super::elements`]).

use std::fmt;

use privet_channel::{Channel, Cost};
use privet_linear::{ClientMemory, Keep, Layer, Resharing, ServerMemory, TransformedWeights, Workspace, slots};
use privet_prg::Prg;
use privet_program::Program;
use privet_ring::{Field, Modulus};

use super::Options;
use super::kept::{self, Kept};
use crate::Error;

/// In slots polynomials are 64 KiB blocks from the heaps of several threads, which keep much of what was freed: what a process
/// takes was found to be up to 1.6 times the sizes.
const HEAPS: u64 = 2;

/// Weights up to this width can be multiplied in the clear in two halves of a word.
const FIELD_WEIGHT_BITS: u32 = 22;

const NO_KEYS: &str = "the client's keys are for layers under BFV whose weights it does not keep";

/// How the weights of a linear layer and the client's mask meet.
#[derive(Debug, Clone)]
pub enum Encrypted {
    /// Not under BFV: the bits of a factor for each element choose in OTs.
    Chosen(Chosen),
    /// As coefficients, modulo a power of two.
    Ring(privet_linear::Plan),
    /// In slots, modulo a prime.
    Field(slots::Plan),
    /// As coefficients, the weights kept by the client.
    Kept(Kept),
}

/// Elements that are multiplied by a private factor each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chosen {
    /// How many.
    pub len: usize,
    /// Width of the ring of their products, in bits.
    pub bits: u32,
}

/// Elements of a layer.
pub(super) struct Lens {
    pub(super) weights: usize,
    pub(super) input: usize,
    pub(super) output: usize,
}

/// A layer's weights as evaluation takes them.
pub enum Transformed {
    /// As they are.
    Chosen,
    /// As coefficients.
    Ring(TransformedWeights),
    /// In slots.
    Field(slots::Weights),
    /// As they are: they are encrypted for a client's first preparation, and not evaluated here.
    Kept,
}

/// The client's keys for the linear layers of a preparation.
pub(super) enum ClientKeys {
    Ring(privet_linear::ClientKeys),
    Field(slots::ClientKeys),
}

/// What the server has of them.
pub(super) enum ServerKeys {
    Ring(privet_linear::PublicKey),
    Field(slots::ServerKeys),
}

/// The field over a program's ring, if linear layers are modulo its prime. Fails with [`Error::Misuse`] if the ring has
/// none.
pub(super) fn field_of(program: &Program, options: Options) -> Result<Option<Field>, Error> {
    if !options.is_prime() {
        return Ok(None);
    }
    if program.weight_bits() > FIELD_WEIGHT_BITS {
        let bits = program.weight_bits();
        return Err(Error::Misuse(format!(
            "a prime field takes weights of up to {FIELD_WEIGHT_BITS} bits, not {bits}: compile for a smaller scale"
        )));
    }
    let refusal = || {
        let (bits, rings) = (program.ring_bits(), Field::RINGS);
        let (least, most) = (rings.start(), rings.end());
        Error::Misuse(format!(
            "a prime field takes rings of {least} to {most} bits, not {bits}: compile for another width"
        ))
    };
    Field::over(Modulus::new(program.ring_bits())).map(Some).ok_or_else(refusal)
}

impl Encrypted {
    /// Plans all linear layers of a program under BFV, of whose results so many low bits count; `masks`: which mask
    /// hides each one's input. Fails with [`Error::Linear`] if one does not fit BFV's secure parameters.
    pub(super) fn plan(
        layers: &[Layer],
        masks: &[Option<usize>],
        (program, bits): (&Program, u32),
        options: Options,
        field: Option<Field>,
    ) -> Result<Vec<Self>, Error> {
        if layers.is_empty() {
            return Ok(Vec::new());
        }
        Ok(match field {
            Some(field) => slots::Plan::for_program(layers, field)?.into_iter().map(Self::Field).collect(),
            None => {
                let (bits, weight_bits) = (bits + options.guard_bits(), program.weight_bits());
                let plan = |layers: &[Layer]| {
                    let saving = options.saving;
                    privet_linear::Plan::for_program_saving(layers, bits, weight_bits, Resharing::Approximate, saving)
                };
                let plans = plan(layers)?;
                let kept = match options.keeps_weights() {
                    true => kept::choose(layers, masks, &plans, program.ring_bits(), options.guard_bits()),
                    false => Vec::new(),
                };
                // Where none is kept, what was planned to compare with serves.
                if kept.iter().all(Option::is_none) {
                    return Ok(plans.into_iter().map(Self::Ring).collect());
                }
                let ring_layers: Vec<Layer> = layers
                    .iter()
                    .zip(&kept)
                    .filter(|(_, kept)| kept.is_none())
                    .map(|(layer, _)| layer.clone())
                    .collect();
                let mut ring_plans = if ring_layers.is_empty() { Vec::new() } else { plan(&ring_layers)? }.into_iter();
                let mut ring = || Self::Ring(ring_plans.next().expect("a plan for each other layer"));
                kept.into_iter().map(|kept| kept.map_or_else(&mut ring, Self::Kept)).collect()
            }
        })
    }

    /// Whether the client keeps the weights.
    pub fn is_kept(&self) -> bool {
        matches!(self, Self::Kept(_))
    }

    /// Whether it is under BFV.
    pub fn is_encrypted(&self) -> bool {
        !matches!(self, Self::Chosen(_))
    }

    fn lens(&self) -> Lens {
        match self {
            Self::Chosen(Chosen { len, .. }) => Lens { weights: *len, input: *len, output: *len },
            Self::Ring(plan) => {
                Lens { weights: plan.weights_len(), input: plan.input_len(), output: plan.output_len() }
            }
            Self::Field(plan) => {
                Lens { weights: plan.weights_len(), input: plan.input_len(), output: plan.output_len() }
            }
            Self::Kept(kept) => kept.lens(),
        }
    }

    /// Elements of the weights.
    pub fn weights_len(&self) -> usize {
        self.lens().weights
    }

    /// Elements of the input.
    pub fn input_len(&self) -> usize {
        self.lens().input
    }

    /// Elements of the output.
    pub fn output_len(&self) -> usize {
        self.lens().output
    }

    /// Ciphertexts that the client and that the server sends.
    pub fn ciphertexts(&self) -> [usize; 2] {
        match self {
            Self::Chosen(_) => [0; 2],
            Self::Ring(plan) => [plan.input_ciphertexts(), plan.output_ciphertexts()],
            Self::Field(plan) => [plan.input_ciphertexts(), plan.output_ciphertexts()],
            Self::Kept(kept) => [kept.whole().map_or(0, |plan| plan.replies()), 0],
        }
    }

    /// Results that leave, as replies hold them.
    pub fn results(&self) -> u64 {
        match self {
            Self::Chosen(_) => 0,
            Self::Ring(plan) => plan.replied_results() as u64,
            Self::Field(plan) => (plan.output_ciphertexts() * plan.parameters().degree()) as u64,
            Self::Kept(_) => self.output_len() as u64,
        }
    }

    /// Products of ciphertexts with plain weights that the server computes, or of kept ones with masks.
    pub fn products(&self) -> usize {
        match self {
            Self::Chosen(_) => 0,
            Self::Ring(plan) => plan.products(),
            Self::Field(plan) => plan.products(),
            Self::Kept(kept) => kept.whole().map_or(0, |plan| plan.products()),
        }
    }

    /// What the client's channel counts under BFV.
    pub fn cost(&self) -> Cost {
        match self {
            Self::Chosen(_) => Cost::default(),
            Self::Ring(plan) => plan.cost(),
            Self::Field(plan) => plan.cost(),
            Self::Kept(kept) => kept.whole().map(|plan| plan.cost()).unwrap_or_default(),
        }
    }

    /// Bytes of the keys that the client sends for all layers of a program.
    pub fn keys_bytes(layers: &[&Self]) -> u64 {
        match layers.first() {
            None | Some(Self::Chosen(_)) => 0,
            Some(Self::Ring(plan)) => plan.public_key_cost().bytes_sent,
            Some(Self::Field(_)) => slots::Plan::keys_cost(&in_slots(layers)).bytes_sent,
            Some(Self::Kept(_)) => unreachable!("{NO_KEYS}"),
        }
    }

    /// Bytes of memory that keys, and weights that are not counted with a layer, take at the server during a preparation.
    pub(super) fn shared_memory(layers: &[&Self]) -> u64 {
        if let Some(Self::Ring(plan)) = layers.first() {
            return plan.keys_memory();
        }
        let in_slots = in_slots(layers);
        let weights: u64 = in_slots.iter().map(|plan| plan.weights_memory()).sum();
        HEAPS * (slots::Plan::keys_memory(&in_slots) + weights)
    }

    pub(super) fn client_memory(&self, threads: usize) -> ClientMemory {
        match self {
            Self::Chosen(_) => ClientMemory { encrypting: 0, decrypting: 0 },
            Self::Ring(plan) => plan.client_memory(threads),
            Self::Field(plan) => {
                let most = plan.client_memory(threads);
                ClientMemory { encrypting: most, decrypting: most }
            }
            Self::Kept(kept) => {
                let encrypting = kept.whole().map_or(0, |plan| plan.client_memory(threads));
                ClientMemory { encrypting, decrypting: 0 }
            }
        }
    }

    /// The server's memory; in slots, weights are counted by [`Self::shared_memory`].
    pub(super) fn server_memory(&self, workspace: Workspace, threads: usize) -> ServerMemory {
        match self {
            Self::Chosen(_) => ServerMemory { weights: 0, making: 0, evaluating: 0 },
            Self::Ring(plan) => plan.server_memory(workspace, threads),
            Self::Field(plan) => {
                ServerMemory { weights: 0, making: 0, evaluating: HEAPS * plan.server_memory(threads) }
            }
            Self::Kept(kept) => {
                let evaluating = kept.whole().map_or(0, |plan| plan.server_memory(threads));
                ServerMemory { weights: 0, making: 0, evaluating }
            }
        }
    }

    /// What the server chooses without a limit. In slots, and where the client keeps weights, it has no choice.
    pub(super) fn standard_workspace(&self) -> Workspace {
        match self {
            Self::Ring(plan) => Workspace::standard(plan),
            Self::Chosen(_) | Self::Field(_) | Self::Kept(_) => Workspace { keep: Keep::Plain, sections: 1 },
        }
    }

    /// Bytes that the weights take if they are kept transformed.
    pub(super) fn transformed_bytes(&self) -> u64 {
        match self {
            Self::Ring(plan) => plan.kept_bytes(Keep::Transformed),
            Self::Chosen(_) | Self::Field(_) | Self::Kept(_) => 0,
        }
    }

    /// The weights as evaluation takes them.
    pub(super) fn transform(&self, weights: &[i64], workspace: Workspace) -> Result<Transformed, privet_linear::Error> {
        Ok(match self {
            Self::Chosen(_) => Transformed::Chosen,
            Self::Ring(plan) => Transformed::Ring(TransformedWeights::new(plan, weights, workspace)?),
            Self::Field(plan) => Transformed::Field(slots::Weights::new(plan, weights)?),
            Self::Kept(_) => Transformed::Kept,
        })
    }
}

impl fmt::Display for Encrypted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Chosen(chosen) => write!(f, "{} factors choose by OT", chosen.len),
            Self::Ring(plan) => plan.fmt(f),
            Self::Field(plan) => plan.fmt(f),
            Self::Kept(kept) => match kept.whole() {
                Some(plan) => plan.fmt(f),
                None => write!(f, "with the layer before that reads the same"),
            },
        }
    }
}

impl ClientKeys {
    /// Makes keys for a program's layers, of which there must be one, and sends what the server needs of them.
    pub(super) fn send(channel: &mut Channel, layers: &[&Encrypted], prg: &mut Prg) -> Result<Self, Error> {
        Ok(match layers[0] {
            Encrypted::Ring(plan) => {
                let keys = privet_linear::ClientKeys::generate(plan.parameters(), prg);
                keys.send_public_key(channel, prg)?;
                Self::Ring(keys)
            }
            Encrypted::Field(plan) => {
                let keys = slots::ClientKeys::generate(plan.parameters(), prg);
                keys.send(channel, &in_slots(layers), prg)?;
                Self::Field(keys)
            }
            Encrypted::Chosen(_) | Encrypted::Kept(_) => unreachable!("{NO_KEYS}"),
        })
    }

    /// Whether the keys are for parameters of this layer, in the ring.
    pub(super) fn fit(&self, layer: &Encrypted) -> bool {
        matches!((self, layer), (Self::Ring(keys), Encrypted::Ring(plan))
            if keys.parameters().agrees_with(plan.parameters()))
    }

    /// Encrypts and sends a layer's input, shifted by `guard` bits, as far as it is in the layer's ring.
    pub(super) fn encrypt(
        &self,
        channel: &mut Channel,
        layer: &Encrypted,
        r: &[u64],
        guard: u32,
        prg: &mut Prg,
    ) -> Result<(), Error> {
        match (self, layer) {
            (Self::Ring(keys), Encrypted::Ring(plan)) => {
                let ring = Modulus::new(plan.parameters().ring_bits());
                let raised: Vec<u64> = r.iter().map(|r| ring.reduce(r << guard)).collect();
                Ok(privet_linear::encrypt(channel, plan, keys, &raised, prg)?)
            }
            (Self::Field(keys), Encrypted::Field(plan)) => Ok(slots::encrypt(channel, plan, keys, r, prg)?),
            _ => unreachable!("all layers with keys of the client are of one kind"),
        }
    }

    /// The client's share of a layer's result.
    pub(super) fn decrypt(&self, channel: &mut Channel, layer: &Encrypted) -> Result<Vec<u64>, Error> {
        match (self, layer) {
            (Self::Ring(keys), Encrypted::Ring(plan)) => Ok(privet_linear::decrypt(channel, plan, keys)?),
            (Self::Field(keys), Encrypted::Field(plan)) => Ok(slots::decrypt(channel, plan, keys)?),
            _ => unreachable!("all layers with keys of the client are of one kind"),
        }
    }
}

impl ServerKeys {
    /// The server's half of [`ClientKeys::send`].
    pub(super) fn receive(channel: &mut Channel, layers: &[&Encrypted]) -> Result<Self, Error> {
        Ok(match layers[0] {
            Encrypted::Ring(plan) => Self::Ring(privet_linear::receive_public_key(channel, plan.parameters())?),
            Encrypted::Field(plan) => {
                Self::Field(slots::ServerKeys::receive(channel, plan.parameters(), &in_slots(layers))?)
            }
            Encrypted::Chosen(_) | Encrypted::Kept(_) => unreachable!("{NO_KEYS}"),
        })
    }

    /// Whether the keys are for parameters of this layer, in the ring.
    pub(super) fn fit(&self, layer: &Encrypted) -> bool {
        matches!((self, layer), (Self::Ring(key), Encrypted::Ring(plan))
            if key.parameters().agrees_with(plan.parameters()))
    }

    /// The server's share of a layer's result.
    pub(super) fn evaluate(
        &self,
        channel: &mut Channel,
        layer: &Encrypted,
        weights: &Transformed,
        prg: &mut Prg,
    ) -> Result<Vec<u64>, Error> {
        match (self, layer, weights) {
            (Self::Ring(key), Encrypted::Ring(plan), Transformed::Ring(weights)) => {
                Ok(privet_linear::evaluate(channel, plan, key, weights, prg)?)
            }
            (Self::Field(keys), Encrypted::Field(plan), Transformed::Field(weights)) => {
                Ok(slots::evaluate(channel, plan, keys, weights, prg)?)
            }
            _ => unreachable!("all layers with keys of the client are of one kind"),
        }
    }
}

/// The layers that are in slots: all or none.
fn in_slots<'a>(layers: &[&'a Encrypted]) -> Vec<&'a slots::Plan> {
    let plan = |layer: &&'a Encrypted| match layer {
        Encrypted::Field(plan) => Some(plan),
        Encrypted::Chosen(_) | Encrypted::Ring(_) | Encrypted::Kept(_) => None,
    };
    layers.iter().filter_map(plan).collect()
}
