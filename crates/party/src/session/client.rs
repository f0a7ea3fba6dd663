//! The client's side of a session.

use std::collections::BTreeSet;
use std::fs::File;

use privet_channel::Channel;
use privet_fss::Role;
use privet_prg::Prg;
use privet_shark::Turns;

use super::dealer::{self, Connect};
use super::hidden::HiddenWeights;
use super::messages::{self, Accepted, Granted, Hidden, Request};
use crate::authenticated::{self, DealtHalf, Head, Material, Opened};
use crate::sharing::{self, ClientMaterial, Filling, SessionKeys, Stocked};
use crate::store::{Held, Setups};
use crate::{Error, MaterialId, Metadata, Observer, PlanRef, Report, Store, StoreError, check_inputs};

/// A program's outputs as signed fixed-point integers, and what they cost.
pub type Prediction = (Vec<Vec<i64>>, Report);

/// A session with a server.
pub struct Client {
    channel: Channel,
    store: Store,
    dealer: Option<Connect>,
    keys: SessionKeys,
}

impl Client {
    /// Greets the server at the other end of `channel`; material is kept in `store`.
    ///
    /// # Errors
    /// [`Error::PeerMisbehaved`] if the peer is no Privet or of another version; [`Error::Channel`].
    pub fn new(channel: Channel, store: Store) -> Result<Self, Error> {
        let mut client = Self { channel, store, dealer: None, keys: SessionKeys::default() };
        client.guarded(|client| messages::greet(&mut client.channel))?;
        Ok(client)
    }

    /// The same session with a way to the dealer, who makes material for plans that want it dealt.
    #[must_use]
    pub fn with_dealer(self, connect: Connect) -> Self {
        Self { dealer: Some(connect), ..self }
    }

    /// The public half of `model` (a name or a hash), or of the only program served. If the caller expects the program with
    /// a hash, nothing else is even read.
    ///
    /// # Errors
    /// [`Error::Channel`] if the server has no such model (its reason says so); [`Error::PeerMisbehaved`] if what it
    /// sends is another program than the expected one, or not consistent.
    pub fn describe(&mut self, model: Option<&str>, expected: Option<&str>) -> Result<Vec<u8>, Error> {
        self.guarded(|client| {
            messages::send(&mut client.channel, &Request::Describe { model: model.map(str::to_owned) })?;
            let bytes = client.channel.recv_at_most(messages::MAX_PROGRAM)?;
            messages::check_program(&bytes, expected)?;
            Ok(bytes)
        })
    }

    /// Makes one piece of material for `plan` and stores it durably; both sides hold their half when this returns.
    ///
    /// # Errors
    /// [`Error::Misuse`] if the plan wants a dealer and the session has none; if the server or the dealer refuses, a link
    /// fails or the store does, or the store is full. Nothing is kept then.
    pub fn prepare<'p>(
        &mut self,
        plan: impl Into<PlanRef<'p>>,
        observer: &mut dyn Observer,
    ) -> Result<(MaterialId, Report), Error> {
        let plan = plan.into();
        let dealer = match (plan.options().is_dealt(), &self.dealer) {
            (false, _) => None,
            (true, Some(connect)) => Some(connect.clone()),
            (true, None) => {
                return Err(Error::Misuse("this plan's material is dealt: say where the dealer is".into()));
            }
        };
        // Room for it before anybody works, and no second first setup.
        let mut draft = self.store.draft(plan.piece_bytes().0)?;
        let mut first_setup = match plan {
            PlanRef::Authenticated(plan) => self.setups(plan).first()?,
            PlanRef::Sharing(_) => None,
        };
        self.guarded(|client| {
            let hidden = match plan {
                PlanRef::Sharing(plan) if dealer.is_some() => Some(client.hidden_weights(plan)?),
                _ => None,
            };
            let mut nonce = [0; 16];
            Prg::from_os()?.fill(&mut nonce);
            let (program, suite) = (plan.program().hash().to_string(), plan.options().name());
            let extension = plan.extension().name().to_owned();
            let request = Request::Prepare { program: program.clone(), suite: suite.clone(), extension, nonce };
            messages::send(&mut client.channel, &request)?;
            let accepted: Accepted = messages::receive(&mut client.channel)?;

            let id = messages::material_id(&nonce, &accepted.nonce);
            let kept = client.store.setups(&program, &client.server()).kept()?;
            let mut dealer = dealer.map(|connect| connect()).transpose()?;
            if let Some(dealer) = &mut dealer {
                dealer::ask_as_client(dealer, plan, &id, client.server(), &kept)?;
            }
            let mut setup = None;
            let (head, report) = match (plan, dealer, hidden) {
                (PlanRef::Sharing(plan), Some(mut dealer), Some(mut hidden)) => {
                    let keys = &mut draft;
                    let (material, report) =
                        sharing::prepare_client_dealt(&mut dealer, plan, &mut hidden, keys, observer)?;
                    (material.head(plan), report)
                }
                (PlanRef::Authenticated(plan), Some(mut dealer), _) => {
                    let (half, recorder) = authenticated::begin(&mut dealer, &kept)?;
                    let opened = client.open_setup(plan, &half)?;
                    drop(first_setup.take());
                    let links = [&mut dealer, &mut client.channel];
                    let report = authenticated::prepare(links, plan, (&half, recorder), &opened, &mut draft, observer)?;
                    let head = half.head(&opened);
                    setup = Some(half.setup);
                    (head, report)
                }
                (PlanRef::Sharing(plan), ..) => {
                    let (material, report) = sharing::prepare_client(&mut client.channel, plan, observer)?;
                    (material.head(plan), report)
                }
                (PlanRef::Authenticated(_), None, _) => unreachable!("there is a dealer"),
            };
            let model = plan.program().model().to_owned();
            let peer = client.server();
            let metadata = Metadata { id: id.clone(), program, suite, role: "client".into(), peer, model, setup };
            // The server stores first: a piece that only it holds is lost; one that only the client holds would fail later.
            client.channel.recv(1)?;
            draft.finish(&metadata, &head)?;
            Ok((id, report))
        })
    }

    /// The setup of a deal; a new one takes the server's weights behind their masks.
    fn open_setup(&mut self, plan: &authenticated::Plan, half: &DealtHalf) -> Result<Opened, Error> {
        let setups = self.setups(plan);
        let entry = match half.is_new {
            false => setups.entry(&half.setup),
            true => setups.add(&half.setup, |out| {
                out.write_all(half.setup_seed()).map_err(privet_fss::Error::from)?;
                authenticated::take_weights(&mut self.channel, plan, out)
            })?,
        };
        authenticated::open_weights(entry.open()?, plan, None)
    }

    fn setups(&self, plan: &authenticated::Plan) -> Setups {
        self.store.setups(&plan.program().hash().to_string(), &self.server())
    }

    /// Material that is ready for `plan` with this server.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub fn ready<'p>(&self, plan: impl Into<PlanRef<'p>>) -> Result<Vec<MaterialId>, Error> {
        let plan = plan.into();
        let is_ready = |piece: &Metadata| self.fits(piece, plan) && self.store.has_setup(piece);
        Ok(self.store.list()?.into_iter().filter(is_ready).map(|piece| piece.id).collect())
    }

    fn fits(&self, piece: &Metadata, plan: PlanRef<'_>) -> bool {
        piece.role == "client"
            && piece.program == plan.program().hash().to_string()
            && piece.suite == plan.options().name()
            && piece.peer == self.server()
    }

    /// Fingerprint of the server's certificate; empty over a link without certificates.
    fn server(&self) -> String {
        self.channel.peer().map(|peer| peer.to_string()).unwrap_or_default()
    }

    /// The server's hidden weights, fetched unless they are here.
    fn hidden_weights(&mut self, plan: &sharing::Plan) -> Result<HiddenWeights, Error> {
        let program = plan.program().hash().to_string();
        let path = self.store.hidden_weights(&program, &self.server());
        let known = HiddenWeights::name(&path);
        messages::send(&mut self.channel, &Request::HiddenWeights { program, known: known.clone() })?;
        let Hidden { mask } = messages::receive(&mut self.channel)?;
        if known.as_deref() != Some(mask.as_str()) {
            HiddenWeights::receive(&mut self.channel, plan, mask.as_str(), &self.store, &path)?;
        }
        HiddenWeights::open(&path, plan)
    }

    /// Runs one inference on the piece `id`, which is spent once the server was asked, whatever happens after, unless it
    /// refuses; returns the program's outputs as signed fixed-point integers.
    ///
    /// # Errors
    /// [`Error::Misuse`] if the inputs do not fit and [`Error::Store`] if the piece does not fit, is spent or missing
    /// here: the session goes on then. [`Error::Channel`] with the server's reason if the piece is spent or missing
    /// there; otherwise if the link fails.
    pub fn infer<'p>(
        &mut self,
        plan: impl Into<PlanRef<'p>>,
        id: &MaterialId,
        inputs: &[Vec<i64>],
        observer: &mut dyn Observer,
    ) -> Result<Prediction, Error> {
        let plan = plan.into();
        check_inputs(plan.program(), inputs)?;
        let held = self.hold(plan, id)?;
        self.spend(plan, id, held, inputs, observer)
    }

    /// As [`Client::infer`] on the first piece that is ready and that nobody else claims first, so that any number of
    /// processes can share a store; also tells which piece it was. `None`, and nothing was said, if no piece is left.
    ///
    /// # Errors
    /// As [`Client::infer`].
    pub fn infer_next<'p>(
        &mut self,
        plan: impl Into<PlanRef<'p>>,
        inputs: &[Vec<i64>],
        observer: &mut dyn Observer,
    ) -> Result<Option<(MaterialId, Prediction)>, Error> {
        let plan = plan.into();
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
    pub fn infer_unprepared<'p>(
        &mut self,
        plan: impl Into<PlanRef<'p>>,
        inputs: &[Vec<i64>],
        observer: &mut dyn Observer,
    ) -> Result<Prediction, Error> {
        let plan = match plan.into() {
            PlanRef::Sharing(plan) if plan.options().is_one_shot() => plan,
            _ => return Err(Error::Misuse("only a plan with linear layers online runs without material".into())),
        };
        check_inputs(plan.program(), inputs)?;
        self.guarded(|client| {
            let (program, suite) = (plan.program().hash().to_string(), plan.options().name());
            let Filling { extension, buffer } = plan.filling();
            let extension = extension.name().to_owned();
            messages::send(&mut client.channel, &Request::InferUnprepared { program, suite, extension, buffer })?;
            let Granted {} = messages::receive(&mut client.channel)?;
            let stocked = Stocked::Unprepared(plan.filling());
            sharing::infer_client_online(&mut client.channel, plan, &mut client.keys, stocked, inputs, observer)
        })
    }

    fn hold(&self, plan: PlanRef<'_>, id: &MaterialId) -> Result<Held, Error> {
        if !self.fits(&self.store.metadata(id)?, plan) {
            return Err(StoreError::Unfit { id: id.clone() }.into());
        }
        Ok(self.store.hold(id)?)
    }

    /// Holds the first piece that is still there; pieces that were made meanwhile get their turn, too.
    fn hold_next(&self, plan: PlanRef<'_>) -> Result<Option<(MaterialId, Held)>, Error> {
        let mut lost = BTreeSet::new();
        loop {
            let ready = self.ready(plan)?;
            let mut left = ready.into_iter().filter(|id| !lost.contains(id)).peekable();
            if left.peek().is_none() {
                return Ok(None);
            }
            for id in left.collect::<Vec<_>>() {
                match self.hold(plan, &id) {
                    Err(Error::Store(StoreError::Spent { .. } | StoreError::Missing { .. })) => lost.insert(id),
                    held => return held.map(|held| Some((id, held))),
                };
            }
        }
    }

    /// Asks for one inference on material that is held here, claims it once the server grants that, and runs it. A refusal
    /// leaves the piece as it was; whatever else the server says, the piece is spent.
    fn spend(
        &mut self,
        plan: PlanRef<'_>,
        id: &MaterialId,
        held: Held,
        inputs: &[Vec<i64>],
        observer: &mut dyn Observer,
    ) -> Result<Prediction, Error> {
        let asked = self.guarded(|client| client.ask_to_infer(plan.program().hash().to_string(), id));
        if let Err(error) = asked {
            if !error.is_refusal() {
                held.claim()?;
            }
            return Err(error);
        }
        let claimed = self.guarded(|_| Ok(held.claim()?))?;
        match plan {
            PlanRef::Sharing(plan) => self.guarded(|client| {
                let material = ClientMaterial::read(claimed, plan)?;
                let channel = &mut client.channel;
                if !plan.options().is_one_shot() {
                    return sharing::infer_client(channel, plan, material, inputs, observer);
                }
                let stocked = Stocked::Prepared(material.correlated);
                sharing::infer_client_online(channel, plan, &mut client.keys, stocked, inputs, observer)
            }),
            PlanRef::Authenticated(plan) => self.spend_authenticated(plan, id, claimed, inputs, observer),
        }
    }

    fn ask_to_infer(&mut self, program: String, id: &MaterialId) -> Result<(), Error> {
        messages::send(&mut self.channel, &Request::Infer { program, material: id.clone() })?;
        let Granted {} = messages::receive(&mut self.channel)?;
        Ok(())
    }

    /// An inference on authenticated values. If a check fails, the setup is given up.
    fn spend_authenticated(
        &mut self,
        plan: &authenticated::Plan,
        id: &MaterialId,
        mut claimed: File,
        inputs: &[Vec<i64>],
        observer: &mut dyn Observer,
    ) -> Result<Prediction, Error> {
        let (turns, opened, material) = self.guarded(|client| {
            let head = Head::read(&mut claimed, plan, Role::Client)?;
            let turns = client.setups(plan).entry(&head.setup);
            let opened = authenticated::open_weights(turns.open()?, plan, None)?;
            let material = Material::new(claimed, plan, &head, &opened, id.clone())?;
            Ok((turns, opened, material))
        })?;
        let result = self.guarded(|client| {
            let weights = (&opened.weights[..], &turns as &dyn Turns);
            authenticated::infer_client(&mut client.channel, plan, weights, material, inputs, observer)
        });
        if result.as_ref().is_err_and(Error::spoils_setup) {
            turns.spoil()?;
        }
        result
    }

    /// Ends the session in good order.
    ///
    /// # Errors
    /// [`Error::Channel`].
    pub fn close(mut self) -> Result<(), Error> {
        messages::send(&mut self.channel, &Request::Bye)
    }

    /// Runs `work` and, if it fails on this side, tells the server why before passing the error on.
    fn guarded<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        work(self).inspect_err(|error| {
            if !error.is_abort() {
                self.channel.abort(error.abort_reason());
            }
        })
    }
}
