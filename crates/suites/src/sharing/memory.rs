//! How much memory the two jobs of a plan take, and how a server stays within a limit.
//!
//! Figures are bytes beyond what the process had before, from the sizes of what is held at once; allocators and buffers
//! of the link are covered by [`SLACK`]. They depend on public shapes and widths, the number of threads, and for the
//! server on what it chooses per layer ([`Workspace`]).

use std::collections::HashSet;

use super::forecast::stored_bytes;
use super::{Encrypted, Plan, Step, elements, ops, prepare, triples};
use crate::forecast::{Memory, too_little};
use crate::ops::{Node, last_uses};
use crate::{Error, bodies};
use privet_linear::{Keep, Workspace};
use privet_ot::{Demand, Extension, Role};

/// What allocators, stacks of threads and buffers of the link add, as a share of everything else and at least.
const SLACK: (u64, u64) = (8, 6 << 20);

/// The most that transformed weights of all layers take together where no limit was given.
const MOST_TRANSFORMED: u64 = 1 << 30;

/// Bytes for each element of a comparison while it runs: bit planes, correlations and messages in both directions.
pub(super) const PER_COMPARISON: u64 = 96;

/// Bytes for each index of a window: the index, the value, and its part of the vectors around them.
pub(super) const PER_INDEX: u64 = 24;

impl Plan {
    /// What the client takes.
    pub fn client_memory(&self, threads: usize) -> Memory {
        let linear = self.linear().iter().map(|layer| layer.plan.client_memory(threads));
        let most = match self.is_dealt() {
            true => self.hidden_layer(),
            false => linear.map(|memory| memory.encrypting.max(memory.decrypting)).max().unwrap_or(0),
        };
        // What is encrypted, with guard bits.
        let inputs = self.linear().iter().map(|layer| layer.plan.input_len());
        let raised = 8 * inputs.max().unwrap_or(0) as u64;
        let masks: u64 = self.masks().iter().map(|&len| 8 * len as u64).sum();
        let products = self.matrices().map(|matrices| matrices.client_memory(threads));
        let most = (most + raised).max(self.multiplying(products));
        let (offline, online) = self.jobs(Role::Client, self.extension(), masks, most);
        Memory { resting: 0, loading: 0, offline, online }
    }

    /// What the largest layer of hidden weights takes: as they come from the file, and as integers.
    fn hidden_layer(&self) -> u64 {
        let bits = 64 + u64::from(self.program().ring_bits());
        self.linear().iter().map(|layer| layer.plan.weights_len() as u64 * bits / 8).max().unwrap_or(0)
    }

    /// What the server takes if it works on its layers like this, and the client chooses the OT extension of the plan's link.
    pub fn server_memory(&self, workspaces: &[Workspace], threads: usize) -> Memory {
        self.server_memory_by(self.extension(), workspaces, threads)
    }

    /// As [`Plan::server_memory`], with this OT extension.
    pub fn server_memory_by(&self, extension: Extension, workspaces: &[Workspace], threads: usize) -> Memory {
        // Weights are transformed for preparations without a dealer alone.
        let workspaces = if self.is_dealt() { &[] } else { workspaces };
        let layers = || self.linear().iter().zip(workspaces);
        let figures = || layers().map(|(layer, &workspace)| layer.plan.server_memory(workspace, threads));
        let weights: u64 = self.linear().iter().map(|layer| 8 * layer.plan.weights_len() as u64).sum();
        let resting = slack(weights + figures().map(|memory| memory.weights).sum::<u64>());
        let making = figures().map(|memory| memory.making - memory.weights).max().unwrap_or(0);
        // The file and the integers that are read from it, then the integers and their transforms.
        let loading = slack(2 * weights).max(resting + making);
        let most = match self.is_dealt() {
            // A client that does not have the hidden weights yet gets them layer by layer.
            true => self.hidden_layer(),
            false => {
                let evaluating = figures().map(|memory| memory.evaluating).max().unwrap_or(0);
                let products = self.matrices().map(|matrices| matrices.server_memory(threads));
                // The client's key for linear layers stays while matrices are multiplied.
                evaluating.max(self.multiplying(products)) + Encrypted::shared_memory(&self.encrypted())
            }
        };
        let (offline, online) = self.jobs(Role::Server, extension, 0, most);
        Memory { resting, loading, offline, online }
    }

    /// What the largest product of matrices takes, of what they take for themselves: with both parts of the masks as well.
    fn multiplying(&self, products: impl Iterator<Item = u64>) -> u64 {
        let operands = self.masked.iter().map(|masked| 8 * masked.len as u64).max().unwrap_or(0);
        products.map(|bytes| bytes + 3 * operands).max().unwrap_or(0)
    }

    /// What the server chooses without a limit: what does well for each layer, as long as transformed weights take
    /// [`MOST_TRANSFORMED`] together. The largest give way first.
    pub fn standard_workspaces(&self) -> Vec<Workspace> {
        let layers = self.linear();
        let mut workspaces: Vec<_> = layers.iter().map(|layer| layer.plan.standard_workspace()).collect();
        let bytes = |index: usize| layers[index].plan.transformed_bytes();
        let mut transformed: Vec<usize> =
            (0..layers.len()).filter(|&index| workspaces[index].keep == Keep::Transformed).collect();
        transformed.sort_by_key(|&index| bytes(index));
        let mut room = MOST_TRANSFORMED;
        for index in transformed {
            match room.checked_sub(bytes(index)) {
                Some(rest) => room = rest,
                None => workspaces[index].keep = Keep::Plain,
            }
        }
        workspaces
    }

    /// The same with the weights of all layers in this form.
    pub fn workspaces_keeping(&self, keep: Keep) -> Vec<Workspace> {
        self.standard_workspaces().into_iter().map(|workspace| Workspace { keep, ..workspace }).collect()
    }

    /// How the server stays within `limit` bytes, of which the largest layers give way first: what is transformed becomes
    /// plain, then as few sections are worked on as it takes.
    ///
    /// # Errors
    /// [`Error::Misuse`] with the least that would do.
    pub fn workspaces_within(&self, limit: u64, threads: usize) -> Result<Vec<Workspace>, Error> {
        let mut workspaces = self.standard_workspaces();
        let mut largest: Vec<usize> = (0..workspaces.len()).collect();
        largest.sort_by_key(|&index| std::cmp::Reverse(self.linear()[index].plan.transformed_bytes()));
        let fits = |workspaces: &[Workspace]| self.server_memory(workspaces, threads).peak() <= limit;
        for index in largest {
            if fits(&workspaces) {
                return Ok(workspaces);
            }
            workspaces[index].keep = Keep::Plain;
        }
        for sections in [8, 4, 2, 1] {
            if fits(&workspaces) {
                return Ok(workspaces);
            }
            workspaces.iter_mut().for_each(|workspace| workspace.sections = workspace.sections.min(sections));
        }
        match fits(&workspaces) {
            true => Ok(workspaces),
            false => Err(too_little(self.program(), limit, self.server_memory(&workspaces, threads).peak())),
        }
    }

    /// The most of a preparation and of an inference. `most`: what the linear layer that needs most takes for itself.
    fn jobs(&self, role: Role, extension: Extension, masks: u64, most: u64) -> (u64, u64) {
        let chunks =
            self.stored_chunks().into_iter().map(|chunk| stored_bytes(&chunk.demand, role)).collect::<Vec<_>>();
        let (first, later) = (chunks[0], chunks[1..].iter().copied().max().unwrap_or(0));
        let stock = first.max(later);
        let growing = self.stored_chunks().iter().map(|chunk| growing(&chunk.demand)).max().unwrap_or(0);
        let products = self.triples.iter().map(|triple| 8 * triples::output_len(self, triple) as u64).sum::<u64>();
        let layers = self.prepared_linear().iter().map(|layer| 8 * layer.plan.output_len() as u64);
        let shares = products + layers.sum::<u64>();
        let packed = first + (masks + shares) * u64::from(self.product_ring().bits()) / 64;
        let material = first + masks + shares;
        // Correlations are gathered and then assembled; the material is written from one buffer.
        let extending = if self.is_dealt() { stock } else { stock + 2 * extension.memory() + growing };
        let multiplying = self.multiplying_elements(role, extension);
        let (prepared, computed) = if self.options().is_one_shot() { (0, most) } else { (most, 0) };
        // A chunk is made in the memory of the one before, and written from there; the first one is made last, in that of all others.
        let writing = if later > 0 { 2 * later + 2 * extension.memory() + growing + masks } else { 0 };
        let making = match self.field() {
            None if prepare::beside_any(self, extension) => {
                stock + extending.max(multiplying) + masks + shares + prepared.max(packed)
            }
            None => (stock + extending.max(multiplying)).max(stock + masks + shares + prepared.max(packed)),
            // What threads give back that work in slots is not used again for the rest, nor the other way round.
            Some(_) => stock + extending + masks + shares + prepared + packed,
        };
        let offline = making.max(writing) + bodies::BUFFERS;
        // A later chunk is read when the one before is used up.
        let supplied = material.max(self.filled(role, extension)).max(masks + shares + 2 * later);
        let online = (material + packed).max(supplied + self.computing() + computed);
        (slack(offline), slack(online))
    }

    /// The most while single elements are multiplied: all operands and products, and the correlations of a run as they are made, or as
    /// they are used, with messages both ways.
    fn multiplying_elements(&self, role: Role, extension: Extension) -> u64 {
        let run = elements::demands(self).iter().map(|demand| stored_bytes(demand, role)).max().unwrap_or(0);
        let extending = if run > 0 { 2 * extension.memory() } else { 0 };
        8 * elements::held(self) + 3 * run + extending + elements::run_bytes(self)
    }

    /// The fullest buffer of an inference without material, and what fills it.
    fn filled(&self, role: Role, extension: Extension) -> u64 {
        if !self.options().is_one_shot() {
            return 0;
        }
        let chunks = self.chunks(self.buffer());
        let fullest = chunks.iter().map(|chunk| stored_bytes(&chunk.demand, role)).max().unwrap_or(0);
        let growing = chunks.iter().map(|chunk| growing(&chunk.demand)).max().unwrap_or(0);
        2 * fullest + 2 * extension.memory() + growing
    }

    /// The most that values, what was opened, and the step at hand take during an inference.
    fn computing(&self) -> u64 {
        let program = self.program();
        let size = |value: usize| 8 * program.value(value).len() as u64;
        let last_use = self.last_uses();
        let opened: HashSet<usize> = self.steps().iter().filter_map(opens).collect();
        let masked: HashSet<usize> = self.masked.iter().map(|masked| masked.value).collect();
        let inputs = program.inputs().iter().map(|input| input.value);
        let mut live: u64 = inputs.chain(program.state().iter().map(|state| state.input)).map(size).sum();
        let mut most = live;
        for (index, step) in self.steps().iter().enumerate() {
            let (added, working) = match *step {
                Step::Extend { value, .. } | Step::RoundOff { value } => (0, size(value) / 8 * PER_COMPARISON),
                Step::Open { value, .. } => {
                    let entering = if self.field().is_some() { size(value) / 8 * PER_COMPARISON } else { 0 };
                    (size(value), entering.max(2 * size(value)))
                }
                Step::Operation(operation) => {
                    let node = Node::at(program, operation);
                    let protocol = ops::of(node).expect("a plan has operations with protocols alone");
                    let opens = self.triple_of(operation).map_or(&[][..], |triple| &triple.opens);
                    let opened: u64 = opens.iter().map(|&mask| 8 * self.masked[mask].len as u64).sum();
                    (size(node.operation.output) + opened, protocol.working_memory(self.field()))
                }
            };
            most = most.max(live + added + working);
            live += added;
            let openings =
                |value: &usize| [&opened, &masked].into_iter().filter(|open| open.contains(value)).count() as u64;
            let freed = |value: &usize| size(*value) * (1 + openings(value));
            live -= last_use[index].iter().map(freed).sum::<u64>();
        }
        most
    }

    /// The mask behind which a value is opened.
    pub(super) fn mask_of(&self, id: usize) -> Option<usize> {
        self.steps().iter().find_map(|step| match *step {
            Step::Open { value, mask } if value == id => Some(mask),
            _ => None,
        })
    }

    /// For each step, the values that no later step and no output reads.
    pub(super) fn last_uses(&self) -> Vec<Vec<usize>> {
        let touched = |step: &Step| match *step {
            Step::Extend { value, .. } | Step::RoundOff { value } | Step::Open { value, .. } => vec![value],
            Step::Operation(operation) => {
                let (triple, operation) = (self.triple_of(operation), self.operation(operation));
                let origins =
                    triple.into_iter().flat_map(|triple| &triple.operands).map(|operand| operand.origin.value);
                operation.inputs.iter().copied().chain(origins).chain([operation.output]).collect()
            }
        };
        last_uses(self.program(), &self.steps().iter().map(touched).collect::<Vec<_>>())
    }
}

/// The value that a step opens.
fn opens(step: &Step) -> Option<usize> {
    match *step {
        Step::Open { value, .. } => Some(value),
        _ => None,
    }
}

/// What making the one-hot vectors of a demand takes beside them.
fn growing(demand: &Demand) -> u64 {
    demand.one_hots.making_bytes() as u64
}

fn slack(bytes: u64) -> u64 {
    bytes + (bytes / SLACK.0).max(SLACK.1)
}
