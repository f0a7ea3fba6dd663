//! What a suite must bring, shown by one that protects nothing: its config, its plan, and a registry of one line.
//!
//! The toy runs a single dense layer on additive shares, with material that both parties see in the clear. Everything around
//! it is the real thing: sessions, stores, requests, memory budgets.

use std::io::{Read, Write};
use std::sync::{Arc, LazyLock};
use std::thread;

use privet_channel::{AbortReason, Channel, Error as LinkError, Link, PeerMisbehaved, pair};
use privet_linear::Keep;
use privet_ot::Extension;
use privet_prg::{Prg, Seed};
use privet_program::Program;
use privet_runtime::forecast::{Forecast, Memory};
use privet_runtime::security::Security;
use privet_runtime::session::{
    Admission, Budget, Caller, Catalog, Client, Event, HiddenWeights, Refused, Served, Server,
};
use privet_runtime::suite::{
    DealtSetup, Inference, Material, Prediction, Preparation, Prepared, ServerSide, SuiteConfig, SuitePlan,
    SuiteRegistry,
};
use privet_runtime::{Counterpart, Error, MaterialId, Phase, PhaseCost, Report, Silent, Store, StoreError};
use sha2::{Digest, Sha256};
use tempfile::TempDir;

/// Rows, inner dimension and columns of the layer.
const SHAPE: [usize; 3] = [2, 3, 4];

/// The toy's only choice: how many times its dealer-free preparation is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct InsecureToy {
    acknowledgements: usize,
}

struct ToyPlan {
    config: InsecureToy,
    program: Program,
}

impl SuiteConfig for InsecureToy {
    fn label(&self) -> String {
        format!("toy INSECURE {}", self.acknowledgements)
    }

    fn is_dealt(&self) -> bool {
        false
    }

    fn plan(&self, program: Program, _link: Link) -> Result<Box<dyn SuitePlan>, Error> {
        Ok(Box::new(ToyPlan { config: *self, program }))
    }
}

/// The registry that sessions get.
struct Toys;

impl SuiteRegistry for Toys {
    fn config(&self, label: &str) -> Option<Box<dyn SuiteConfig>> {
        let configs = [1, 2].map(|acknowledgements| InsecureToy { acknowledgements });
        configs.into_iter().find(|config| config.label() == label).map(|config| Box::new(config) as _)
    }

    fn mask_name(&self, _program: &str, _secret: &Seed) -> MaterialId {
        unreachable!("no toy is dealt")
    }

    fn send_hidden_weights(&self, _served: &Served, _secret: &Seed, _channel: &mut Channel) -> Result<(), Error> {
        unreachable!("no toy is dealt")
    }
}

impl SuitePlan for ToyPlan {
    fn program(&self) -> &Program {
        &self.program
    }

    fn label(&self) -> String {
        self.config.label()
    }

    fn is_dealt(&self) -> bool {
        false
    }

    fn widths(&self) -> Vec<u32> {
        vec![64; self.program.values().len()]
    }

    fn forecast(&self) -> Forecast {
        let [material_bytes_client, material_bytes_server] = self.material_bytes();
        Forecast { online_rounds: 1, material_bytes_client, material_bytes_server, ..Forecast::default() }
    }

    fn security(&self) -> Security {
        Security::new(Vec::new(), Vec::new(), "", None, vec!["INSECURE: tests only"])
    }

    fn client_memory(&self, _threads: usize) -> Memory {
        Memory { online: 1 << 10, ..Memory::default() }
    }

    fn server_memory(&self, _served: &Served, _extension: Extension) -> Result<Memory, Error> {
        Ok(Memory { offline: 1 << 20, online: 1 << 20, ..Memory::default() })
    }

    fn server_memory_keeping(&self, _keep: Keep, _threads: usize) -> Memory {
        Memory::default()
    }

    fn material_bytes(&self) -> [u64; 2] {
        let [rows, inner, columns] = SHAPE;
        [8 * (rows * inner) as u64, 8 * (rows * columns) as u64]
    }

    fn dealt_bytes(&self) -> [u64; 2] {
        [0, 0]
    }

    fn deal(&self, _parties: [&mut Channel; 2], _setup: Option<DealtSetup>) -> Result<(), Error> {
        Err(Error::Misuse("no toy is dealt".into()))
    }

    fn prepare_client(&self, job: Preparation<'_>, hidden: Option<HiddenWeights>) -> Result<Prepared, Error> {
        assert!(hidden.is_none() && job.dealer.is_none());
        let mut mask = vec![0; SHAPE[0] * SHAPE[1]];
        Prg::from_os()?.fill_words(&mut mask);
        let mask = bytes(&mask);
        job.channel.send(&mask)?;
        for _ in 0..self.config.acknowledgements {
            job.channel.recv(1)?;
        }
        // Half of it through the temporary entry, half of it as the head: an entry is both, in this order.
        let (first, head) = mask.split_at(mask.len() / 2);
        job.entry.write_all(first).expect("room in the store");
        Ok(Prepared { head: head.to_vec(), setup: None, report: report(Phase::Offline) })
    }

    fn prepare_server(&self, job: Preparation<'_>, server: ServerSide<'_>) -> Result<Prepared, Error> {
        let mask = words(&job.channel.recv(8 * SHAPE[0] * SHAPE[1])?);
        for _ in 0..self.config.acknowledgements {
            job.channel.send(&[1])?;
        }
        let head = bytes(&product(&mask, server.served));
        Ok(Prepared { head, setup: None, report: report(Phase::Offline) })
    }

    fn infer_client(&self, job: Inference<'_>, inputs: &[Vec<i64>]) -> Result<Prediction, Error> {
        let mask = read(job.material);
        let masked: Vec<u64> = inputs[0].iter().zip(&mask).map(|(x, r)| (*x as u64).wrapping_sub(*r)).collect();
        job.channel.send(&bytes(&masked))?;
        let output = words(&job.channel.recv(8 * SHAPE[0] * SHAPE[2])?);
        *job.session.of::<usize>() += 1;
        Ok((vec![output.into_iter().map(|word| word as i64).collect()], report(Phase::Online)))
    }

    fn infer_server(&self, job: Inference<'_>, served: &Served) -> Result<Report, Error> {
        let prepared = read(job.material);
        let masked = words(&job.channel.recv(8 * SHAPE[0] * SHAPE[1])?);
        let product = product(&masked, served);
        let output: Vec<u64> = product.iter().zip(&prepared).map(|(a, b)| a.wrapping_add(*b)).collect();
        job.channel.send(&bytes(&output))?;
        job.channel.flush()?;
        // A suite keeps what it likes of a program and of a session.
        *job.session.of::<usize>() += 1;
        let weights = served.keep(|| Ok(served.weights().tensor("w").len()))?;
        assert_eq!(*weights, SHAPE[1] * SHAPE[2]);
        Ok(report(Phase::Online))
    }
}

fn bytes(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn words(bytes: &[u8]) -> Vec<u64> {
    bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect()
}

fn read(material: Material) -> Vec<u64> {
    let Material::Claimed { mut file, .. } = material else { panic!("toys are prepared") };
    let mut stored = Vec::new();
    file.read_to_end(&mut stored).expect("material");
    words(&stored)
}

fn product(x: &[u64], served: &Served) -> Vec<u64> {
    let ([rows, inner, columns], w) = (SHAPE, served.weights().tensor("w"));
    let term = |row: usize, column: usize, i: usize| x[row * inner + i].wrapping_mul(w[i * columns + column] as u64);
    let cell = |row, column| (0..inner).fold(0u64, |sum, i| sum.wrapping_add(term(row, column, i)));
    (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column))).map(|(r, c)| cell(r, c)).collect()
}

fn report(phase: Phase) -> Report {
    Report { phase, counterpart: Counterpart::Party, total: PhaseCost::default(), setup: None, layers: Vec::new() }
}

/// Lets everybody in, but for the label that it names.
struct AllBut(&'static str);

impl Admission for AllBut {
    fn admit(&self, _client: &Caller) -> Result<(), Refused> {
        Ok(())
    }

    fn check_suite(&self, _client: &Caller, label: &str) -> Result<(), Refused> {
        if label == self.0 { Err(Refused::Outside("not this one".into())) } else { Ok(()) }
    }

    fn check_dealer(&self, _client: &Caller) -> Result<(), Refused> {
        Ok(())
    }

    fn count(&self, _client: &Caller, _answers: u32) -> Result<(), Refused> {
        Ok(())
    }
}

/// Both halves of a program of one dense layer.
static HALVES: LazyLock<(Vec<u8>, Vec<u8>)> = LazyLock::new(|| {
    let [rows, inner, columns] = SHAPE;
    let end = 8 * inner * columns;
    let header = format!(r#"{{"w":{{"dtype":"I64","shape":[{inner},{columns}],"data_offsets":[0,{end}]}}}}"#);
    let mut weights = (header.len() as u64).to_le_bytes().to_vec();
    weights.extend(header.bytes());
    weights.extend((0..(inner * columns) as i64).flat_map(|weight| (weight - 5).to_le_bytes()));
    let commitment: String = Sha256::digest(&weights).iter().map(|byte| format!("{byte:02x}")).collect();
    let public = format!(
        r#"{{"format":"privet-program","version":1,"model":"toy","ring_bits":37,"scale_bits":12,"weight_bits":12,
        "weights_commitment":"{commitment}","inputs":[{{"name":"x","value":0,"magnitude":8.0}}],
        "outputs":[{{"name":"y","value":1,"client":null}}],
        "values":[{{"scale":12,"shape":[{rows},{inner}]}},{{"scale":24,"shape":[{rows},{columns}]}}],
        "operations":[{{"op":"dense","weight":"w","weight_shape":[{inner},{columns}],"bias":null,"name":"dense",
        "inputs":[0],"output":1}}]}}"#
    );
    (public.into_bytes(), weights)
});

struct Scene {
    stores: [TempDir; 2],
    server: Server,
}

impl Scene {
    fn new() -> Self {
        let stores = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
        let mut catalog = Catalog::default();
        catalog.add(Served::new(HALVES.0.clone(), &HALVES.1).expect("a program"));
        let store = Store::open(stores[1].path()).expect("a store");
        let server = Server::new(&Toys, catalog, store, Arc::new(AllBut("toy INSECURE 2")));
        Self { stores, server }
    }

    fn session<T>(&self, work: impl FnOnce(&mut Client) -> T) -> (T, Vec<Event>, Result<(), Error>) {
        let (near, far) = pair();
        thread::scope(|scope| {
            let serving = scope.spawn(move || {
                let mut events = Vec::new();
                let ended = self.server.serve(far, &mut Silent, &mut |event| events.push(event));
                (events, ended)
            });
            let store = Store::open(self.stores[0].path()).expect("a store");
            let mut client = Client::new(near, store).expect("a greeting");
            let result = work(&mut client);
            // After a refusal there is nobody left to tell.
            client.close().ok();
            let (events, ended) = serving.join().expect("no panic");
            (result, events, ended)
        })
    }
}

fn plan(acknowledgements: usize) -> Box<dyn SuitePlan> {
    let program = Program::parse(&HALVES.0).expect("a program");
    InsecureToy { acknowledgements }.plan(program, Link::LAN).expect("a plan")
}

fn expected(input: &[i64]) -> Vec<i64> {
    let [rows, inner, columns] = SHAPE;
    let weight = |i: usize, column: usize| (i * columns + column) as i64 - 5;
    let cell = |row: usize, column: usize| (0..inner).map(|i| input[row * inner + i] * weight(i, column)).sum();
    (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column))).map(|(r, c)| cell(r, c)).collect()
}

#[test]
fn a_toy_suite_prepares_stores_and_infers_as_any_other() {
    let (scene, plan) = (Scene::new(), plan(1));
    let input: Vec<i64> = vec![3, -1, 4, 1, -5, 9];
    let (outputs, events, ended) = scene.session(|client| {
        let described = client.describe(None, None).expect("the program");
        assert_eq!(described, HALVES.0);
        let ids = [(); 2].map(|()| client.prepare(&*plan, &mut Silent).expect("material").0);
        assert_eq!(client.ready(&*plan).expect("a list").len(), 2);
        let named = client.infer(&*plan, &ids[1], std::slice::from_ref(&input), &mut Silent).expect("an answer");
        let (id, second) = client
            .infer_next(&*plan, std::slice::from_ref(&input), &mut Silent)
            .expect("an answer")
            .expect("an entry is left");
        assert_eq!(id, ids[0]);
        // Spent is spent, in every suite.
        let repetition = client.infer(&*plan, &ids[1], std::slice::from_ref(&input), &mut Silent);
        assert!(matches!(repetition, Err(Error::Store(StoreError::Spent { .. }))));
        let unprepared = client.infer_unprepared(&*plan, std::slice::from_ref(&input), &mut Silent);
        assert!(matches!(unprepared, Err(Error::Misuse(_))));
        [named.0, second.0]
    });
    ended.expect("a goodbye");
    assert_eq!(outputs.map(|outputs| outputs[0].clone()), [(); 2].map(|()| expected(&input)));
    assert_eq!(events.len(), 5);
    assert!(scene.stores.iter().all(|folder| Store::open(folder.path()).unwrap().list().unwrap().is_empty()));
}

#[test]
fn an_entry_bears_the_label_and_takes_no_more_than_the_plan_says() {
    let (scene, plan) = (Scene::new(), plan(1));
    scene.session(|client| client.prepare(&*plan, &mut Silent).expect("material")).2.expect("a goodbye");
    let (client, server) = plan.entry_bytes();
    for (folder, most, material) in [(0, client, plan.material_bytes()[0]), (1, server, plan.material_bytes()[1])] {
        let [entry] = Store::open(scene.stores[folder].path()).unwrap().entries().unwrap().try_into().expect("one");
        assert_eq!(entry.metadata.suite, "toy INSECURE 1");
        assert!((material..=most).contains(&entry.bytes), "{} of {most}", entry.bytes);
    }
}

#[test]
fn a_server_refuses_what_its_admission_or_its_registry_does_not_know() {
    let reason = |acknowledgements| {
        let (scene, plan) = (Scene::new(), plan(acknowledgements));
        let (refused, events, ended) = scene.session(|client| client.prepare(&*plan, &mut Silent).map(drop));
        assert!(events.is_empty() && ended.is_err());
        match refused.expect_err("a refusal") {
            Error::Channel(LinkError::PeerMisbehaved(PeerMisbehaved::Aborted { reason, .. })) => reason,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(reason(2), AbortReason::NotAllowed);
    assert_eq!(reason(3), AbortReason::BadRequest);
}

#[test]
fn a_job_that_its_plan_says_is_larger_than_the_budget_is_refused() {
    let plan = plan(1);
    let refused = |bytes: u64| {
        let scene = Scene::new();
        let server = scene.server.clone().within(Budget::new(privet_runtime::resident_memory() + bytes));
        let scene = Scene { server, ..scene };
        scene.session(|client| client.prepare(&*plan, &mut Silent).is_err()).0
    };
    assert!(refused(1 << 16) && !refused(1 << 40));
    assert!(plan.check_client_memory(1, 1).is_err() && plan.check_client_memory(1 << 10, 1).is_ok());
}
