//! The server's side of a session.

#[cfg(test)]
mod equivocation;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{Arc, Mutex, PoisonError};

use privet_channel::{AbortReason, Channel};
use privet_fss::Role;
use privet_linear::{Keep, Workspace};
use privet_ot::Extension;
use privet_prg::Prg;
use privet_program::{Program, Weights};
use privet_shark::Turns;

use super::budget::{Budget, Promise};
use super::dealer::{self, Connect};
use super::gate::{Gate, Intent};
use super::hidden;
use super::messages::{self, Accepted, Granted, Hidden, Request};
use crate::authenticated::{self, DealtHalf, Head, Material, Opened};
use crate::policy::{Caller, Guard, Policy, Refused};
use crate::sharing::{self, Filling, Memory, Model, Rounds, ServerMaterial, SessionPublicKey, Stocked, WeightMask};
use crate::store::Setups;
use crate::{Draft, Error, MaterialId, Metadata, Observer, Options, PeerMisbehaved, Plan, Report, Store, StoreError};

/// A program that the server offers: its public half as clients get it, its weights, and a plan for each choice of options
/// that a client has asked for.
pub struct Served {
    public: Vec<u8>,
    program: Program,
    model: Model,
    workspaces: Vec<Workspace>,
    plans: Mutex<BTreeMap<String, Arc<Plan>>>,
}

impl Served {
    /// Reads both halves of a program and plans it.
    ///
    /// # Errors
    /// [`Error::Program`] if the halves are broken or do not belong together; [`Error::Linear`] if a layer does not
    /// fit secure parameters.
    pub fn new(public: Vec<u8>, weights: &[u8]) -> Result<Self, Error> {
        Self::planned(public, weights, sharing::Plan::standard_workspaces)
    }

    /// As [`Served::new`], with the weights of all linear layers in this form.
    ///
    /// # Errors
    /// As [`Served::new`].
    pub fn keeping(public: Vec<u8>, weights: &[u8], keep: Keep) -> Result<Self, Error> {
        Self::planned(public, weights, |plan| plan.workspaces_keeping(keep))
    }

    /// As [`Served::new`], within what is left of `budget`, of which the weights take their part for good.
    ///
    /// # Errors
    /// As [`Served::new`]; [`Error::Misuse`] with the least that would do if too little is left.
    pub fn within(public: Vec<u8>, weights: &[u8], budget: &Budget) -> Result<Self, Error> {
        let (program, threads) = (Program::parse(&public)?, rayon::current_num_threads());
        // A prime field has no workspaces to choose; its jobs are let in by what they take.
        let made = sharing::Options::made().filter(|options| !options.is_prime());
        let options = made.chain(sharing::Options::dealt()).chain(sharing::Options::one_shot());
        // Guard bits may leave no parameters for a wide ring: whoever asks for such a mode is told.
        let (plans, refused): (Vec<_>, Vec<_>) =
            options.map(|options| sharing::Plan::new(program.clone(), options)).partition(Result::is_ok);
        let plans: Vec<_> = plans.into_iter().flatten().collect();
        if let (true, Some(Err(error))) = (plans.is_empty(), refused.into_iter().next()) {
            return Err(error);
        }
        let job = |plan: &&sharing::Plan| plan.server_memory(&plan.standard_workspaces(), threads).job();
        let hungriest = plans.iter().max_by_key(job).ok_or_else(|| Error::Misuse("there are no options".into()))?;
        let workspaces = hungriest.workspaces_within(budget.left(), threads)?;
        let memory = hungriest.server_memory(&workspaces, threads);
        if !budget.take_in(memory.resting, memory.job()) {
            let text = "this program would leave too little memory for jobs of those served already: raise the limit";
            return Err(Error::Misuse(text.into()));
        }
        Self::planned(public, weights, |_| workspaces)
    }

    fn planned(
        public: Vec<u8>,
        weights: &[u8],
        plan: impl FnOnce(&sharing::Plan) -> Vec<Workspace>,
    ) -> Result<Self, Error> {
        let program = Program::parse(&public)?;
        let weights = Weights::parse(weights, &program)?;
        Self::with_weights(public, program, weights, plan)
    }

    fn with_weights(
        public: Vec<u8>,
        program: Program,
        weights: Weights,
        plan: impl FnOnce(&sharing::Plan) -> Vec<Workspace>,
    ) -> Result<Self, Error> {
        let linear = usual(&program)?;
        let workspaces = plan(&linear);
        let model = Model::new(weights, workspaces.clone());
        Ok(Self { public, program, model, workspaces, plans: Mutex::default() })
    }

    /// Transforms the weights now rather than for the first preparation without a dealer.
    ///
    /// # Errors
    /// [`Error::Linear`] if a layer does not fit its plan.
    pub fn warm(&self) -> Result<(), Error> {
        let plan = usual(&self.program)?;
        self.model.transformed(&plan).map(drop)
    }

    /// What the jobs of `plan` take, with this OT extension.
    fn memory(&self, plan: &Plan, extension: Extension) -> Memory {
        match plan {
            Plan::Sharing(plan) => plan.server_memory_by(extension, &self.workspaces, rayon::current_num_threads()),
            Plan::Authenticated(plan) => plan.memory(),
        }
    }

    /// The program.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// The plan for a suite with its options, if there is such a suite; made when it is first asked for.
    fn plan(&self, suite: &str) -> Result<Option<Arc<Plan>>, Error> {
        let Some(options) = Options::from_name(suite) else { return Ok(None) };
        let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        let plan = match plans.entry(suite.to_owned()) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => entry.insert(Arc::new(Plan::new(self.program.clone(), options)?)),
        };
        Ok(Some(Arc::clone(plan)))
    }
}

/// The plan by which weights are laid out before anybody asks: the default's or, for a ring too wide for its guard bits, that of
/// one-bit truncation.
fn usual(program: &Program) -> Result<sharing::Plan, Error> {
    let one_bit = sharing::Options { truncation: sharing::Truncation::OneBit, ..Rounds::Linear.into() };
    let exact = sharing::Plan::new(program.clone(), Rounds::Linear);
    exact.or_else(|_| sharing::Plan::new(program.clone(), one_bit))
}

/// The programs that a server offers, by hash.
#[derive(Clone, Default)]
pub struct Catalog {
    programs: BTreeMap<String, Arc<Served>>,
}

impl Catalog {
    /// Offers a program.
    pub fn add(&mut self, served: Served) {
        self.programs.insert(served.program().hash().to_string(), Arc::new(served));
    }

    /// Offers a program no more; whether it did.
    pub fn remove(&mut self, hash: &str) -> bool {
        self.programs.remove(hash).is_some()
    }

    fn by_hash(&self, hash: &str) -> Option<Arc<Served>> {
        self.programs.get(hash).cloned()
    }

    /// The program of this hash, or the only one of this name.
    fn by_name(&self, name: Option<&str>) -> Option<Arc<Served>> {
        if let Some(served) = name.and_then(|hash| self.by_hash(hash)) {
            return Some(served);
        }
        let mut matching =
            self.programs.values().filter(|served| name.is_none_or(|name| served.program().model() == name));
        matching.next().filter(|_| matching.next().is_none()).cloned()
    }

    fn names(&self) -> String {
        let names: Vec<&str> = self.programs.values().map(|served| served.program().model()).collect();
        names.join(", ")
    }
}

/// What a server did for a client.
pub enum Event {
    /// It sent a public half.
    Described {
        /// The model's name.
        model: String,
    },
    /// It made a piece of material.
    Prepared {
        /// The model's name.
        model: String,
        /// The piece.
        material: MaterialId,
        /// What it cost.
        report: Report,
    },
    /// It took part in an inference.
    Inferred {
        /// The model's name.
        model: String,
        /// The piece that is spent; `None` if nothing was prepared.
        material: Option<MaterialId>,
        /// What it cost.
        report: Report,
    },
}

/// A server's catalog and store; one serves any number of sessions, also at the same time.
#[derive(Clone)]
pub struct Server {
    catalog: Catalog,
    store: Store,
    dealer: Option<Connect>,
    budget: Option<Budget>,
    gate: Option<Gate>,
    guard: Guard,
}

impl Server {
    /// Serves `catalog` with material kept in `store`, by the default [policy](crate::policy).
    pub fn new(catalog: Catalog, store: Store) -> Self {
        Self { catalog, store, dealer: None, budget: None, gate: None, guard: Guard::default() }
    }

    /// The same server with a way to the dealer, for clients that want their material dealt.
    #[must_use]
    pub fn with_dealer(self, connect: Connect) -> Self {
        Self { dealer: Some(connect), ..self }
    }

    /// The same server, whose jobs wait for one another where they would not fit `budget` together.
    #[must_use]
    pub fn within(self, budget: Budget) -> Self {
        Self { budget: Some(budget), ..self }
    }

    /// The same server, which holds clients to another policy. Answers are counted in the store, for all processes that share it.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn under(self, policy: Policy) -> Result<Self, StoreError> {
        let guard = Guard::new(policy, self.store.below("answers"))?;
        Ok(Self { guard, ..self })
    }

    /// The same server, which refuses what `gate` does not admit.
    #[must_use]
    pub fn behind(self, gate: Gate) -> Self {
        Self { gate: Some(gate), ..self }
    }

    /// Serves one client until it says goodbye; `on_event` hears of each finished request.
    ///
    /// # Errors
    /// Whatever ended the session early; the client was told why, if the link still carried it.
    pub fn serve(
        &self,
        mut channel: Channel,
        observer: &mut dyn Observer,
        on_event: &mut dyn FnMut(Event),
    ) -> Result<(), Error> {
        let mut session = Session { server: self, channel: &mut channel, key: SessionPublicKey::default() };
        let result = session.run(observer, on_event);
        result.map_err(|refusal| {
            if !refusal.error.is_abort() {
                channel.abort_with(refusal.reason, &refusal.text);
            }
            refusal.error
        })
    }
}

/// An error together with what the client is told of it: never more than the client may know.
struct Refusal {
    reason: AbortReason,
    text: String,
    error: Error,
}

impl<E: Into<Error>> From<E> for Refusal {
    fn from(error: E) -> Self {
        let error = error.into();
        let text = match &error {
            Error::Refused(Refused::Outside(_) | Refused::Exhausted { .. }) => error.to_string(),
            _ => String::new(),
        };
        Self { reason: error.abort_reason(), text, error }
    }
}

impl Refusal {
    fn new(reason: AbortReason, text: impl Into<String>) -> Self {
        let text = text.into();
        Self { reason, error: PeerMisbehaved::Request(text.clone()).into(), text }
    }
}

struct Session<'a> {
    server: &'a Server,
    channel: &'a mut Channel,
    key: SessionPublicKey,
}

impl Session<'_> {
    fn run(&mut self, observer: &mut dyn Observer, on_event: &mut dyn FnMut(Event)) -> Result<(), Refusal> {
        messages::greet(self.channel)?;
        loop {
            match messages::receive(self.channel)? {
                Request::Describe { model } => on_event(self.describe(model.as_deref())?),
                Request::Prepare { program, suite, extension, nonce } => {
                    on_event(self.prepare(&program, &suite, &extension, &nonce, observer)?);
                }
                Request::HiddenWeights { program, known } => self.hidden_weights(&program, known)?,
                Request::Infer { program, material } => on_event(self.infer(&program, material, observer)?),
                Request::InferUnprepared { program, suite, extension, buffer } => {
                    let filling = Filling { extension: self.extension(&extension)?, buffer };
                    on_event(self.infer_unprepared(&program, &suite, filling, observer)?);
                }
                Request::Bye => return Ok(()),
            }
        }
    }

    fn caller(&self) -> Caller {
        Caller::of(self.channel)
    }

    /// Refuses a suite with options that the policy does not accept. Nothing is planned for a name that there is not.
    fn accept(&self, suite: &str) -> Result<(), Refusal> {
        let refusal = || Refusal::new(AbortReason::BadRequest, format!("this server does not run suite {suite:?}"));
        let options = Options::from_name(suite).ok_or_else(refusal)?;
        Ok(self.server.guard.check(&self.caller(), options.into())?)
    }

    /// Counts the answers of an inference, the last thing before it begins.
    fn count(&self, served: &Served) -> Result<(), Refusal> {
        Ok(self.server.guard.count(&self.caller(), served.program().batch())?)
    }

    fn admit(&self, intent: Intent<'_>) -> Result<(), Refusal> {
        self.server.guard.admit(&self.caller())?;
        let Some(gate) = &self.server.gate else { return Ok(()) };
        gate(&self.peer(), intent).map_err(|why| Refusal::new(AbortReason::NotAllowed, why))
    }

    fn describe(&mut self, model: Option<&str>) -> Result<Event, Refusal> {
        self.admit(Intent::Describe { model })?;
        let served = self.server.catalog.by_name(model).ok_or_else(|| {
            let asked = model.map_or("no model was named".to_owned(), |name| format!("there is no model {name:?}"));
            let text = format!("{asked}; served here: {}", self.server.catalog.names());
            Refusal::new(AbortReason::UnknownProgram, text)
        })?;
        self.channel.send(&served.public)?;
        self.channel.flush()?;
        Ok(Event::Described { model: served.program().model().to_owned() })
    }

    fn prepare(
        &mut self,
        program: &str,
        suite: &str,
        extension: &str,
        client_nonce: &[u8; 16],
        observer: &mut dyn Observer,
    ) -> Result<Event, Refusal> {
        self.admit(Intent::Prepare { program, suite })?;
        let served = self.served(program)?;
        self.accept(suite)?;
        let plan = self.plan(&served, suite)?;
        let extension = self.extension(extension)?;
        let dealer = if plan.by_ref().options().is_dealt() { Some(self.dealer()?) } else { None };
        let mut draft = self.draft(&plan)?;
        let _memory = self.memory(served.memory(&plan, extension).offline)?;
        let mut nonce = [0; 16];
        Prg::from_os()?.fill(&mut nonce);
        messages::send(self.channel, &Accepted { nonce })?;

        let id = messages::material_id(client_nonce, &nonce);
        let kept = self.server.store.setups(program, &self.peer()).kept().map_err(Error::from)?;
        let mut dealer = dealer.map(|connect| connect()).transpose()?;
        if let Some(dealer) = &mut dealer {
            dealer::ask_as_server(dealer, plan.by_ref(), &id, self.peer(), &kept, &served.public)?;
        }
        let mut setup = None;
        let (head, report) = match (&*plan, dealer) {
            (Plan::Sharing(plan), None) => {
                let (material, report) =
                    sharing::prepare_server(self.channel, plan, extension, &served.model, observer)?;
                (material.head(plan), report)
            }
            (Plan::Sharing(plan), Some(mut dealer)) => {
                let mask = self.weight_mask(program)?;
                let (material, report) = sharing::prepare_server_dealt(&mut dealer, plan, &mask, &mut draft, observer)?;
                (material.head(plan), report)
            }
            (Plan::Authenticated(plan), Some(mut dealer)) => {
                let (half, recorder) = authenticated::begin(&mut dealer, &kept)?;
                let opened = self.open_setup(&served, &mut dealer, plan, &half)?;
                let links = [&mut dealer, &mut *self.channel];
                let report = authenticated::prepare(links, plan, (&half, recorder), &opened, &mut draft, observer)?;
                let head = half.head(&opened);
                setup = Some(half.setup);
                (head, report)
            }
            (Plan::Authenticated(_), None) => unreachable!("there is a dealer"),
        };
        let metadata = Metadata {
            id: id.clone(),
            program: program.to_owned(),
            suite: suite.to_owned(),
            role: "server".into(),
            peer: self.peer(),
            model: served.program().model().to_owned(),
            setup,
        };
        draft.finish(&metadata, &head).map_err(Error::from)?;
        self.channel.send(&[1])?;
        self.channel.flush()?;
        Ok(Event::Prepared { model: served.program().model().to_owned(), material: id, report })
    }

    /// The setup of a deal. For a new one the dealer sends codes, and the weights go to the client behind their masks.
    fn open_setup(
        &mut self,
        served: &Served,
        dealer: &mut Channel,
        plan: &authenticated::Plan,
        half: &DealtHalf,
    ) -> Result<Opened, Error> {
        let (setups, weights) = (self.setups(plan), served.model.weights());
        if !half.is_new {
            return authenticated::open_weights(setups.entry(&half.setup).open()?, plan, Some(weights));
        }
        let entry = setups.add(&half.setup, |out| {
            out.write_all(half.setup_seed()).map_err(privet_fss::Error::from)?;
            authenticated::take_codes(dealer, plan, out)
        })?;
        authenticated::hide_weights(self.channel, plan, weights, entry.open()?)
    }

    fn setups(&self, plan: &authenticated::Plan) -> Setups {
        self.server.store.setups(&plan.program().hash().to_string(), &self.peer())
    }

    /// An inference on authenticated values. If a check fails, the setup is given up.
    fn infer_authenticated(
        &mut self,
        served: &Served,
        plan: &authenticated::Plan,
        id: &MaterialId,
        observer: &mut dyn Observer,
    ) -> Result<Report, Error> {
        let mut stored = self.server.store.claim(id)?;
        let head = Head::read(&mut stored, plan, Role::Server)?;
        let turns = self.setups(plan).entry(&head.setup);
        let opened = authenticated::open_weights(turns.open()?, plan, Some(served.model.weights()))?;
        let material = Material::new(stored, plan, &head, &opened, id.clone())?;
        messages::send(self.channel, &Granted {})?;
        let weights = (&opened.weights[..], &turns as &dyn Turns);
        let result = authenticated::infer_server(self.channel, plan, weights, material, observer);
        if result.as_ref().is_err_and(Error::spoils_setup) {
            turns.spoil()?;
        }
        result
    }

    /// Tells the client which mask hides the weights and, if it does not know that one, sends them hidden.
    fn hidden_weights(&mut self, program: &str, known: Option<String>) -> Result<(), Refusal> {
        self.admit(Intent::HiddenWeights { program })?;
        self.server.guard.check_dealer(&self.caller())?;
        self.dealer()?;
        let served = self.served(program)?;
        let mask = self.weight_mask(program)?;
        let name = mask.name(program);
        messages::send(self.channel, &Hidden { mask: name.clone() })?;
        if known.as_deref() != Some(name.as_str()) {
            let plan = usual(&served.program)?;
            hidden::send(self.channel, &plan, mask.hide(&plan, served.model.weights()))?;
        }
        Ok(())
    }

    /// Room in the store for a piece of `plan`.
    fn draft(&self, plan: &Plan) -> Result<Draft, Refusal> {
        self.server.store.draft(plan.by_ref().piece_bytes().1).map_err(|error| match error {
            StoreError::Full { needed, limit, .. } if needed > limit => {
                let text =
                    format!("a piece takes {needed} bytes, and this server's material store holds {limit} at most");
                Refusal::new(AbortReason::BadRequest, text)
            }
            StoreError::Full { needed, .. } => {
                let text =
                    format!("this server's material store is full: a piece takes {needed} bytes; try again later");
                Refusal::new(AbortReason::Busy, text)
            }
            other => Error::from(other).into(),
        })
    }

    /// Memory for a job that takes `bytes`, once it is there.
    fn memory(&self, bytes: u64) -> Result<Option<Promise>, Refusal> {
        let Some(budget) = &self.server.budget else { return Ok(None) };
        let busy = || Refusal::new(AbortReason::Busy, "this server has no memory left for the job: try again later");
        budget.promise(bytes).map(Some).ok_or_else(busy)
    }

    fn dealer(&self) -> Result<Connect, Refusal> {
        let refusal = || Refusal::new(AbortReason::BadRequest, "this server has no dealer: ask for another suite");
        self.server.dealer.clone().ok_or_else(refusal)
    }

    fn weight_mask(&self, program: &str) -> Result<WeightMask, Error> {
        Ok(WeightMask::from_seed(self.server.store.secret(&format!("weight-mask-{program}"))?))
    }

    fn infer(&mut self, program: &str, id: MaterialId, observer: &mut dyn Observer) -> Result<Event, Refusal> {
        let metadata = self.server.store.metadata(&id);
        let suite = metadata.as_ref().ok().map(|metadata| metadata.suite.as_str());
        self.admit(Intent::Infer { program, suite, material: Some(&id) })?;
        let (served, metadata) = (self.served(program)?, metadata?);
        if metadata.program != program || metadata.peer != self.peer() || metadata.role != "server" {
            let text = format!("material {id} was made for another program or client");
            return Err(Refusal::new(AbortReason::StaleSession, text));
        }
        self.accept(&metadata.suite)?;
        if !self.server.store.has_setup(&metadata) {
            drop(self.server.store.claim(&id)?);
            let text = format!("the setup that material {id} was made with was given up: prepare again");
            return Err(Refusal::new(AbortReason::MaterialUnavailable, text));
        }
        let plan = served
            .plan(&metadata.suite)?
            .ok_or_else(|| Refusal::new(AbortReason::StaleSession, format!("material {id} is of another suite")))?;
        let _memory = self.memory(served.memory(&plan, plan.by_ref().extension()).online)?;
        self.count(&served)?;
        let report = match &*plan {
            Plan::Sharing(plan) => {
                let material = ServerMaterial::read(self.server.store.claim(&id)?, plan)?;
                messages::send(self.channel, &Granted {})?;
                match plan.options().is_one_shot() {
                    false => sharing::infer_server(self.channel, plan, &served.model, material, observer)?,
                    true => self.infer_online(plan, &served, Stocked::Prepared(material.correlated), observer)?,
                }
            }
            Plan::Authenticated(plan) => self.infer_authenticated(&served, plan, &id, observer)?,
        };
        Ok(Event::Inferred { model: served.program().model().to_owned(), material: Some(id), report })
    }

    fn infer_online(
        &mut self,
        plan: &sharing::Plan,
        served: &Served,
        stocked: Stocked,
        observer: &mut dyn Observer,
    ) -> Result<Report, Error> {
        sharing::infer_server_online(self.channel, plan, &served.model, &mut self.key, stocked, observer)
    }

    /// An inference without material, which only plans with linear layers online have.
    fn infer_unprepared(
        &mut self,
        program: &str,
        suite: &str,
        filling: Filling,
        observer: &mut dyn Observer,
    ) -> Result<Event, Refusal> {
        self.admit(Intent::Infer { program, suite: Some(suite), material: None })?;
        let served = self.served(program)?;
        self.accept(suite)?;
        let plan = self.plan(&served, suite)?;
        let sharing = match &*plan {
            Plan::Sharing(sharing) if sharing.options().is_one_shot() => sharing,
            _ => {
                let text = format!("suite {suite:?} does not run without material: prepare first");
                return Err(Refusal::new(AbortReason::BadRequest, text));
            }
        };
        if filling.buffer > sharing.buffer() {
            let text = format!("buffers of this server take {} OTs at most, not {}", sharing.buffer(), filling.buffer);
            return Err(Refusal::new(AbortReason::BadRequest, text));
        }
        let _memory = self.memory(served.memory(&plan, filling.extension).online)?;
        self.count(&served)?;
        messages::send(self.channel, &Granted {})?;
        let report = self.infer_online(sharing, &served, Stocked::Unprepared(filling), observer)?;
        Ok(Event::Inferred { model: served.program().model().to_owned(), material: None, report })
    }

    fn plan(&self, served: &Served, suite: &str) -> Result<Arc<Plan>, Refusal> {
        let refusal = || Refusal::new(AbortReason::BadRequest, format!("this server does not run suite {suite:?}"));
        served.plan(suite)?.ok_or_else(refusal)
    }

    fn extension(&self, name: &str) -> Result<Extension, Refusal> {
        let refusal = || Refusal::new(AbortReason::BadRequest, format!("this server has no OT extension {name:?}"));
        Extension::from_name(name).ok_or_else(refusal)
    }

    fn served(&self, hash: &str) -> Result<Arc<Served>, Refusal> {
        self.server.catalog.by_hash(hash).ok_or_else(|| {
            let text = "this server does not serve the program with that hash; ask it to describe the model again";
            Refusal::new(AbortReason::UnknownProgram, text)
        })
    }

    fn peer(&self) -> String {
        self.channel.peer().map(|peer| peer.to_string()).unwrap_or_default()
    }
}
