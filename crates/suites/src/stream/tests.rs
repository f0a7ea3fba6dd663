//! What a curious party sees, and attacks on it.

mod orders;
mod requests;
mod wire;

use std::path::Path;
use std::thread;

use privet_channel::Channel;
use privet_channel::record::{self, Direction};
use privet_paillier::{Ciphertexts, KeySize, PublicKey};
use privet_prg::{Prg, Seed};
use privet_program::{Program, Weights};

use super::bfv::{self, Transformed};
use super::{Cipher, DataProvider, ModelProvider, Plan};
use crate::report::Recorder;
use crate::{Phase, Silent};

const PAILLIER: Cipher = Cipher::Paillier(KeySize::Bits2048);

const BOTH: [Cipher; 2] = [PAILLIER, Cipher::Bfv];

/// A program with its weights, and inputs for it.
struct Fixture {
    plan: Plan,
    weights: Weights,
    inputs: Vec<Vec<i64>>,
}

impl Fixture {
    /// Convolutions, a sum, a ReLU of 256 elements and a max pooling of 64 windows.
    fn residual(cipher: Cipher) -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/residual");
        let read = |file| std::fs::read(folder.join(file)).expect("a fixture");
        let program = Program::parse(&read("program.json")).expect("a program");
        let weights = Weights::parse(&read("weights.safetensors"), &program).expect("its weights");
        let case: serde_json::Value = serde_json::from_slice(&read("case.json")).expect("a case");
        let inputs = serde_json::from_value(case["inputs"].clone()).expect("inputs");
        Self { plan: Plan::new(program, cipher).expect("a plan"), weights, inputs }
    }
}

/// What one request showed.
#[derive(Default)]
struct Seen {
    /// For each exchange and output what the client opened, in the order in which it came.
    values: Vec<Vec<i64>>,
    /// What client and server sent for the preparation, message by message.
    offline: [Vec<Vec<u8>>; 2],
    /// What client and server sent for the inference.
    online: [Vec<Vec<u8>>; 2],
}

/// The same request some times over, with one key. With `order` the server's orders are made from that seed, for each
/// request anew: what an implementation with fixed orders would do.
fn repeat(fixture: &Fixture, times: usize, order: Option<u8>) -> Vec<Seen> {
    let (mut near, mut far, transcript) = record::pair();
    let now = || {
        let transcript = transcript.lock().expect("no thread panicked");
        [Direction::FirstToSecond, Direction::SecondToFirst]
            .map(|side| transcript.payloads(side).map(<[u8]>::to_vec).collect::<Vec<_>>())
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut server = Server::new(&mut far, fixture);
            for _ in 0..times {
                server.request(&mut far, fixture, order);
            }
        });
        let mut client = Client::new(&mut near, fixture);
        (0..times)
            .map(|_| {
                let start = now();
                client.prepare(&mut near, fixture);
                let middle = now();
                let masks = client.masks();
                client.infer(&mut near, fixture);
                let (offline, online) = (since(middle.clone(), &start), since(now(), &middle));
                Seen { values: client.open(fixture, masks, &online[1]), offline, online }
            })
            .collect()
    })
}

fn since(mut later: [Vec<Vec<u8>>; 2], earlier: &[Vec<Vec<u8>>; 2]) -> [Vec<Vec<u8>>; 2] {
    later.iter_mut().zip(earlier).for_each(|(later, earlier)| drop(later.drain(..earlier.len())));
    later
}

enum Client {
    Paillier(Box<DataProvider>),
    Bfv(Box<bfv::DataProvider>),
}

impl Client {
    fn new(channel: &mut Channel, fixture: &Fixture) -> Self {
        match fixture.plan.cipher() {
            Cipher::Paillier(_) => {
                let provider = DataProvider::new(&fixture.plan).expect("a key");
                channel.send(&provider.public_key().to_bytes()).expect("a link");
                channel.flush().expect("a link");
                Self::Paillier(Box::new(provider))
            }
            Cipher::Bfv => {
                let layout = fixture.plan.layout().expect("a layout");
                Self::Bfv(Box::new(bfv::DataProvider::new(channel, layout).expect("keys")))
            }
        }
    }

    fn prepare(&mut self, channel: &mut Channel, fixture: &Fixture) {
        match self {
            Self::Paillier(provider) => provider.prepare(&fixture.plan).expect("noise"),
            Self::Bfv(provider) => {
                let mut recorder = Recorder::start(Phase::Offline, channel);
                let layout = fixture.plan.layout().expect("a layout");
                provider.prepare(channel, &fixture.plan, layout, &mut recorder).expect("masks");
            }
        }
    }

    /// The masks of what will come, of each exchange and output.
    fn masks(&self) -> Vec<Vec<u64>> {
        match self {
            Self::Paillier(_) => Vec::new(),
            Self::Bfv(provider) => {
                let material = provider.material.as_ref().expect("it was prepared");
                material
                    .exchanges
                    .iter()
                    .map(|[received, _]| received.clone())
                    .filter(|mask| !mask.is_empty())
                    .collect()
            }
        }
    }

    fn infer(&mut self, channel: &mut Channel, fixture: &Fixture) {
        let (plan, inputs) = (&fixture.plan, &fixture.inputs);
        match self {
            Self::Paillier(provider) => provider.infer(channel, plan, inputs, &mut Silent).map(drop),
            Self::Bfv(provider) => {
                let layout = plan.layout().expect("a layout");
                provider.infer(channel, plan, layout, inputs, &mut Silent).map(drop)
            }
        }
        .expect("outputs");
    }

    /// What the server's messages hold.
    fn open(&self, fixture: &Fixture, masks: Vec<Vec<u64>>, messages: &[Vec<u8>]) -> Vec<Vec<i64>> {
        match self {
            Self::Paillier(provider) => {
                let size = provider.public_key().size().ciphertext_bytes();
                let read = |bytes: &Vec<u8>| {
                    let read = Ciphertexts::from_bytes(provider.public_key(), bytes.len() / size, bytes);
                    let plain = provider.key.decrypt(&read.expect("ciphertexts")).expect("plaintexts");
                    plain.iter().map(|value| value.to_i64().expect("a small value")).collect()
                };
                messages.iter().map(read).collect()
            }
            Self::Bfv(_) => {
                let ring = fixture.plan.layout().expect("a layout").ring();
                let open = |(mask, bytes): (&Vec<u64>, &Vec<u8>)| {
                    let sums = ring.add(mask, &ring.unpack(bytes, mask.len()).expect("values"));
                    sums.into_iter().map(|sum| ring.signed(sum)).collect()
                };
                masks.iter().zip(messages).map(open).collect()
            }
        }
    }
}

enum Server {
    Paillier(Box<ModelProvider>),
    Bfv(Box<bfv::ModelProvider>, Transformed),
}

impl Server {
    fn new(channel: &mut Channel, fixture: &Fixture) -> Self {
        match fixture.plan.cipher() {
            Cipher::Paillier(size) => {
                let bytes = channel.recv(size.public_key_bytes()).expect("a key");
                let key = PublicKey::from_bytes(size, &bytes).expect("a key");
                Self::Paillier(Box::new(ModelProvider::new(key).expect("a table")))
            }
            Cipher::Bfv => {
                let layout = fixture.plan.layout().expect("a layout");
                let provider = bfv::ModelProvider::new(channel, layout).expect("keys");
                Self::Bfv(Box::new(provider), Transformed::default())
            }
        }
    }

    fn request(&mut self, channel: &mut Channel, fixture: &Fixture, order: Option<u8>) {
        let Fixture { plan, weights, .. } = fixture;
        let fixed = order.map(|byte| Prg::from_seed(&Seed::from_bytes([byte; 16])));
        match self {
            Self::Paillier(provider) => {
                if let Some(fixed) = fixed {
                    provider.prg = fixed;
                }
                provider.prepare(plan).expect("noise");
                provider.infer(channel, plan, weights, &mut Silent).expect("an inference");
            }
            Self::Bfv(provider, transformed) => {
                if let Some(fixed) = fixed {
                    provider.prg = fixed;
                }
                let layout = plan.layout().expect("a layout");
                let mut recorder = Recorder::start(Phase::Offline, channel);
                let model = (weights, &*transformed);
                provider.prepare(channel, plan, layout, model, &mut recorder).expect("masks");
                provider.infer(channel, plan, layout, weights, &mut Silent).expect("an inference");
            }
        }
    }
}
