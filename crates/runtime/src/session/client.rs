//! The client's side of a session.

use std::collections::BTreeSet;
use std::thread::sleep;
use std::time::{Duration, Instant};

use privet_channel::{Channel, Error as LinkError, Io};
use privet_ot::BaseOts;
use privet_prg::Prg;

use super::dealer::{self, Connect};
use super::hidden::HiddenWeights;
use super::kept::KeptWeights;
use super::messages::{self, Accepted, Base, Granted, Hidden, Kept, Request};
use super::sequence::{Sequence, has_steps};
use crate::report::{PhaseCost, Recorder};
use crate::store::{Evicted, Held, Setups};
use crate::suite::{Filling, Inference, Material, Prediction, Preparation, SessionState, SuitePlan};
use crate::{Error, MaterialId, Metadata, Observer, PeerMisbehaved, Phase, Report, Store, StoreError, check_inputs};

/// How long an entry may be held by somebody else, as by its maker while it is written to the disk.
const PATIENCE: Duration = Duration::from_secs(2);

/// From one look at the entries to the next while others hold all that are left.
const LOOK: Duration = Duration::from_millis(5);

/// A session with a server.
pub struct Client {
    channel: Channel,
    store: Store,
    dealer: Option<Connect>,
    state: SessionState,
    sequence: Sequence,
    keeps_base: bool,
    evicted: Vec<Evicted>,
    /// Bytes that had come when the session was taken up again.
    resumed: Option<u64>,
    was_left: bool,
}

impl Client {
    /// Greets the server at the other end of `channel`; material is kept in `store`.
    ///
    /// # Errors
    /// [`Error::PeerMisbehaved`] if the peer is no Privet or of another version; [`Error::Channel`].
    pub fn new(channel: Channel, store: Store) -> Result<Self, Error> {
        let (state, sequence) = (SessionState::default(), Sequence::default());
        let mut client = Self {
            channel,
            store,
            dealer: None,
            state,
            sequence,
            keeps_base: false,
            evicted: Vec::new(),
            resumed: None,
            was_left: false,
        };
        client.guarded(|client| messages::greet(&mut client.channel))?;
        Ok(client)
    }

    /// The same session with a way to the dealer, who makes material for plans that want it dealt.
    #[must_use]
    pub fn with_dealer(self, connect: Connect) -> Self {
        Self { dealer: Some(connect), ..self }
    }

    /// The same session, which leaves what stands in for base OTs when it makes correlations the next time, and takes what an
    /// earlier one left: once, and only if the server has it, too.
    #[must_use]
    pub fn keeping_base_ots(self) -> Self {
        Self { keeps_base: true, ..self }
    }

    /// Takes up a session that was idle for another job, with a server that [ends idle sessions](super::Server::ending_after):
    /// a wait for any one message is bounded by `timeout` from now on, and neither keys nor state of an earlier job are used.
    /// Whether the server has not ended it, as far as this side can tell without asking.
    #[must_use]
    pub fn resume(&mut self, timeout: Duration) -> bool {
        self.channel.set_timeout(timeout);
        if let Some(dealer) = &self.dealer {
            dealer.set_timeout(timeout);
        }
        (self.state, self.sequence) = Default::default();
        self.resumed = Some(self.channel.cost().bytes_received);
        self.channel.is_quiet()
    }

    /// Whether the server had ended the session, or its process, before it answered anything since the session was taken up
    /// again: what was asked may be asked of it in another one.
    pub fn was_left(&self) -> bool {
        self.was_left
    }

    /// The public half of `model` (a name or a hash), or of the only program served. If the caller expects the program with
    /// a hash, nothing else is even read.
    ///
    /// # Errors
    /// [`Error::Channel`] if the server has no such model (its reason says so); [`Error::PeerMisbehaved`] if what it
    /// sends is another program than the expected one, or not consistent.
    pub fn describe(&mut self, model: Option<&str>, expected: Option<&str>) -> Result<Vec<u8>, Error> {
        self.guarded(|client| {
            let request = Request::Describe { model: model.map(str::to_owned) };
            messages::ask_program(&mut client.channel, &request, expected)
        })
    }

    /// Makes one material entry for `plan` and stores it durably; both sides hold their half when this returns.
    ///
    /// # Errors
    /// [`Error::Misuse`] if the plan wants a dealer and the session has none; if the server or the dealer refuses, a link
    /// fails or the store does, or the store is full. Nothing is kept then.
    pub fn prepare(
        &mut self,
        plan: &dyn SuitePlan,
        observer: &mut dyn Observer,
    ) -> Result<(MaterialId, Report), Error> {
        let connect = match (plan.is_dealt(), &self.dealer) {
            (false, _) => None,
            (true, Some(connect)) => Some(connect.clone()),
            (true, None) => {
                return Err(Error::Misuse("this plan's material is dealt: say where the dealer is".into()));
            }
        };
        // Room for it before anybody works, and no second first setup.
        let mut entry = self.store.begin(plan.entry_bytes().0)?;
        let first_setup = if plan.needs_setup() { self.setups(plan).first()? } else { None };
        self.guarded(|client| {
            let hidden = client.hidden_weights(plan)?;
            let (weights, setup_cost) = client.kept_weights(plan)?;
            let (program, suite) = (plan.program().hash().to_string(), plan.label());
            let (setups, peer) = (client.setups(plan), client.channel.peer_fingerprint());
            let (id, mut base) = client.begin_transfers(plan, |nonce, base| {
                let extension = plan.extension().name().to_owned();
                Request::Prepare { program: program.clone(), suite: suite.clone(), extension, nonce, base }
            })?;
            let kept = setups.kept()?;
            let mut link = connect.as_ref().map(Connect::open).transpose()?;
            if let Some(link) = &mut link {
                dealer::ask(link, (plan, None), &id, peer.clone(), &kept)?;
            }
            let job = Preparation {
                channel: &mut client.channel,
                dealer: link.as_mut(),
                entry: &mut entry,
                setups,
                kept,
                base: &mut base,
                weights,
                first_setup,
                observer,
            };
            let mut prepared = plan.prepare_client(job, hidden)?;
            prepared.report.setup = setup_cost;
            let (model, setup) = (plan.program().model().to_owned(), prepared.setup);
            // The server stores first: an entry that only it holds is lost; one that only the client holds would fail later.
            client.channel.recv(1)?;
            client.store.keep_left(&peer, &id, &mut base);
            let metadata = Metadata { id: id.clone(), program, suite, role: "client".into(), peer, model, setup };
            entry.finish(&metadata, &prepared.head)?;
            if let (Some(connect), Some(link)) = (connect, link) {
                connect.keep(link);
            }
            Ok((id, prepared.report))
        })
    }

    /// Asks for what begins with oblivious transfers: its name once the server has said yes, and whether both take what an
    /// earlier session left.
    fn begin_transfers(
        &mut self,
        plan: &dyn SuitePlan,
        request: impl FnOnce([u8; 16], Option<Base>) -> Request,
    ) -> Result<(MaterialId, BaseOts), Error> {
        let mut nonce = [0; 16];
        Prg::from_os()?.fill(&mut nonce);
        let keeps = self.keeps_base && plan.transfers();
        let held = if keeps { self.store.hold_base(&self.channel.peer_fingerprint())? } else { None };
        let base = keeps.then(|| Base { kept: held.as_ref().map(|held| held.name.clone()) });
        messages::send(&mut self.channel, &request(nonce, base))?;
        let accepted: Accepted = messages::receive(&mut self.channel)?;
        // A half whose other one is gone serves nobody any more, so it is taken all the same.
        let half = held.map(|held| self.store.take_held(held)).transpose()?.filter(|_| accepted.kept);
        if accepted.kept && half.is_none() {
            let text = "it took what stands in for base OTs, and this party named nothing";
            return Err(PeerMisbehaved::ControlMessage(text.into()).into());
        }
        let id = messages::material_id(&nonce, &accepted.nonce);
        let base = if keeps { BaseOts::keeping(half, id.bytes()) } else { BaseOts::default() };
        Ok((id, base))
    }

    /// Fetches the encrypted weights that `plan` wants kept, unless they are here: what it cost, or `None` if nothing came.
    ///
    /// # Errors
    /// If the server refuses, the link fails or the store does. Nothing is kept then.
    pub fn fetch(&mut self, plan: &dyn SuitePlan) -> Result<Option<PhaseCost>, Error> {
        self.guarded(|client| Ok(client.kept_weights(plan)?.1))
    }

    /// Encrypted weights that were removed since this was asked last, to make place for those that came.
    pub fn take_evicted(&mut self) -> Vec<Evicted> {
        std::mem::take(&mut self.evicted)
    }

    fn setups(&self, plan: &dyn SuitePlan) -> Setups {
        self.store.setups(&plan.program().hash().to_string(), &self.channel.peer_fingerprint())
    }

    /// Material that is ready for `plan` with this server.
    pub fn ready(&self, plan: &dyn SuitePlan) -> Result<Vec<MaterialId>, Error> {
        let is_ready = |entry: &Metadata| self.fits(entry, plan) && self.store.has_setup(entry);
        Ok(self.store.list()?.into_iter().filter(is_ready).map(|entry| entry.id).collect())
    }

    fn fits(&self, entry: &Metadata, plan: &dyn SuitePlan) -> bool {
        entry.role == "client"
            && entry.program == plan.program().hash().to_string()
            && entry.suite == plan.label()
            && entry.peer == self.channel.peer_fingerprint()
    }

    /// The server's hidden weights, if the plan needs them; fetched unless they are here.
    fn hidden_weights(&mut self, plan: &dyn SuitePlan) -> Result<Option<HiddenWeights>, Error> {
        let Some((ring, layers)) = plan.hidden_layers() else { return Ok(None) };
        let program = plan.program().hash().to_string();
        let path = self.store.hidden_weights(&program, &self.channel.peer_fingerprint());
        let known = HiddenWeights::name(&self.store, &path);
        messages::send(&mut self.channel, &Request::HiddenWeights { program, known: known.clone() })?;
        let Hidden { mask } = messages::receive(&mut self.channel)?;
        if known.as_deref() != Some(mask.as_str()) {
            HiddenWeights::receive(&mut self.channel, ring, &layers, mask.as_str(), &self.store, &path)?;
        }
        HiddenWeights::open(&self.store, &path, ring, layers).map(Some)
    }

    /// The encrypted weights that the plan wants kept, fetched unless they are here, and what fetching them cost.
    fn kept_weights(&mut self, plan: &dyn SuitePlan) -> Result<(Option<KeptWeights>, Option<PhaseCost>), Error> {
        let bytes = plan.kept_bytes();
        if bytes == 0 {
            return Ok((None, None));
        }
        let recorder = Recorder::start(Phase::Offline, &self.channel);
        let (program, suite) = (plan.program().hash().to_string(), plan.label());
        let path = self.store.kept_weights(&program, plan.program().model(), &self.channel.peer_fingerprint(), &suite);
        // Before the server hears of it: no other process may take it for old meanwhile.
        self.store.touch(&path);
        let known = KeptWeights::name(&self.store, &path, bytes);
        let request = Request::KeptWeights { program: program.clone(), suite: suite.clone(), known: known.clone() };
        messages::send(&mut self.channel, &request)?;
        let Kept { weights } = messages::receive(&mut self.channel)?;
        let is_new = known.as_deref() != Some(weights.as_str());
        if is_new {
            // The server may send them in a session of its own alone: what serves nobody is gone by then.
            self.store.forget(&path)?;
            let evicted = KeptWeights::receive(&mut self.channel, bytes, weights.as_str(), &self.store, &path)?;
            self.evicted.extend(evicted);
        }
        let cost = recorder.finish(&self.channel).total;
        Ok((Some(KeptWeights::open(&self.store, &path, weights.as_str())?), is_new.then_some(cost)))
    }

    /// Runs one inference on the entry `id`, which is spent once the server was asked, whatever happens after, unless it
    /// refuses; returns the program's outputs as signed fixed-point integers.
    ///
    /// # Errors
    /// [`Error::Misuse`] if the inputs do not fit and [`Error::Store`] if the entry does not fit, is spent or missing
    /// here: the session goes on then. [`Error::Channel`] with the server's reason if the entry is spent or missing
    /// there; otherwise if the link fails.
    pub fn infer(
        &mut self,
        plan: &dyn SuitePlan,
        id: &MaterialId,
        inputs: &[Vec<i64>],
        observer: &mut dyn Observer,
    ) -> Result<Prediction, Error> {
        check_inputs(plan.program(), inputs)?;
        let held = self.hold(plan, id, PATIENCE)?;
        self.spend(plan, id, held, inputs, observer)
    }

    /// As [`Client::infer`] on the first entry that is ready and that nobody else claims first, so that any number of
    /// processes can share a store; also tells which entry it was. `None`, and nothing was said, if no entry is left.
    ///
    /// # Errors
    /// As [`Client::infer`].
    pub fn infer_next(
        &mut self,
        plan: &dyn SuitePlan,
        inputs: &[Vec<i64>],
        observer: &mut dyn Observer,
    ) -> Result<Option<(MaterialId, Prediction)>, Error> {
        check_inputs(plan.program(), inputs)?;
        let Some((id, held)) = self.hold_next(plan)? else { return Ok(None) };
        let prediction = self.spend(plan, &id, held, inputs, observer)?;
        Ok(Some((id, prediction)))
    }

    /// Runs one inference that nothing was prepared for: the parties make correlations in chunks while the network runs, and
    /// none outlives it.
    ///
    /// # Errors
    /// [`Error::Misuse`] unless the plan has linear layers online and the inputs fit: the session goes on then. If the
    /// server refuses or the link fails.
    pub fn infer_unprepared(
        &mut self,
        plan: &dyn SuitePlan,
        inputs: &[Vec<i64>],
        observer: &mut dyn Observer,
    ) -> Result<Prediction, Error> {
        let filling = plan.filling();
        let filling = filling
            .ok_or_else(|| Error::Misuse("only a plan with linear layers online runs without material".into()))?;
        check_inputs(plan.program(), inputs)?;
        self.guarded(|client| {
            let (program, suite) = (plan.program().hash().to_string(), plan.label());
            let Filling { extension, buffer } = filling;
            let (extension, step) = (extension.name().to_owned(), client.step_to_ask(plan));
            let (id, mut base) = client.begin_transfers(plan, |nonce, base| Request::InferUnprepared {
                program,
                suite,
                extension,
                buffer,
                nonce,
                base,
                step,
            })?;
            let Granted {} = messages::receive(&mut client.channel)?;
            let prediction = client.run(plan, Material::Unprepared(filling, &mut base), inputs, observer)?;
            client.store.keep_left(&client.channel.peer_fingerprint(), &id, &mut base);
            Ok(prediction)
        })
    }

    /// Which step of a sequence the next inference of `plan` is; 0 for the first, and always for a program without state.
    pub fn step(&self, plan: &dyn SuitePlan) -> u64 {
        self.sequence.next(plan.program(), &plan.label())
    }

    /// Ends a sequence of inferences: the next is the first of another.
    pub fn end_sequence(&mut self) {
        self.sequence.end();
    }

    /// The step to ask for, of a program with state.
    fn step_to_ask(&self, plan: &dyn SuitePlan) -> Option<u64> {
        has_steps(plan.program()).then(|| self.step(plan))
    }

    fn hold(&self, plan: &dyn SuitePlan, id: &MaterialId, patience: Duration) -> Result<HeldEntry, Error> {
        let metadata = self.store.metadata(id)?;
        if !self.fits(&metadata, plan) {
            return Err(StoreError::Unfit { id: id.clone() }.into());
        }
        Ok(HeldEntry { held: self.store.hold(id, patience)?, setup: metadata.setup })
    }

    /// Holds the first entry that is still there; entries that were made meanwhile get their turn, too. One that somebody
    /// else holds, as its maker does for a moment, is waited for when no other is left.
    fn hold_next(&self, plan: &dyn SuitePlan) -> Result<Option<(MaterialId, HeldEntry)>, Error> {
        let (mut lost, limit) = (BTreeSet::new(), Instant::now() + PATIENCE);
        loop {
            let ready = self.ready(plan)?;
            let left: Vec<_> = ready.into_iter().filter(|id| !lost.contains(id)).collect();
            if left.is_empty() {
                return Ok(None);
            }
            let mut is_held = false;
            for id in left {
                match self.hold(plan, &id, Duration::ZERO) {
                    Err(Error::Store(StoreError::Held { .. })) => is_held = true,
                    Err(Error::Store(StoreError::Spent { .. } | StoreError::Missing { .. })) => {
                        lost.insert(id);
                    }
                    held => return held.map(|held| Some((id, held))),
                }
            }
            if is_held {
                if Instant::now() > limit {
                    return Ok(None);
                }
                sleep(LOOK);
            }
        }
    }

    /// Asks for one inference on material that is held here, claims it once the server grants that, and runs it. A refusal
    /// leaves the entry as it was; whatever else the server says, the entry is spent.
    fn spend(
        &mut self,
        plan: &dyn SuitePlan,
        id: &MaterialId,
        HeldEntry { held, setup }: HeldEntry,
        inputs: &[Vec<i64>],
        observer: &mut dyn Observer,
    ) -> Result<Prediction, Error> {
        let asked = self.guarded(|client| client.ask_to_infer(plan, id));
        if let Err(error) = asked {
            if !error.is_refusal() && !self.was_left {
                held.claim()?;
            }
            return Err(error);
        }
        let (file, _removal) = self.guarded(|_| Ok(held.claim()?))?;
        let material = Material::Claimed { id: id.clone(), file };
        let result = self.guarded(|client| client.run(plan, material, inputs, observer));
        // The server is told first: it may hold what other runs wait for.
        if let (true, Some(setup)) = (result.as_ref().is_err_and(Error::spoils_setup), setup) {
            self.setups(plan).entry(&setup).spoil()?;
        }
        result
    }

    fn run(
        &mut self,
        plan: &dyn SuitePlan,
        material: Material<'_>,
        inputs: &[Vec<i64>],
        observer: &mut dyn Observer,
    ) -> Result<Prediction, Error> {
        let (step, program, suite) = (self.step(plan), plan.program(), plan.label());
        let mut kept = self.sequence.take(program, &suite, step).map_err(Error::Misuse)?;
        let (setups, channel, session) = (self.setups(plan), &mut self.channel, &mut self.state);
        let job = Inference { channel, material, setups, session, kept: &mut kept, observer };
        let prediction = plan.infer_client(job, inputs)?;
        self.sequence.keep(program, &suite, step, kept);
        Ok(prediction)
    }

    fn ask_to_infer(&mut self, plan: &dyn SuitePlan, id: &MaterialId) -> Result<(), Error> {
        let (program, step) = (plan.program().hash().to_string(), self.step_to_ask(plan));
        messages::send(&mut self.channel, &Request::Infer { program, material: id.clone(), step })?;
        let Granted {} = messages::receive(&mut self.channel)?;
        Ok(())
    }

    /// Ends the session in good order.
    pub fn close(mut self) -> Result<(), Error> {
        messages::send(&mut self.channel, &Request::Bye)
    }

    /// Runs `work` and, if it fails on this side, tells the server why before passing the error on.
    fn guarded<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        work(self).inspect_err(|error| {
            let is_gone = matches!(error, Error::Channel(LinkError::Io(Io::Disconnected)));
            self.was_left |= is_gone && self.resumed == Some(self.channel.cost().bytes_received);
            if !error.is_abort() {
                self.channel.abort(error.abort_reason());
            }
        })
    }
}

/// Material that this client may claim and nobody else, with the setup that it belongs to.
struct HeldEntry {
    held: Held,
    setup: Option<MaterialId>,
}
