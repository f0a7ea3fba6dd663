//! A client's requests, one after the other: what is looked up, admitted and reserved before a suite does its job.

use std::sync::Arc;

use privet_channel::{AbortReason, Channel, Error as LinkError, Io, MOST_UNREAD};
use privet_ot::{BaseOts, Extension};
use privet_prg::Prg;

use super::admission::Caller;
use super::budget::Promise;
use super::catalog::Served;
use super::dealer::{self, Connect};
use super::gate::Intent;
use super::kept::KeptWeights;
use super::messages::{self, Accepted, Base, Hidden, Kept, Request};
use super::refusal::Refusal;
use super::sequence::{Sequence, has_steps};
use super::server::{Event, Server};
use crate::report::{Phase, Recorder};
use crate::store::Setups;
use crate::suite::{Filling, Inference, Material, Preparation, Prepared, ServerSide, SessionState, SuitePlan};
use crate::{Error, MaterialId, Metadata, Observer, Report, StoreError, TemporaryEntry};

/// One client's session.
pub(super) struct Session<'a> {
    pub(super) server: &'a Server,
    pub(super) channel: &'a mut Channel,
    pub(super) state: SessionState,
    pub(super) sequence: Sequence,
    /// Programs and suites whose kept weights this session has sent.
    pub(super) sent: Vec<[String; 2]>,
}

impl Session<'_> {
    /// Serves requests until the client says goodbye.
    pub(super) fn run(&mut self, observer: &mut dyn Observer, on_event: &mut dyn FnMut(Event)) -> Result<(), Refusal> {
        messages::greet(self.channel)?;
        let mut has_served = false;
        while let Some(request) = self.next_request(has_served)? {
            let event = match request {
                Request::Describe { model } => self.describe(model.as_deref())?,
                Request::Prepare { program, suite, extension, nonce, base } => {
                    self.prepare((&program, &suite, &extension), &nonce, base, observer)?
                }
                Request::HiddenWeights { program, known } => {
                    self.hidden_weights(&program, known)?;
                    continue;
                }
                Request::KeptWeights { program, suite, known } => self.kept_weights(&program, &suite, known)?,
                Request::Infer { program, material, step } => self.infer(&program, material, step, observer)?,
                Request::InferUnprepared { program, suite, extension, buffer, nonce, base, step } => {
                    let filling = Filling { extension: self.extension(&extension)?, buffer };
                    self.infer_unprepared((&program, &suite, filling), (&nonce, base), step, observer)?
                }
                Request::Bye => break,
            };
            has_served |= matches!(event, Event::Prepared { .. } | Event::Inferred { .. });
            if has_served && self.server.idle.is_some() {
                (self.state, self.sequence) = Default::default();
            }
            on_event(event);
        }
        Ok(())
    }

    /// The next request. Where sessions may be idle, there may be none after a job: the client has left without a word, or the
    /// time for it is over.
    fn next_request(&mut self, has_served: bool) -> Result<Option<Request>, Error> {
        self.channel.set_unread_limit(messages::UNREAD_REQUESTS);
        let Some(idle) = self.server.idle.filter(|_| has_served) else {
            return messages::receive(self.channel).map(Some);
        };
        let timeout = self.channel.timeout();
        self.channel.set_timeout(idle);
        let request = messages::receive(self.channel);
        self.channel.set_timeout(timeout);
        match request {
            Err(Error::Channel(LinkError::Io(Io::TimedOut { .. } | Io::Disconnected))) => Ok(None),
            request => request.map(Some),
        }
    }

    fn caller(&self) -> Caller {
        Caller::of(self.channel)
    }

    /// Refuses a suite that the policy does not accept. Nothing is planned for a name that there is not.
    fn accept(&self, suite: &str) -> Result<(), Refusal> {
        let config = self.server.suites.config(suite).ok_or_else(|| no_suite(suite))?;
        Ok(self.server.admission.check_suite(&self.caller(), &config.label())?)
    }

    /// Counts the answers of an inference, the last thing before it begins.
    fn count(&self, served: &Served) -> Result<(), Refusal> {
        Ok(self.server.admission.count(&self.caller(), served.program().batch())?)
    }

    fn admit(&self, intent: Intent<'_>) -> Result<(), Refusal> {
        self.server.admission.admit(&self.caller())?;
        let Some(gate) = &self.server.gate else { return Ok(()) };
        gate(&self.channel.peer_fingerprint(), intent).map_err(|why| Refusal::new(AbortReason::NotAllowed, why))
    }

    fn describe(&mut self, model: Option<&str>) -> Result<Event, Refusal> {
        self.admit(Intent::Describe { model })?;
        let served = self.server.catalog.by_name(model).ok_or_else(|| {
            let asked = model.map_or("no model was named".to_owned(), |name| format!("there is no model {name:?}"));
            let text = format!("{asked}; served here: {}", self.server.catalog.names());
            Refusal::quoting(AbortReason::UnknownProgram, text, "there is no model of that name")
        })?;
        self.channel.send(served.public())?;
        self.channel.flush()?;
        Ok(Event::Described { model: served.program().model().to_owned() })
    }

    fn prepare(
        &mut self,
        (program, suite, extension): (&str, &str, &str),
        client_nonce: &[u8; 16],
        base: Option<Base>,
        observer: &mut dyn Observer,
    ) -> Result<Event, Refusal> {
        self.admit(Intent::Prepare { program, suite })?;
        let served = self.served(program)?;
        self.accept(suite)?;
        let plan = self.plan(&served, suite)?;
        let extension = self.extension(extension)?;
        let connect = if plan.is_dealt() { Some(self.dealer()?) } else { None };
        let mut entry = self.begin(&*plan)?;
        let _memory = self.memory(plan.server_memory(&served, extension)?.offline)?;
        let (setups, peer) = (self.setups(program), self.channel.peer_fingerprint());
        let (id, mut base) = self.begin_transfers(client_nonce, base)?;
        let kept_setups = setups.kept().map_err(Error::from)?;
        let mut link = connect.as_ref().map(Connect::open).transpose()?;
        if let Some(link) = &mut link {
            dealer::ask(link, (&*plan, Some(served.public())), &id, peer.clone(), &kept_setups)?;
        }
        let job = Preparation {
            channel: self.channel,
            dealer: link.as_mut(),
            entry: &mut entry,
            setups,
            kept: kept_setups,
            base: &mut base,
            weights: None,
            first_setup: None,
            observer,
        };
        let side = ServerSide { served: &served, store: &self.server.store, extension };
        let Prepared { head, setup, report } = plan.prepare_server(job, side)?;
        self.server.store.keep_left(&peer, &id, &mut base);
        let metadata = Metadata {
            id: id.clone(),
            program: program.to_owned(),
            suite: suite.to_owned(),
            role: "server".into(),
            peer,
            model: served.program().model().to_owned(),
            setup,
        };
        entry.finish(&metadata, &head).map_err(Error::from)?;
        if let (Some(connect), Some(link)) = (connect, link) {
            connect.keep(link);
        }
        self.channel.send(&[1])?;
        self.channel.flush()?;
        Ok(Event::Prepared { model: served.program().model().to_owned(), material: id, report })
    }

    /// Says yes to what begins with oblivious transfers: its name, and whether it takes what an earlier session left.
    fn begin_transfers(&mut self, client: &[u8; 16], base: Option<Base>) -> Result<(MaterialId, BaseOts), Refusal> {
        let mut nonce = [0; 16];
        Prg::from_os()?.fill(&mut nonce);
        let half = match base.as_ref().and_then(|base| base.kept.as_ref()) {
            Some(name) => self.server.store.take_base(&self.channel.peer_fingerprint(), name).map_err(Error::from)?,
            None => None,
        };
        messages::send(self.channel, &Accepted { nonce, kept: half.is_some() })?;
        let id = messages::material_id(client, &nonce);
        let base = if base.is_some() { BaseOts::keeping(half, id.bytes()) } else { BaseOts::default() };
        Ok((id, base))
    }

    fn setups(&self, program: &str) -> Setups {
        self.server.store.setups(program, &self.channel.peer_fingerprint())
    }

    /// Tells the client which mask hides the weights and, if it does not know that one, sends them hidden.
    fn hidden_weights(&mut self, program: &str, known: Option<String>) -> Result<(), Refusal> {
        self.admit(Intent::HiddenWeights { program })?;
        self.server.admission.check_dealer(&self.caller())?;
        self.dealer()?;
        let served = self.served(program)?;
        let (suites, secret) = (self.server.suites, self.server.store.weight_mask(program)?);
        let name = suites.mask_name(program, &secret);
        messages::send(self.channel, &Hidden { mask: name.clone() })?;
        if known.as_deref() != Some(name.as_str()) {
            suites.send_hidden_weights(&served, &secret, self.channel)?;
        }
        Ok(())
    }

    /// Tells the client the name of the weights that it is to keep and, if it does not have them, sends them encrypted.
    fn kept_weights(&mut self, program: &str, suite: &str, known: Option<String>) -> Result<Event, Refusal> {
        self.admit(Intent::KeptWeights { program, suite })?;
        let served = self.served(program)?;
        self.accept(suite)?;
        let plan = self.plan(&served, suite)?;
        let bytes = plan.kept_bytes();
        if bytes == 0 {
            return Err(Refusal::new(AbortReason::BadRequest, format!("in suite {suite:?} nobody keeps weights")));
        }
        let recorder = Recorder::start(Phase::Offline, self.channel);
        let secret = self.server.store.kept_key(program, &self.channel.peer_fingerprint())?;
        let weights = plan.kept_name(&secret);
        messages::send(self.channel, &Kept { weights: weights.clone() })?;
        if known.as_deref() != Some(weights.as_str()) {
            // A client that was told to prepare asks to fetch first.
            let sends = self.admit(Intent::SendWeights { program, suite });
            sends.map_err(|refusal| Refusal::new(AbortReason::MaterialUnavailable, refusal.text))?;
            let these = [program.to_owned(), suite.to_owned()];
            if self.sent.contains(&these) {
                let text = "this session has sent these weights: they are sent once";
                return Err(Refusal::new(AbortReason::BadRequest, text));
            }
            self.sent.push(these);
            KeptWeights::send(self.channel, bytes, |send| plan.send_kept(&served, &secret, send))?;
            self.channel.flush()?;
        }
        let report = recorder.finish(self.channel);
        Ok(Event::Kept { model: served.program().model().to_owned(), report })
    }

    /// Room in the store for an entry of `plan`.
    fn begin(&self, plan: &dyn SuitePlan) -> Result<TemporaryEntry, Refusal> {
        self.server.store.begin(plan.entry_bytes().1).map_err(|error| match error {
            StoreError::Full { needed, limit, .. } if needed > limit => {
                let text =
                    format!("an entry takes {needed} bytes, and this server's material store holds {limit} at most");
                Refusal::new(AbortReason::BadRequest, text)
            }
            StoreError::Full { needed, .. } => {
                let text =
                    format!("this server's material store is full: an entry takes {needed} bytes; try again later");
                Refusal::new(AbortReason::Busy, text)
            }
            other => Error::from(other).into(),
        })
    }

    /// Memory for a job that takes `bytes`, once it is there. In a job both sides may send much before either reads.
    fn memory(&mut self, bytes: u64) -> Result<Option<Promise>, Refusal> {
        let busy = || Refusal::new(AbortReason::Busy, "this server has no memory left for the job: try again later");
        let promise = self.server.budget.as_ref().map(|budget| budget.promise(bytes).ok_or_else(busy)).transpose()?;
        self.channel.set_unread_limit(MOST_UNREAD);
        Ok(promise)
    }

    fn dealer(&self) -> Result<Connect, Refusal> {
        let refusal = || Refusal::new(AbortReason::BadRequest, "this server has no dealer: ask for another suite");
        self.server.dealer.clone().ok_or_else(refusal)
    }

    /// The state that `step` of a sequence begins with: no state, and no step, in most programs.
    fn take_state(&mut self, plan: &dyn SuitePlan, step: Option<u64>) -> Result<Vec<Vec<u64>>, Refusal> {
        match (has_steps(plan.program()), step) {
            (true, Some(step)) => {
                let shares = self.sequence.take(plan.program(), &plan.label(), step);
                shares.map_err(|text| Refusal::new(AbortReason::StaleSession, text))
            }
            (false, None) => Ok(Vec::new()),
            (true, None) => Err(Refusal::new(AbortReason::BadRequest, "this program has state: tell the step")),
            (false, Some(_)) => Err(Refusal::new(AbortReason::BadRequest, "this program has no state, and no steps")),
        }
    }

    fn infer(
        &mut self,
        program: &str,
        id: MaterialId,
        step: Option<u64>,
        observer: &mut dyn Observer,
    ) -> Result<Event, Refusal> {
        let metadata = self.server.store.metadata(&id);
        let suite = metadata.as_ref().ok().map(|metadata| metadata.suite.as_str());
        self.admit(Intent::Infer { program, suite, material: Some(&id) })?;
        let (served, metadata) = (self.served(program)?, metadata?);
        if metadata.program != program || metadata.peer != self.channel.peer_fingerprint() || metadata.role != "server"
        {
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
            .plan(self.server.suites, &metadata.suite)?
            .ok_or_else(|| Refusal::new(AbortReason::StaleSession, format!("material {id} is of another suite")))?;
        let shares = self.take_state(&*plan, step)?;
        let _memory = self.memory(plan.server_memory(&served, plan.extension())?.online)?;
        self.count(&served)?;
        let marked = self.server.store.mark(&id)?;
        // Nobody else gets the entry now, so the client may claim its half while this side's marker becomes safe.
        let granted = messages::grant(self.channel);
        // Whether the client heard it or not: the entry is spent, and its files go.
        let (file, _removal) = marked.open()?;
        granted?;
        let material = Material::Claimed { id: id.clone(), file };
        let result = self.run_inference(&*plan, &served, material, (step, shares), observer);
        if let (true, Some(setup)) = (result.as_ref().is_err_and(Error::spoils_setup), &metadata.setup) {
            self.setups(program).entry(setup).spoil()?;
        }
        Ok(Event::Inferred { model: served.program().model().to_owned(), material: Some(id), report: result? })
    }

    fn run_inference(
        &mut self,
        plan: &dyn SuitePlan,
        served: &Served,
        material: Material<'_>,
        (step, mut shares): (Option<u64>, Vec<Vec<u64>>),
        observer: &mut dyn Observer,
    ) -> Result<Report, Error> {
        let setups = self.setups(&plan.program().hash().to_string());
        let (channel, session) = (&mut *self.channel, &mut self.state);
        let job = Inference { channel, material, setups, session, kept: &mut shares, observer };
        let report = plan.infer_server(job, served)?;
        self.sequence.keep(plan.program(), &plan.label(), step.unwrap_or(0), shares);
        Ok(report)
    }

    /// An inference without material, which only plans with linear layers online have.
    fn infer_unprepared(
        &mut self,
        (program, suite, filling): (&str, &str, Filling),
        (client_nonce, base): (&[u8; 16], Option<Base>),
        step: Option<u64>,
        observer: &mut dyn Observer,
    ) -> Result<Event, Refusal> {
        self.admit(Intent::Infer { program, suite: Some(suite), material: None })?;
        let served = self.served(program)?;
        self.accept(suite)?;
        let plan = self.plan(&served, suite)?;
        let Some(Filling { buffer, .. }) = plan.filling() else {
            let text = format!("suite {suite:?} does not run without material: prepare first");
            return Err(Refusal::new(AbortReason::BadRequest, text));
        };
        if filling.buffer > buffer {
            let text = format!("buffers of this server take {buffer} OTs at most, not {}", filling.buffer);
            return Err(Refusal::new(AbortReason::BadRequest, text));
        }
        let shares = self.take_state(&*plan, step)?;
        let _memory = self.memory(plan.server_memory(&served, filling.extension)?.online)?;
        self.count(&served)?;
        let (id, mut base) = self.begin_transfers(client_nonce, base)?;
        messages::grant(self.channel)?;
        let material = Material::Unprepared(filling, &mut base);
        let report = self.run_inference(&*plan, &served, material, (step, shares), observer)?;
        self.server.store.keep_left(&self.channel.peer_fingerprint(), &id, &mut base);
        Ok(Event::Inferred { model: served.program().model().to_owned(), material: None, report })
    }

    fn plan(&self, served: &Served, suite: &str) -> Result<Arc<dyn SuitePlan>, Refusal> {
        served.plan(self.server.suites, suite)?.ok_or_else(|| no_suite(suite))
    }

    fn extension(&self, name: &str) -> Result<Extension, Refusal> {
        let refusal = || {
            let text = format!("this server has no OT extension {name:?}");
            Refusal::quoting(AbortReason::BadRequest, text, "there is no OT extension of that name")
        };
        Extension::from_name(name).ok_or_else(refusal)
    }

    fn served(&self, hash: &str) -> Result<Arc<Served>, Refusal> {
        self.server.catalog.by_hash(hash).ok_or_else(|| {
            let text = "this server does not serve the program with that hash; ask it to describe the model again";
            Refusal::new(AbortReason::UnknownProgram, text)
        })
    }
}

fn no_suite(suite: &str) -> Refusal {
    let text = format!("this server does not run suite {suite:?}");
    Refusal::quoting(AbortReason::BadRequest, text, "this server does not run a suite of that name")
}
