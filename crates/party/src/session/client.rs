//! The client's side of a session.

use std::collections::BTreeSet;

use privet_channel::Channel;
use privet_prg::Prg;
use privet_program::Program;

use super::dealer::{self, Connect};
use super::hidden::HiddenWeights;
use super::messages::{self, Accepted, Granted, Hidden, Request};
use crate::sharing::{self, ClientMaterial, Plan};
use crate::{Error, MaterialId, Metadata, Observer, PeerMisbehaved, Report, Store, StoreError};

/// A program's outputs as signed fixed-point integers, and what they cost.
pub type Prediction = (Vec<Vec<i64>>, Report);

/// A session with a server.
pub struct Client {
    channel: Channel,
    store: Store,
    dealer: Option<Connect>,
}

impl Client {
    /// Greets the server at the other end of `channel`; material is kept in `store`.
    ///
    /// # Errors
    /// [`Error::PeerMisbehaved`] if the peer is no Privet or of another version; [`Error::Channel`].
    pub fn new(channel: Channel, store: Store) -> Result<Self, Error> {
        let mut client = Self { channel, store, dealer: None };
        client.guarded(|client| messages::greet(&mut client.channel))?;
        Ok(client)
    }

    /// The same session with a way to the dealer, who makes material for plans that want it dealt.
    #[must_use]
    pub fn with_dealer(self, connect: Connect) -> Self {
        Self { dealer: Some(connect), ..self }
    }

    /// The public half of `model`, or of the only program served; checked, but not yet compared with anything the
    /// user expects.
    ///
    /// # Errors
    /// [`Error::Channel`] if the server has no such model (its reason says so); [`Error::PeerMisbehaved`] if what it
    /// sends is not a consistent program.
    pub fn describe(&mut self, model: Option<&str>) -> Result<Vec<u8>, Error> {
        self.guarded(|client| {
            messages::send(&mut client.channel, &Request::Describe { model: model.map(str::to_owned) })?;
            let bytes = client.channel.recv_at_most(messages::MAX_PROGRAM)?;
            Program::parse(&bytes).map_err(|error| PeerMisbehaved::Program(error.to_string()))?;
            Ok(bytes)
        })
    }

    /// Makes one piece of material for `plan` and stores it durably; both sides hold their half when this returns.
    ///
    /// # Errors
    /// [`Error::Misuse`] if the plan wants a dealer and the session has none; if the server or the dealer refuses, a link
    /// fails or the store does, or the store is full. Nothing is kept then.
    pub fn prepare(&mut self, plan: &Plan, observer: &mut dyn Observer) -> Result<(MaterialId, Report), Error> {
        let dealer = match (plan.is_dealt(), &self.dealer) {
            (false, _) => None,
            (true, Some(connect)) => Some(connect.clone()),
            (true, None) => {
                return Err(Error::Misuse("this plan's material is dealt: say where the dealer is".into()));
            }
        };
        // Room for it before anybody works.
        let mut draft = self.store.draft(plan.piece_bytes().0)?;
        self.guarded(|client| {
            let hidden = dealer.as_ref().map(|_| client.hidden_weights(plan)).transpose()?;
            let mut nonce = [0; 16];
            Prg::from_os()?.fill(&mut nonce);
            let (program, suite) = (plan.program().hash().to_string(), plan.options().name());
            let extension = plan.extension().name().to_owned();
            let request = Request::Prepare { program: program.clone(), suite: suite.clone(), extension, nonce };
            messages::send(&mut client.channel, &request)?;
            let accepted: Accepted = messages::receive(&mut client.channel)?;

            let id = messages::material_id(&nonce, &accepted.nonce);
            let (material, report) = match (dealer, hidden) {
                (Some(connect), Some(mut hidden)) => {
                    let mut dealer = connect()?;
                    dealer::ask_as_client(&mut dealer, plan, &id, client.server())?;
                    sharing::prepare_client_dealt(&mut dealer, plan, &mut hidden, &mut draft, observer)?
                }
                _ => sharing::prepare_client(&mut client.channel, plan, observer)?,
            };
            let model = plan.program().model().to_owned();
            let metadata =
                Metadata { id: id.clone(), program, suite, role: "client".into(), peer: client.server(), model };
            // The server stores first: a piece that only it holds is lost; one that only the client holds would fail later.
            client.channel.recv(1)?;
            draft.finish(&metadata, &material.head(plan))?;
            Ok((id, report))
        })
    }

    /// Material that is ready for `plan` with this server.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub fn ready(&self, plan: &Plan) -> Result<Vec<MaterialId>, Error> {
        Ok(self.store.list()?.into_iter().filter(|piece| self.fits(piece, plan)).map(|piece| piece.id).collect())
    }

    fn fits(&self, piece: &Metadata, plan: &Plan) -> bool {
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
    fn hidden_weights(&mut self, plan: &Plan) -> Result<HiddenWeights, Error> {
        let program = plan.program().hash().to_string();
        let path = self.store.hidden_weights(&program, &self.server())?;
        let known = HiddenWeights::name(&path);
        messages::send(&mut self.channel, &Request::HiddenWeights { program, known: known.clone() })?;
        let Hidden { mask } = messages::receive(&mut self.channel)?;
        if known.as_deref() != Some(mask.as_str()) {
            HiddenWeights::receive(&mut self.channel, plan, mask.as_str(), self.store.partial(0)?, &path)?;
        }
        HiddenWeights::open(&path, plan)
    }

    /// Runs one inference on the piece `id`, which is spent as soon as the server is asked, whatever happens after;
    /// returns the program's outputs as signed fixed-point integers.
    ///
    /// # Errors
    /// [`Error::Misuse`] if the inputs do not fit and [`Error::Store`] if the piece does not fit, is spent or missing
    /// here: the session goes on then. [`Error::Channel`] with the server's reason if the piece is spent or missing
    /// there; otherwise if the link fails.
    pub fn infer(
        &mut self,
        plan: &Plan,
        id: &MaterialId,
        inputs: &[Vec<i64>],
        observer: &mut dyn Observer,
    ) -> Result<Prediction, Error> {
        sharing::check_inputs(plan, inputs)?;
        let material = self.claim(plan, id)?;
        self.spend(plan, id, material, inputs, observer)
    }

    /// As [`Client::infer`] on the first piece that is ready and that nobody else claims first, so that any number of
    /// processes can share a store; also tells which piece it was. `None`, and nothing was said, if no piece is left.
    ///
    /// # Errors
    /// As [`Client::infer`].
    pub fn infer_next(
        &mut self,
        plan: &Plan,
        inputs: &[Vec<i64>],
        observer: &mut dyn Observer,
    ) -> Result<Option<(MaterialId, Prediction)>, Error> {
        sharing::check_inputs(plan, inputs)?;
        let Some((id, material)) = self.claim_next(plan)? else { return Ok(None) };
        let prediction = self.spend(plan, &id, material, inputs, observer)?;
        Ok(Some((id, prediction)))
    }

    fn claim(&self, plan: &Plan, id: &MaterialId) -> Result<ClientMaterial, Error> {
        if !self.fits(&self.store.metadata(id)?, plan) {
            return Err(StoreError::Unfit { id: id.clone() }.into());
        }
        ClientMaterial::read(self.store.claim(id)?, plan)
    }

    /// Claims the first piece that is still there; pieces that were made meanwhile get their turn, too.
    fn claim_next(&self, plan: &Plan) -> Result<Option<(MaterialId, ClientMaterial)>, Error> {
        let mut lost = BTreeSet::new();
        loop {
            let ready = self.ready(plan)?;
            let mut left = ready.into_iter().filter(|id| !lost.contains(id)).peekable();
            if left.peek().is_none() {
                return Ok(None);
            }
            for id in left.collect::<Vec<_>>() {
                match self.claim(plan, &id) {
                    Err(Error::Store(StoreError::Spent { .. } | StoreError::Missing { .. })) => lost.insert(id),
                    claimed => return claimed.map(|material| Some((id, material))),
                };
            }
        }
    }

    /// Runs one inference on material that has been claimed here.
    fn spend(
        &mut self,
        plan: &Plan,
        id: &MaterialId,
        material: ClientMaterial,
        inputs: &[Vec<i64>],
        observer: &mut dyn Observer,
    ) -> Result<Prediction, Error> {
        self.guarded(|client| {
            let request = Request::Infer { program: plan.program().hash().to_string(), material: id.clone() };
            messages::send(&mut client.channel, &request)?;
            let Granted {} = messages::receive(&mut client.channel)?;
            sharing::infer_client(&mut client.channel, plan, material, inputs, observer)
        })
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
