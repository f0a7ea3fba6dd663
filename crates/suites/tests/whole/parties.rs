//! The programs of `fixtures/`, and both parties of a session in one process.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, LazyLock};
use std::thread;
use std::time::Duration;

use privet_channel::{Channel, pair};
use privet_program::{Program, Weights};
use privet_suites::policy::Policy;
use privet_suites::session::{Catalog, Client, Connect, Dealer, Dealt, Event, Server};
use privet_suites::sharing::{self, Material, Model, Options, Plan, Truncation};
use privet_suites::{Error, MaterialId, Silent, Store, registry};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use tempfile::TempDir;

/// Bounds every wait in sessions that are to succeed.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Inputs, and what the fixed-point executor makes of them.
#[derive(Clone, Deserialize)]
pub struct Case {
    /// Fixed-point integers, one vector for each input.
    pub inputs: Vec<Vec<i64>>,
    outputs: Vec<Vec<i64>>,
    /// How far each output may be off; none for an index, which must be right.
    bounds: Vec<Option<u64>>,
    /// The same if truncations are exact.
    exact_bounds: Vec<Option<u64>>,
}

impl Case {
    /// What the executor gives.
    pub fn expected(&self) -> &[Vec<i64>] {
        &self.outputs
    }

    /// Panics unless `outputs` are right for these options.
    pub fn check(&self, outputs: &[Vec<i64>], options: Options) {
        self.check_with(outputs, options.truncation);
    }

    /// The same for any suite with these truncations.
    pub fn check_with(&self, outputs: &[Vec<i64>], truncation: Truncation) {
        let errors = self.errors(outputs, truncation);
        assert!(errors.iter().all(|(error, bound)| error <= bound), "{outputs:?}: errors and bounds {errors:?}");
    }

    /// How far each output is off, and how far it may be.
    pub fn errors(&self, outputs: &[Vec<i64>], truncation: Truncation) -> Vec<(u64, u64)> {
        let bounds = match truncation {
            Truncation::OneBit => &self.bounds,
            Truncation::Exact => &self.exact_bounds,
        };
        assert_eq!(outputs.len(), self.outputs.len());
        let error = |(actual, expected): (&Vec<i64>, &Vec<i64>)| {
            assert_eq!(actual.len(), expected.len());
            actual.iter().zip(expected).map(|(a, b)| a.abs_diff(*b)).max().unwrap_or(0)
        };
        outputs.iter().zip(&self.outputs).map(error).zip(bounds.iter().map(|bound| bound.unwrap_or(0))).collect()
    }
}

/// A compiled program with its case.
pub struct Fixture {
    pub public: Vec<u8>,
    pub weights: Vec<u8>,
    pub case: Case,
}

impl Fixture {
    fn read(name: &str) -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name);
        let read = |file| std::fs::read(folder.join(file)).expect("a fixture");
        let case = serde_json::from_slice(&read("case.json")).expect("a case");
        Self { public: read("program.json"), weights: read("weights.safetensors"), case }
    }

    /// The same program with other weights, and with the commitment to these: what an honest server compiled from another
    /// model. `change` gets each private number with its place among all.
    pub fn with_weights(&self, change: impl Fn(usize, i64) -> i64) -> Self {
        let mut weights = self.weights.clone();
        let header = u64::from_le_bytes(*weights.first_chunk().expect("a header")) as usize;
        // The salt comes last.
        let (numbers, _) = weights[8 + header..].as_chunks_mut::<8>();
        let private = numbers.len() - 4;
        for (place, number) in numbers[..private].iter_mut().enumerate() {
            *number = change(place, i64::from_le_bytes(*number)).to_le_bytes();
        }
        let hash = |bytes: &[u8]| Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let public = String::from_utf8(self.public.clone()).expect("JSON");
        let public = public.replace(&hash(&self.weights), &hash(&weights)).into_bytes();
        let case = Case { outputs: Vec::new(), ..self.case.clone() };
        Self { public, weights, case }
    }

    pub fn program(&self) -> Program {
        Program::parse(&self.public).expect("a program")
    }

    pub fn plan(&self, options: impl Into<Options>) -> Plan {
        Plan::new(self.program(), options).expect("a plan")
    }

    pub fn model(&self, plan: &Plan) -> Model {
        let weights = Weights::parse(&self.weights, plan.program()).expect("its weights");
        Model::new(weights, plan.standard_workspaces())
    }
}

/// Strided and padded convolutions, a residual sum, ReLU, both poolings and a dense layer.
pub static RESIDUAL: LazyLock<Fixture> = LazyLock::new(|| Fixture::read("residual"));

/// A dense layer and an argmax.
pub static CHOICE: LazyLock<Fixture> = LazyLock::new(|| Fixture::read("choice"));

/// Dense layers around a GELU, and a sigmoid; for exact truncations.
pub static SMOOTH: LazyLock<Fixture> = LazyLock::new(|| Fixture::read("smooth"));

/// Products of two private tensors: attention without a softmax, and a norm without a root; for exact truncations.
pub static PRODUCTS: LazyLock<Fixture> = LazyLock::new(|| Fixture::read("products"));

/// An input times itself, turned: one product and nothing else.
pub static GRAM: LazyLock<Fixture> = LazyLock::new(|| Fixture::read("gram"));

/// As `RESIDUAL`, in a ring that constant inputs within the bound overflow.
pub static OVERFLOW: LazyLock<Fixture> = LazyLock::new(|| Fixture::read("overflow"));

/// The head of a stored entry.
pub fn head(material: &Material, plan: &Plan) -> Vec<u8> {
    let mut bytes = Vec::new();
    material.write(plan, &mut bytes).expect("a vector takes all bytes");
    bytes
}

/// All programs, transformed once for all tests.
static CATALOG: LazyLock<Catalog> = LazyLock::new(|| {
    let mut catalog = Catalog::default();
    for fixture in [&*RESIDUAL, &*CHOICE, &*SMOOTH, &*OVERFLOW, &*PRODUCTS, &*GRAM] {
        catalog.add(sharing::load(fixture.public.clone(), &fixture.weights).expect("a served program"));
    }
    catalog
});

/// All programs.
pub fn catalog() -> Catalog {
    CATALOG.clone()
}

/// A directory for a store, removed at the end.
pub struct StoreFolder(TempDir);

impl StoreFolder {
    pub fn new() -> Self {
        Self(tempfile::tempdir().expect("a directory"))
    }

    /// A folder with a copy of what lies in this one now: a backup, or the state to which an attacker rolls back.
    pub fn copy(&self) -> Self {
        let copy = Self::new();
        for folder in ["ready", "spent", "base"] {
            let Ok(files) = std::fs::read_dir(self.path().join(folder)) else { continue };
            std::fs::create_dir_all(copy.path().join(folder)).expect("a folder");
            for file in files {
                let file = file.expect("an entry");
                std::fs::copy(file.path(), copy.path().join(folder).join(file.file_name())).expect("a copy");
            }
        }
        copy
    }

    pub fn store(&self) -> Store {
        Store::open(self.path()).expect("a store")
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// The files of the setups that are kept.
    pub fn setups(&self) -> Vec<PathBuf> {
        let folders = std::fs::read_dir(self.path().join("setups")).expect("a folder");
        let files = folders.flat_map(|folder| std::fs::read_dir(folder.expect("an entry").path()).expect("a folder"));
        let paths = files.map(|file| file.expect("an entry").path());
        paths.filter(|path| path.file_name().is_some_and(|name| name.len() == 32)).collect()
    }

    /// The entries that are ready.
    pub fn ready(&self) -> Vec<MaterialId> {
        self.store().list().expect("a list").into_iter().map(|entry| entry.id).collect()
    }
}

/// A server of all programs whose material lies in `folder`, for any mode.
pub fn server(folder: &StoreFolder) -> Server {
    server_under(folder, Policy::unrestricted())
}

/// [`server`] with a policy.
pub fn server_under(folder: &StoreFolder, policy: Policy) -> Server {
    registry::server(catalog(), folder.store(), policy).expect("a folder for counts")
}

/// [`server`] whose store holds `bytes` at most.
pub fn server_within(folder: &StoreFolder, bytes: u64) -> Server {
    registry::server(CATALOG.clone(), folder.store().within(bytes), Policy::default()).expect("a folder for counts")
}

/// A way to `dealer`, who serves each link on a thread of its own and tells `results` what came of it.
pub fn to_dealer(dealer: &Arc<Dealer>, results: &Sender<Result<Option<Dealt>, Error>>) -> Connect {
    let (dealer, results) = (Arc::clone(dealer), results.clone());
    Connect::new(move || {
        let (mut near, far) = pair();
        near.set_timeout(PATIENCE);
        let (dealer, results) = (Arc::clone(&dealer), results.clone());
        // Nobody listens any more when a test is over.
        thread::spawn(move || results.send(dealer.serve(far).map(|deal| deal.dealt)).ok());
        Ok(near)
    })
}

/// The largest entry that dealers make.
pub const MOST: u64 = 1 << 30;

/// What came of a party's deal.
pub type Dealing = Result<Option<Dealt>, Error>;

/// A way to a dealer, and a channel of what it did.
pub fn dealer() -> (Connect, Receiver<Dealing>) {
    dealer_with(MOST, PATIENCE)
}

/// [`dealer`] with limits of its own.
pub fn dealer_with(most: u64, patience: Duration) -> (Connect, Receiver<Dealing>) {
    let (send, receive) = channel();
    (to_dealer(&Arc::new(registry::dealer(most, patience).expect("entropy")), &send), receive)
}

/// What happened at the server in one session.
pub struct Side {
    pub result: Result<(), Error>,
    pub events: Vec<Event>,
}

/// Runs `client` on its end of `channels` while `server` serves the other, each on a thread of its own.
pub fn over<T>((near, far): (Channel, Channel), server: &Server, client: impl FnOnce(Channel) -> T) -> (T, Side) {
    thread::scope(|scope| {
        let serving = scope.spawn(move || {
            let mut events = Vec::new();
            let result = server.serve(far, &mut Silent, &mut |event| events.push(event));
            Side { result, events }
        });
        let out = client(near);
        (out, serving.join().expect("the server does not panic"))
    })
}

/// An undisturbed session: `work` gets the client, which says goodbye after; both sides must end well.
pub fn session<T>(server: &Server, folder: &StoreFolder, work: impl FnOnce(&mut Client) -> T) -> T {
    session_over(pair(), server, folder, work).0
}

/// [`session`] in which both parties know a way to a dealer.
pub fn session_with_dealer<T>(
    [client_folder, server_folder]: [&StoreFolder; 2],
    dealer: &Connect,
    work: impl FnOnce(&mut Client) -> T,
) -> T {
    let (mut near, far) = pair();
    near.set_timeout(PATIENCE);
    let (out, side) = over((near, far), &server(server_folder).with_dealer(dealer.clone()), |channel| {
        let mut client = Client::new(channel, client_folder.store()).expect("a greeting").with_dealer(dealer.clone());
        let out = work(&mut client);
        client.close().expect("a goodbye");
        out
    });
    side.result.expect("the session ends well");
    out
}

/// [`session`] over the given link; returns what the server did as well.
pub fn session_over<T>(
    (mut near, far): (Channel, Channel),
    server: &Server,
    folder: &StoreFolder,
    work: impl FnOnce(&mut Client) -> T,
) -> (T, Vec<Event>) {
    near.set_timeout(PATIENCE);
    let (out, side) = over((near, far), server, |channel| {
        let mut client = Client::new(channel, folder.store()).expect("a greeting");
        let out = work(&mut client);
        client.close().expect("a goodbye");
        out
    });
    side.result.expect("the session ends well");
    (out, side.events)
}

/// Makes a material entry.
pub fn prepare(client: &mut Client, plan: &Plan) -> MaterialId {
    client.prepare(plan, &mut Silent).expect("material").0
}

/// Infers on the fixture's own inputs and checks what comes out.
pub fn infer(client: &mut Client, fixture: &Fixture, plan: &Plan, id: &MaterialId) -> Vec<Vec<i64>> {
    let (outputs, _) = client.infer(plan, id, &fixture.case.inputs, &mut Silent).expect("an inference");
    fixture.case.check(&outputs, plan.options());
    outputs
}

/// Runs the two halves of a job, each on a thread of its own.
pub fn both<A: Send, B: Send>(client: impl FnOnce() -> A + Send, server: impl FnOnce() -> B + Send) -> (A, B) {
    thread::scope(|scope| {
        let serving = scope.spawn(server);
        (client(), serving.join().expect("the server does not panic"))
    })
}
