//! How much memory a layer takes, and what the server may trade for less.
//!
//! Figures are upper bounds in bytes on what this crate has allocated at once, close to it (`tests/memory.rs` counts). What
//! the caller holds (the client's `r`, the server's weights as 64-bit integers), what the channel buffers, and what the
//! allocator adds are not in them. They depend on public shapes and widths, and on the number of threads.

use privet_bfv::Panel;

use crate::blocks::sums_per_task;
use crate::mail::{PER_MESSAGE, messages, most_waiting};
use crate::plan::Plan;
use crate::server::{CHANNELS_AT_ONCE, OUTPUTS_PER_TASK, TASKS_PER_THREAD, TILES_PER_TASK};
use crate::server::{has_single_products, inputs_waiting, outputs_at_once};

/// [`Workspace::standard`] keeps transformed weights up to this size.
const STANDARD_WEIGHTS: u64 = 64 << 20;

/// [`Workspace::standard`] takes inputs of this size at once, or more if sections are large.
const STANDARD_INPUTS: u64 = 32 << 20;

/// The same where no two sections use the same weights: what is read is soon multiplied, while it is in a near cache.
const INPUTS_OF_ONE_TILE: u64 = 4 << 20;

/// In what form the server keeps the weights of a layer between evaluations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Keep {
    /// As transformed polynomials: fastest.
    Transformed,
    /// As integers of 32 bits (64 for weights of more than 31), transformed again for every 8 sections at each evaluation.
    Plain,
}

/// How much memory the server spends on a layer. It is the server's own choice: messages are the same, and the client
/// does not learn it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Workspace {
    /// The form of the weights.
    pub keep: Keep,
    /// Sections ([`Plan::sections`]) that are received, multiplied and answered at once; from 1 up, where anything above
    /// [`Plan::sections`] is all. Fewer than 8 of one group have weights transformed more often if they are kept plain.
    pub sections: usize,
}

/// The server's memory for a layer, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerMemory {
    /// Held between evaluations: [`crate::TransformedWeights`].
    pub weights: u64,
    /// The most while these are made, the result included, the caller's own weights not.
    pub making: u64,
    /// The most during [`crate::evaluate`], beyond `weights`: ciphertexts, sums, weights in flight, replies, and the share
    /// that is returned.
    pub evaluating: u64,
}

/// The client's memory for a layer, in bytes, beyond its random `r`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientMemory {
    /// The most during [`crate::encrypt`].
    pub encrypting: u64,
    /// The most during [`crate::decrypt`], with the share that is returned.
    pub decrypting: u64,
}

impl Workspace {
    /// What does well without a limit: weights are kept transformed if they take 64 MiB at most, and inputs of 32 MiB are
    /// worked on at once, of 4 MiB for a layer of one tile, or 8 sections if that is more.
    pub fn standard(plan: &Plan) -> Self {
        let keep = match plan.kept_bytes(Keep::Transformed) <= STANDARD_WEIGHTS {
            true => Keep::Transformed,
            false => Keep::Plain,
        };
        let section = plan.packing().counts.channels as u64 * plan.parameters().ciphertext_memory();
        let inputs = if plan.packing().tiles() == 1 { INPUTS_OF_ONE_TILE } else { STANDARD_INPUTS };
        let sections = ((inputs / section) as usize).max(TILES_PER_TASK);
        Self { keep, sections: sections.min(plan.sections()) }
    }

    /// The most sections, up to those of [`Workspace::standard`], with which [`ServerMemory::evaluating`] stays within
    /// `bytes`; one if none does.
    pub fn within(plan: &Plan, keep: Keep, threads: usize, bytes: u64) -> Self {
        let most = Self::standard(plan).sections;
        let fits = |&sections: &usize| plan.server_memory(Self { keep, sections }, threads).evaluating <= bytes;
        Self { keep, sections: (1..=most).rev().find(fits).unwrap_or(1) }
    }
}

impl Plan {
    /// Parts of the layer that the server can evaluate one after the other: a tile of the image, for one block of groups.
    pub fn sections(&self) -> usize {
        self.packing().sections()
    }

    /// Bytes that the server has in the keys for all layers of a program.
    pub fn keys_memory(&self) -> u64 {
        self.parameters().public_key_memory()
    }

    /// Bytes that the weights take between evaluations.
    pub fn kept_bytes(&self, keep: Keep) -> u64 {
        match keep {
            Keep::Transformed if self.packing().tiling.blocks.is_none() => {
                self.weight_polynomials() as u64 * self.parameters().weights_memory()
            }
            _ => self.integer_bytes() * self.weights_len() as u64,
        }
    }

    /// Bytes of a weight as an integer.
    pub(crate) fn integer_bytes(&self) -> u64 {
        if self.weight_bits() <= 31 { 4 } else { 8 }
    }

    /// What the layer takes on the server, with this many threads of rayon.
    pub fn server_memory(&self, workspace: Workspace, threads: usize) -> ServerMemory {
        if let Some(count) = self.packing().tiling.blocks {
            return self.memory_of_blocks(count, threads);
        }
        let (parameters, packing) = (self.parameters(), self.packing());
        let (threads, degree) = (threads as u64, parameters.degree() as u64);
        let weights = self.kept_bytes(workspace.keep);
        // The polynomial that is transformed.
        let spread = self.integer_bytes() * degree;
        let making = match workspace.keep {
            Keep::Transformed => weights + self.kept_bytes(Keep::Plain) + threads * spread,
            Keep::Plain => weights,
        };

        let sections = workspace.sections.clamp(1, self.sections());
        let read = match has_single_products(self) {
            true => 0,
            false => (sections * packing.counts.channels) as u64 * parameters.ciphertext_memory(),
        };
        let waiting = most_waiting(self, inputs_waiting(self, sections)) * parameters.ciphertext_bytes();
        let inputs = read + waiting as u64 + threads * parameters.read_memory();
        let run = TILES_PER_TASK.min(sections.div_ceil(packing.counts.groups)) as u64;
        let outputs = OUTPUTS_PER_TASK.min(packing.counts.outputs) as u64;
        let merging = match packing.tiling.levels {
            0 => 0,
            levels => run * parameters.merge_memory(levels) + parameters.fold_memory(),
        };
        let in_flight = match workspace.keep {
            Keep::Transformed => 0,
            Keep::Plain => {
                // Modulo one of the two primes.
                let outputs = outputs.min(outputs_at_once(run as usize) as u64);
                let polynomials = outputs * CHANNELS_AT_ONCE.min(packing.counts.channels) as u64;
                polynomials * (parameters.weights_memory() / 2 + size_of::<Vec<u64>>() as u64) + spread
            }
        };
        let task = run * outputs * parameters.sum_memory() + merging + in_flight.max(parameters.reply_memory());
        // A reply waits with its share and places until those before it are there, then in the message that it is for.
        let largest = self.largest_reply() as u64;
        let replies = match sections {
            1 => (TASKS_PER_THREAD * packing.replies_per_task()) as u64 * threads,
            _ => u64::MAX,
        };
        let replies = replies.min((sections * packing.counts.replies) as u64);
        let outbox = PER_MESSAGE.min(self.output_ciphertexts()) as u64 * largest;
        let evaluating = inputs
            + threads * task
            + replies * (largest + 16 * self.most_results() as u64 + 128)
            + outbox
            + 8 * self.output_len() as u64;
        ServerMemory { weights, making, evaluating }
    }

    /// [`Plan::server_memory`] of a layer whose channels lie in so many blocks of a ciphertext.
    fn memory_of_blocks(&self, count: usize, threads: usize) -> ServerMemory {
        let (parameters, counts) = (self.parameters(), self.packing().counts);
        let weights = self.kept_bytes(Keep::Plain);
        let (most, channels, ciphertext) = (threads as u64, counts.channels as u64, parameters.ciphertext_memory());
        let reading = most * (ciphertext + parameters.read_memory());
        let outputs = counts.outputs as u64;
        let sums = outputs.min(sums_per_task(counts.outputs, threads) as u64);
        let tasks = most.min(outputs.div_ceil(sums));
        // As integers, as residues, and transformed.
        let factors = 3 * 8 * sums.next_multiple_of(8) * channels.min(Panel::MOST as u64) * count as u64;
        let task = sums * parameters.sum_memory() + factors.max(parameters.reply_memory());
        let largest = self.largest_reply() as u64;
        let waiting = outputs.min(tasks * sums) * (largest + 16 * self.most_results() as u64 + 128);
        let outbox = PER_MESSAGE.min(self.output_ciphertexts()) as u64 * largest;
        let waiting_inputs = most_waiting(self, counts.channels) * parameters.ciphertext_bytes();
        let evaluating = waiting_inputs as u64
            + channels * ciphertext
            + reading.max(tasks * task + waiting + outbox)
            + 8 * self.output_len() as u64;
        ServerMemory { weights, making: weights, evaluating }
    }

    /// What the layer takes on the client, with this many threads of rayon.
    pub fn client_memory(&self, threads: usize) -> ClientMemory {
        let (parameters, threads) = (self.parameters(), threads as u64);
        let at_once = |ciphertexts| messages(ciphertexts).next().map_or(0, |message| message.len()) as u64;
        let (sent, received) = (at_once(self.input_ciphertexts()), at_once(self.output_ciphertexts()));
        let opened = self.largest_reply() + 16 * self.most_results();
        ClientMemory {
            encrypting: sent * parameters.ciphertext_bytes() as u64 + threads * parameters.encrypt_memory(),
            decrypting: received * opened as u64 + threads * parameters.open_memory() + 8 * self.output_len() as u64,
        }
    }

    /// Results in the fullest reply: the first has whole tiles, groups and outputs.
    fn most_results(&self) -> usize {
        self.packing().used(0)
    }

    fn largest_reply(&self) -> usize {
        self.reply_bytes(0)
    }
}
