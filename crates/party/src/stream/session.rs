//! Sessions: greeting as in the other suites, then `describe`, `prepare` and `infer` in any number.

use privet_channel::{AbortReason, Channel};
use privet_paillier::{KeySize, PublicKey};
use privet_program::{Program, Weights};
use serde::{Deserialize, Serialize};

use super::{DataProvider, ModelProvider, Plan};
use crate::report::Recorder;
use crate::session::messages;
use crate::{Error, Observer, PeerMisbehaved, Phase, Report};

/// What a client may ask for.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case")]
enum Request {
    /// The public half of the program served.
    Stream,
    /// Noise for an inference under a key, which follows.
    Encrypt { program: String, key_bits: usize },
    /// An inference under the key of the last preparation.
    Infer { program: String },
    /// To end the session.
    Bye,
}

/// A request that was served, with what it cost.
#[derive(Debug)]
pub enum Event {
    /// The public half was sent.
    Described,
    /// Noise for an inference is ready.
    Prepared(Report),
    /// The client has its outputs.
    Inferred(Report),
}

/// The data provider in a session with a server.
pub struct Client {
    channel: Channel,
    provider: Option<DataProvider>,
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

    /// The public half of the program served; checked, but not compared with anything that the user expects.
    ///
    /// # Errors
    /// [`Error::PeerMisbehaved`] if what comes is not a consistent program; [`Error::Channel`].
    pub fn describe(&mut self) -> Result<Vec<u8>, Error> {
        self.guarded(|client| {
            messages::send(&mut client.channel, &Request::Stream)?;
            let bytes = client.channel.recv_at_most(messages::MAX_PROGRAM)?;
            Program::parse(&bytes).map_err(|error| PeerMisbehaved::Program(error.to_string()))?;
            Ok(bytes)
        })
    }

    /// Makes a key and the noise for one inference, at both sides at the same time.
    ///
    /// # Errors
    /// If the server refuses or the link fails.
    pub fn prepare(&mut self, plan: &Plan, observer: &mut dyn Observer) -> Result<Report, Error> {
        self.guarded(|client| {
            observer.progress(Phase::Offline, 0, 1, "key and noise");
            let mut recorder = Recorder::start(Phase::Offline, &client.channel);
            let provider = recorder.layer("key", "generate", &mut client.channel, |channel| {
                let provider = DataProvider::new(plan)?;
                let program = plan.program().hash().to_string();
                messages::send(channel, &Request::Encrypt { program, key_bits: plan.key_size().bits() })?;
                channel.send(&provider.public_key().to_bytes())?;
                channel.flush()?;
                Ok::<_, Error>(provider)
            })?;
            let provider = client.provider.insert(provider);
            recorder.layer("noise", "draw", &mut client.channel, |channel| {
                provider.prepare(plan)?;
                channel.recv(1).map_err(Error::from)
            })?;
            observer.progress(Phase::Offline, 1, 1, "");
            Ok(recorder.finish(&client.channel))
        })
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
        crate::check_inputs(plan.program(), inputs)?;
        self.guarded(|client| {
            let provider =
                client.provider.as_mut().ok_or_else(|| Error::Misuse("prepare before an inference".into()))?;
            messages::send(&mut client.channel, &Request::Infer { program: plan.program().hash().to_string() })?;
            provider.infer(&mut client.channel, plan, inputs, observer)
        })
    }

    /// Says goodbye.
    ///
    /// # Errors
    /// [`Error::Channel`].
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
}

impl Server {
    /// Serves one program, given both halves.
    ///
    /// # Errors
    /// [`Error::Program`] if they are not usable or do not belong together.
    pub fn new(public: Vec<u8>, weights: &[u8]) -> Result<Self, Error> {
        let program = Program::parse(&public)?;
        let weights = Weights::parse(weights, &program)?;
        Ok(Self { public, program, weights })
    }

    /// The program served.
    pub fn program(&self) -> &Program {
        &self.program
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
        let result = self.session(&mut channel, observer, on_event);
        result.inspect_err(|error| tell(&mut channel, error))
    }

    fn session(
        &self,
        channel: &mut Channel,
        observer: &mut dyn Observer,
        on_event: &mut dyn FnMut(Event),
    ) -> Result<(), Error> {
        messages::greet(channel)?;
        let mut prepared: Option<(Plan, ModelProvider)> = None;
        loop {
            match messages::receive(channel)? {
                Request::Stream => {
                    channel.send(&self.public)?;
                    channel.flush()?;
                    on_event(Event::Described);
                }
                Request::Encrypt { program, key_bits } => {
                    let plan = self.plan(&program, key_bits)?;
                    let (provider, report) = prepare(channel, &plan)?;
                    prepared = Some((plan, provider));
                    on_event(Event::Prepared(report));
                }
                Request::Infer { program } => {
                    self.check_hash(&program)?;
                    let (plan, provider) = prepared.as_mut().ok_or_else(|| request("nothing was prepared"))?;
                    on_event(Event::Inferred(provider.infer(channel, plan, &self.weights, observer)?));
                }
                Request::Bye => return Ok(()),
            }
        }
    }

    fn plan(&self, program: &str, key_bits: usize) -> Result<Plan, Error> {
        self.check_hash(program)?;
        let sizes = [KeySize::Bits2048, KeySize::Bits3072];
        let size = sizes.into_iter().find(|size| size.bits() == key_bits);
        Plan::new(self.program.clone(), size.ok_or_else(|| request("keys have 2048 or 3072 bits"))?)
    }

    fn check_hash(&self, program: &str) -> Result<(), Error> {
        match program == self.program.hash().to_string() {
            true => Ok(()),
            false => Err(request("this server does not serve the program with that hash")),
        }
    }
}

/// The server's part of a preparation: reads the key and makes noise.
fn prepare(channel: &mut Channel, plan: &Plan) -> Result<(ModelProvider, Report), Error> {
    let mut recorder = Recorder::start(Phase::Offline, channel);
    let provider = recorder.layer("noise", "draw", channel, |channel| {
        let bytes = channel.recv(plan.key_size().public_key_bytes())?;
        let mut provider = ModelProvider::new(PublicKey::from_bytes(plan.key_size(), &bytes)?)?;
        provider.prepare(plan)?;
        channel.send(&[1])?;
        channel.flush()?;
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
        error => channel.abort(error.abort_reason()),
    }
}
