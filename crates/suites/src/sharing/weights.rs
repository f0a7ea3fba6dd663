//! What a server keeps of a program for suites `gmw` and `fss`, and how much memory it may take.

use std::sync::Arc;

use privet_channel::Channel;
use privet_linear::{Keep, Workspace};
use privet_ot::Extension;
use privet_prg::Seed;
use privet_program::Program;
use privet_ring::Modulus;

use super::{Maker, Model, Options, Plan, Rounds, Truncation, WeightMask};
use crate::forecast::Memory;
use crate::session::{Budget, HiddenWeights, Served};
use crate::{Error, MaterialId};

/// A program's weights, how each linear layer is worked on, and the plan by which weights are laid out before anybody asks.
pub(super) struct Loaded {
    pub model: Model,
    workspaces: Vec<Workspace>,
    usual: Plan,
}

impl Loaded {
    fn new(served: &Served, usual: Plan, workspaces: Vec<Workspace>) -> Self {
        Self { model: Model::new(Arc::clone(served.weights()), workspaces.clone()), workspaces, usual }
    }

    /// What a server keeps of a program, with what suits its layers unless it was told otherwise.
    pub(super) fn of(served: &Served) -> Result<Arc<Self>, Error> {
        Self::keep(served, Plan::standard_workspaces)
    }

    /// As [`Loaded::of`], with these workspaces if nothing is kept yet.
    fn keep(served: &Served, workspaces: impl FnOnce(&Plan) -> Vec<Workspace>) -> Result<Arc<Self>, Error> {
        served.keep(|| {
            let usual = usual(served.program())?;
            let workspaces = workspaces(&usual);
            Ok(Self::new(served, usual, workspaces))
        })
    }

    /// What the jobs of `plan` take, with this OT extension.
    pub(super) fn memory(&self, plan: &Plan, extension: Extension) -> Memory {
        plan.server_memory_by(extension, &self.workspaces, rayon::current_num_threads())
    }
}

/// Reads both halves of a program and plans its linear layers.
///
/// # Errors
/// As [`Served::new`]; [`Error::Linear`] if a layer does not fit secure parameters.
pub fn load(public: Vec<u8>, weights: &[u8]) -> Result<Served, Error> {
    let served = Served::new(public, weights)?;
    Loaded::of(&served)?;
    Ok(served)
}

/// As [`load`], with the weights of all linear layers in this form.
///
/// # Errors
/// As [`load`].
pub fn load_keeping(public: Vec<u8>, weights: &[u8], keep: Keep) -> Result<Served, Error> {
    let served = Served::new(public, weights)?;
    Loaded::keep(&served, |usual| usual.workspaces_keeping(keep))?;
    Ok(served)
}

/// As [`load`], within what is left of `budget`, of which the weights take their part for good.
///
/// # Errors
/// As [`load`]; [`Error::Misuse`] with the least that would do if too little is left.
pub fn load_within(public: Vec<u8>, weights: &[u8], budget: &Budget) -> Result<Served, Error> {
    let (program, threads) = (Program::parse(&public)?, rayon::current_num_threads());
    // A prime field has no workspaces to choose; its jobs are let in by what they take.
    let choices = Options::made().filter(|options| !options.is_prime());
    let options = choices.chain(Options::dealt()).chain(Options::one_shot());
    // Guard bits may leave no parameters for a wide ring: whoever asks for such a mode is told.
    let (plans, refused): (Vec<_>, Vec<_>) =
        options.map(|options| Plan::new(program.clone(), options)).partition(Result::is_ok);
    let plans: Vec<_> = plans.into_iter().flatten().collect();
    if let (true, Some(Err(error))) = (plans.is_empty(), refused.into_iter().next()) {
        return Err(error);
    }
    let job = |plan: &&Plan| plan.server_memory(&plan.standard_workspaces(), threads).job();
    let largest = plans.iter().max_by_key(job).ok_or_else(|| Error::Misuse("there are no options".into()))?;
    let (workspaces, usual) = (largest.workspaces_within(budget.left(), threads)?, usual(&program)?);
    let memory = largest.server_memory(&workspaces, threads);
    if !budget.take_in(memory.resting, memory.job()) {
        let text = "this program would leave too little memory for jobs of those served already: raise the limit";
        return Err(Error::Misuse(text.into()));
    }
    let served = Served::new(public, weights)?;
    served.keep(|| Ok(Loaded::new(&served, usual, workspaces)))?;
    Ok(served)
}

/// Transforms the weights of a program now rather than for the first preparation without a dealer.
///
/// # Errors
/// [`Error::Linear`] if a layer does not fit its plan.
pub fn warm(served: &Served) -> Result<(), Error> {
    let loaded = Loaded::of(served)?;
    loaded.model.transformed(&loaded.usual).map(drop)
}

/// Tells a mask of a program's weights from others.
pub(crate) fn mask_name(program: &str, secret: &Seed) -> MaterialId {
    mask(secret).name(program)
}

/// Sends a program's weights behind a mask.
pub(crate) fn send_hidden(served: &Served, secret: &Seed, channel: &mut Channel) -> Result<(), Error> {
    let loaded = Loaded::of(served)?;
    let ring = Modulus::new(served.program().ring_bits());
    for layer in mask(secret).hide(&loaded.usual, served.weights()) {
        HiddenWeights::send(channel, ring, &layer)?;
    }
    Ok(channel.flush()?)
}

pub(super) fn mask(secret: &Seed) -> WeightMask {
    WeightMask::from_seed(Seed::from_bytes(*secret.as_bytes()))
}

/// The plan by which weights are laid out before anybody asks: the default's; for a ring too wide for its guard bits, that of
/// one-bit truncation; for products of two private tensors, that with a dealer.
fn usual(program: &Program) -> Result<Plan, Error> {
    let one_bit = Options { truncation: Truncation::OneBit, ..Rounds::Linear.into() };
    let exact = Plan::new(program.clone(), Rounds::Linear);
    let dealt = Options { maker: Maker::Dealer, ..Rounds::Linear.into() };
    exact.or_else(|_| Plan::new(program.clone(), one_bit)).or_else(|_| Plan::new(program.clone(), dealt))
}
