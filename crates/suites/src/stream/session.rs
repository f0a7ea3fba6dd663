//! Sessions: greeting as in the other suites, then `describe`, `prepare` and `infer` in any number.

use privet_channel::{AbortReason, Channel, MOST_UNREAD};
use privet_paillier::PublicKey;
use privet_program::{Program, Weights};
use serde::{Deserialize, Serialize};

use super::bfv::{self, DataMaterial, ModelMaterial, Transformed};
use super::infer::check_inputs;
use super::{Cipher, Config, DataProvider, ModelProvider, Plan, transport};
use crate::config::Config as _;
use crate::policy::{Admission, Caller, Guard, Refused};
use crate::report::Recorder;
use crate::session::{Gate, Intent, messages};
use crate::{Error, Observer, PeerMisbehaved, Phase, Report};

/// What a client may ask for.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case")]
enum Request {
    /// The public half of the program served.
    Stream,
    /// Noise for an inference under a key, which follows.
    Encrypt { program: String, key_bits: usize, samples: usize },
    /// Masks for an inference over BFV, to be taken away as an entry if it has a name; with the first of a session the key
    /// and transfers.
    Mask {
        program: String,
        first: bool,
        #[serde(rename = "piece", default, skip_serializing_if = "Option::is_none")]
        entry: Option<String>,
    },
    /// An inference after the last preparation.
    Infer { program: String },
    /// To end the session.
    Bye,
}

impl Request {
    /// To prepare an inference; over BFV with keys if it is a session's `first`, and as an entry if it has a name.
    fn preparation(plan: &Plan, first: bool, entry: Option<String>) -> Self {
        let program = plan.program().hash().to_string();
        match plan.cipher() {
            Cipher::Paillier(size) => Self::Encrypt { program, key_bits: size.bits(), samples: plan.samples().count() },
            Cipher::Bfv => Self::Mask { program, first, entry },
        }
    }
}

/// Bytes of the request for a session's first preparation.
pub(super) fn request_bytes(plan: &Plan) -> usize {
    messages::bytes(&Request::preparation(plan, true, None))
}

/// A request that was served, with what it cost.
#[derive(Debug)]
pub enum Event {
    /// The public half was sent.
    Described,
    /// Noise for an inference is ready.
    Prepared(Report),
    /// Masks for an inference that comes by another way: the client's name for them, and the server's part.
    Stocked(String, Box<ModelMaterial>, Report),
    /// The client has its outputs.
    Inferred(Report),
}

/// The data provider in a session with a server.
pub struct Client {
    channel: Channel,
    provider: Option<DataSide>,
}

/// The client's side of either cipher.
enum DataSide {
    Paillier(Box<DataProvider>),
    /// With the hash of the program that it is set up for.
    Bfv(Box<bfv::DataProvider>, String),
}

impl Client {
    /// Greets the server at the other end.
    ///
    /// # Errors
    /// [`Error::PeerMisbehaved`] if the peer is no Privet or of another version; [`Error::Channel`].
    pub fn new(channel: Channel) -> Result<Self, Error> {
        let mut client = Self { channel, provider: None };
        client.guarded(|client| messages::greet(&mut client.channel))?;
        Ok(client)
    }

    /// The public half of the program served. If the caller expects the program with a hash, nothing else is even read.
    ///
    /// # Errors
    /// [`Error::PeerMisbehaved`] if what comes is another program than the expected one, or not consistent;
    /// [`Error::Channel`].
    pub fn describe(&mut self, expected: Option<&str>) -> Result<Vec<u8>, Error> {
        self.guarded(|client| messages::ask_program(&mut client.channel, &Request::Stream, expected))
    }

    /// Makes a key and the noise for one inference, or masks over BFV, at both sides at the same time. Over BFV, later
    /// preparations for the same program take the keys of the first, until these have served as many as they may.
    ///
    /// # Errors
    /// If the server refuses or the link fails.
    pub fn prepare(&mut self, plan: &Plan, observer: &mut dyn Observer) -> Result<Report, Error> {
        observer.progress(Phase::Offline, 0, 1, "key and noise");
        let report = self.guarded(|client| match plan.cipher() {
            Cipher::Paillier(_) => client.encrypt(plan),
            Cipher::Bfv => client.mask(plan, None),
        })?;
        observer.progress(Phase::Offline, 1, 1, "");
        Ok(report)
    }

    fn encrypt(&mut self, plan: &Plan) -> Result<Report, Error> {
        let mut recorder = Recorder::start(Phase::Offline, &self.channel);
        let mut provider = recorder.layer("key", "generate", &mut self.channel, |channel| {
            let provider = DataProvider::new(plan)?;
            messages::send(channel, &Request::preparation(plan, true, None))?;
            channel.send(&provider.public_key().to_bytes())?;
            channel.flush()?;
            Ok::<_, Error>(provider)
        })?;
        recorder.layer("noise", "draw", &mut self.channel, |channel| {
            provider.prepare(plan)?;
            transport::await_acknowledgement(channel)
        })?;
        self.provider = Some(DataSide::Paillier(Box::new(provider)));
        Ok(recorder.finish(&self.channel))
    }

    /// Makes masks over BFV for a request that goes another way, under a name that tells the server which.
    ///
    /// # Errors
    /// As [`Client::prepare`]; [`Error::Misuse`] for a plan with Paillier.
    pub fn entry(&mut self, plan: &Plan, name: &str) -> Result<(DataMaterial, Report), Error> {
        self.guarded(|client| {
            let report = client.mask(plan, Some(name.into()))?;
            match &mut client.provider {
                Some(DataSide::Bfv(provider, _)) => Ok((provider.entry(plan)?, report)),
                _ => Err(Error::Misuse("material is prepared over BFV".into())),
            }
        })
    }

    fn mask(&mut self, plan: &Plan, entry: Option<String>) -> Result<Report, Error> {
        let (layout, program) = (plan.layout()?, plan.program().hash().to_string());
        let mut recorder = Recorder::start(Phase::Offline, &self.channel);
        let known = match self.provider.take() {
            Some(DataSide::Bfv(provider, of)) if of == program && !provider.is_worn_out() => Some(provider),
            _ => None,
        };
        let first = known.is_none();
        messages::send(&mut self.channel, &Request::preparation(plan, first, entry))?;
        let mut provider = match known {
            Some(provider) => provider,
            None => recorder.layer("keys", "bfv", &mut self.channel, |channel| {
                Ok::<_, Error>(Box::new(bfv::DataProvider::new(channel, layout)?))
            })?,
        };
        provider.prepare(&mut self.channel, plan, layout, &mut recorder)?;
        self.provider = Some(DataSide::Bfv(provider, program));
        Ok(recorder.finish(&self.channel))
    }

    /// Gives `inputs` and learns the outputs, as [`DataProvider::infer`].
    ///
    /// # Errors
    /// As there; [`Error::Misuse`] without a preparation.
    pub fn infer(
        &mut self,
        plan: &Plan,
        inputs: &[Vec<i64>],
        observer: &mut dyn Observer,
    ) -> Result<(Vec<Vec<i64>>, Report), Error> {
        check_inputs(plan, inputs)?;
        self.guarded(|client| {
            let provider =
                client.provider.as_mut().ok_or_else(|| Error::Misuse("prepare before an inference".into()))?;
            let (program, channel) = (plan.program().hash().to_string(), &mut client.channel);
            messages::send(channel, &Request::Infer { program })?;
            match provider {
                DataSide::Paillier(provider) => provider.infer(channel, plan, inputs, observer),
                DataSide::Bfv(provider, _) => provider.infer(channel, plan, plan.layout()?, inputs, observer),
            }
        })
    }

    /// Says goodbye.
    pub fn close(mut self) -> Result<(), Error> {
        messages::send(&mut self.channel, &Request::Bye)
    }

    /// Runs a request; if it fails, tells the server why.
    fn guarded<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        let result = work(self);
        result.inspect_err(|error| tell(&mut self.channel, error))
    }
}

/// The model provider; one serves any number of sessions, also at the same time.
pub struct Server {
    public: Vec<u8>,
    program: Program,
    weights: Weights,
    transformed: Transformed,
    guard: Guard,
}

/// The server's side of either cipher.
enum ModelSide {
    Paillier(Box<ModelProvider>),
    Bfv(Box<bfv::ModelProvider>),
}

impl Server {
    /// Serves one program, given both halves; by the default [policy](crate::policy), which does not accept this suite.
    ///
    /// # Errors
    /// [`Error::Program`] if they are not usable or do not belong together.
    pub fn new(public: Vec<u8>, weights: &[u8]) -> Result<Self, Error> {
        let program = Program::parse(&public)?;
        let weights = Weights::parse(weights, &program)?;
        Ok(Self { public, program, weights, transformed: Transformed::default(), guard: Guard::default() })
    }

    /// The same server, which holds clients to `guard`.
    #[must_use]
    pub fn under(self, guard: Guard) -> Self {
        Self { guard, ..self }
    }

    /// The program served.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Serves one client until it says goodbye, in whatever way it asks for, or in `only` one: then any other cipher, keys of
    /// another size, and samples that share plaintexts where none do, are refused. `on_event` is called for each finished
    /// request. A `gate` must admit each preparation and each inference before anything is done for it.
    ///
    /// # Errors
    /// Whatever ended the session early; the client was told why, if the link still carried it. [`Error::Refused`] if the gate
    /// does not admit a request.
    pub fn serve(
        &self,
        only: Option<Config>,
        gate: Option<&Gate>,
        mut channel: Channel,
        observer: &mut dyn Observer,
        on_event: &mut dyn FnMut(Event),
    ) -> Result<(), Error> {
        let result = self.session(only, gate, &mut channel, observer, on_event);
        result.inspect_err(|error| tell(&mut channel, error))
    }

    fn session(
        &self,
        only: Option<Config>,
        gate: Option<&Gate>,
        channel: &mut Channel,
        observer: &mut dyn Observer,
        on_event: &mut dyn FnMut(Event),
    ) -> Result<(), Error> {
        messages::greet(channel)?;
        let caller = Caller::of(channel);
        let admit = |intent: Intent<'_>| {
            gate.map_or(Ok(()), |gate| gate(&caller.fingerprint, intent)).map_err(Refused::Outside)
        };
        // Whatever a client asks here reveals values to it in the end.
        self.guard.check(&caller, &Config::default().mode())?;
        let mut prepared: Option<(Plan, ModelSide)> = None;
        loop {
            channel.set_unread_limit(messages::UNREAD_REQUESTS);
            let next = messages::receive(channel)?;
            if !matches!(next, Request::Stream) {
                channel.set_unread_limit(MOST_UNREAD);
            }
            match next {
                Request::Stream => {
                    channel.send(&self.public)?;
                    channel.flush()?;
                    on_event(Event::Described);
                }
                Request::Encrypt { program, key_bits, samples } => {
                    admit(Intent::Prepare { program: &program, suite: Config::SUITE })?;
                    let cipher = Cipher::paillier(key_bits).ok_or_else(|| request("keys have 2048 or 3072 bits"))?;
                    check_choices(only, cipher, samples)?;
                    let plan = self.plan(&program, cipher)?;
                    let plan = plan.packed(samples).map_err(|error| request(&error.to_string()))?;
                    let (provider, report) = encrypt(channel, &plan)?;
                    prepared = Some((plan, ModelSide::Paillier(Box::new(provider))));
                    on_event(Event::Prepared(report));
                }
                Request::Mask { program, first, entry } => {
                    admit(Intent::Prepare { program: &program, suite: Config::SUITE })?;
                    check_choices(only, Cipher::Bfv, 1)?;
                    let known = if first { None } else { prepared.take() };
                    let (plan, mut provider, report) = self.mask(channel, &program, known, first)?;
                    on_event(match entry {
                        Some(name) => Event::Stocked(name, Box::new(provider.entry(&plan)?), report),
                        None => Event::Prepared(report),
                    });
                    prepared = Some((plan, ModelSide::Bfv(provider)));
                }
                Request::Infer { program } => {
                    self.check_hash(&program)?;
                    admit(Intent::Infer { program: &program, suite: Some(Config::SUITE), material: None })?;
                    let (plan, provider) = prepared.as_mut().ok_or_else(|| request("nothing was prepared"))?;
                    let samples = u32::try_from(plan.samples().count()).unwrap_or(u32::MAX);
                    self.guard.count(&caller, samples.saturating_mul(self.program.batch()))?;
                    on_event(Event::Inferred(match provider {
                        ModelSide::Paillier(provider) => provider.infer(channel, plan, &self.weights, observer)?,
                        ModelSide::Bfv(provider) => {
                            provider.infer(channel, plan, plan.layout()?, &self.weights, observer)?
                        }
                    }));
                }
                Request::Bye => return Ok(()),
            }
        }
    }

    /// The server's part of a preparation over BFV, with the keys of `known` unless it is a session's first.
    fn mask(
        &self,
        channel: &mut Channel,
        program: &str,
        known: Option<(Plan, ModelSide)>,
        first: bool,
    ) -> Result<(Plan, Box<bfv::ModelProvider>, Report), Error> {
        let mut recorder = Recorder::start(Phase::Offline, channel);
        let (plan, mut provider) = match known {
            None if first => {
                let plan = self.plan(program, Cipher::Bfv)?;
                let provider = recorder.layer("keys", "bfv", channel, |channel| {
                    Ok::<_, Error>(Box::new(bfv::ModelProvider::new(channel, plan.layout()?)?))
                })?;
                (plan, provider)
            }
            Some((plan, ModelSide::Bfv(provider))) => {
                self.check_hash(program)?;
                (plan, provider)
            }
            _ => return Err(request("no keys were made in this session")),
        };
        provider.prepare(channel, &plan, plan.layout()?, (&self.weights, &self.transformed), &mut recorder)?;
        Ok((plan, provider, recorder.finish(channel)))
    }

    fn plan(&self, program: &str, cipher: Cipher) -> Result<Plan, Error> {
        self.check_hash(program)?;
        Plan::new(self.program.clone(), cipher)
    }

    fn check_hash(&self, program: &str) -> Result<(), Error> {
        match program == self.program.hash().to_string() {
            true => Ok(()),
            false => Err(request("this server does not serve the program with that hash")),
        }
    }
}

/// Refuses a preparation that is not of the `only` way in which this session is served.
fn check_choices(only: Option<Config>, cipher: Cipher, samples: usize) -> Result<(), Error> {
    let Some(only) = only else { return Ok(()) };
    if only.cipher != cipher {
        return Err(request(&format!("this server takes {} alone, not {cipher}", only.cipher)));
    }
    // Whoever packs samples learns which of their values belong together, and has several answers for one inference.
    match only.packed || samples == 1 {
        true => Ok(()),
        false => Err(request("this server packs no samples: ask for one at a time")),
    }
}

/// The server's part of a preparation for Paillier: reads the key and makes noise.
fn encrypt(channel: &mut Channel, plan: &Plan) -> Result<(ModelProvider, Report), Error> {
    let mut recorder = Recorder::start(Phase::Offline, channel);
    let provider = recorder.layer("noise", "draw", channel, |channel| {
        let size = plan.key_size()?;
        let bytes = channel.recv(size.public_key_bytes())?;
        let mut provider = ModelProvider::new(PublicKey::from_bytes(size, &bytes)?)?;
        provider.prepare(plan)?;
        transport::acknowledge(channel)?;
        Ok::<_, Error>(provider)
    })?;
    Ok((provider, recorder.finish(channel)))
}

fn request(text: &str) -> Error {
    PeerMisbehaved::Request(text.into()).into()
}

/// Says why this side hangs up, unless the peer did.
fn tell(channel: &mut Channel, error: &Error) {
    if error.is_abort() {
        return;
    }
    match error {
        Error::PeerMisbehaved(PeerMisbehaved::Request(text)) => channel.abort_with(AbortReason::BadRequest, text),
        Error::Refused(Refused::Outside(_) | Refused::Exhausted { .. }) => {
            channel.abort_with(error.abort_reason(), &error.to_string());
        }
        error => channel.abort(error.abort_reason()),
    }
}
