//! A server that uses two sets of weights under one setup: in no order of things may a client accept an output of neither.
//!
//! What a client makes offline depends on the server's weights, as they are behind their masks. If those are replaced before the
//! client goes online, with the server's help, all codes are right and the output belongs to neither set. So a setup's
//! weights are written once, and each material entry keeps a digest of those that it was made with.

use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};
use std::thread;

use privet_channel::pair;
use privet_gmw::Truncation;
use privet_program::{Program, Weights};
use privet_seal::Stored;
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use super::{Config, Plan, prepare};
use crate::policy::Policy;
use crate::session::{Catalog, Client, Connect, Served, Server};
use crate::{Error, MaterialId, Silent, Store, StoreError, registry};

static PUBLIC: LazyLock<Vec<u8>> = LazyLock::new(|| read("program.json"));

fn read(file: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/residual");
    std::fs::read(folder.join(file)).expect("a fixture")
}

/// The program's weights, or others of the same shapes that its public half does not commit to.
fn weights(honest: bool) -> Weights {
    let mut weights = read("weights.safetensors");
    let hash = |bytes: &[u8]| Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let committed = hash(&weights);
    if !honest {
        let header = u64::from_le_bytes(*weights.first_chunk().expect("a header")) as usize;
        // The salt comes last.
        let (numbers, _) = weights[8 + header..].as_chunks_mut::<8>();
        let private = numbers.len() - 4;
        numbers[..private].iter_mut().for_each(|number| number[0] ^= 1);
    }
    let public = String::from_utf8(PUBLIC.clone()).expect("JSON").replace(&committed, &hash(&weights));
    Weights::parse(&weights, &Program::parse(public.as_bytes()).expect("a program")).expect("its weights")
}

/// Stores of a client and of a server, and the server once with each set of weights.
struct Scene {
    plan: Plan,
    client_folder: TempDir,
    server_folder: TempDir,
    servers: [Server; 2],
    to_dealer: Connect,
}

/// Which of the two sets.
const HONEST: usize = 0;
const OTHER: usize = 1;

impl Scene {
    fn new() -> Self {
        let dealer = Arc::new(registry::dealer(1 << 30, std::time::Duration::from_secs(60)).expect("entropy"));
        let to_dealer = Connect::new(move || {
            let ((near, far), dealer) = (pair(), Arc::clone(&dealer));
            thread::spawn(move || dealer.serve(far).map(drop));
            Ok(near)
        });
        let [client_folder, server_folder] = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
        let servers = [true, false].map(|honest| {
            let program = Program::parse(&PUBLIC).expect("a program");
            let mut catalog = Catalog::default();
            catalog.add(Served::with_weights(PUBLIC.clone(), program, weights(honest)));
            let store = Store::open(server_folder.path()).expect("a store");
            let server = registry::server(catalog, store, Policy::unrestricted()).expect("a folder");
            server.with_dealer(to_dealer.clone())
        });
        let program = Program::parse(&PUBLIC).expect("a program");
        let config = Config { truncation: Truncation::Exact };
        let plan = Plan::new(program, config).expect("a plan");
        Self { plan, client_folder, server_folder, servers, to_dealer }
    }

    fn session<T>(&self, server: usize, work: impl FnOnce(&mut Client) -> Result<T, Error>) -> Result<T, Error> {
        let (near, far) = pair();
        thread::scope(|scope| {
            // What it ends with is its own affair.
            scope.spawn(move || self.servers[server].serve(far, &mut Silent, &mut |_| ()).is_ok());
            let mut client =
                Client::new(near, Store::open(self.client_folder.path())?)?.with_dealer(self.to_dealer.clone());
            let result = work(&mut client)?;
            client.close()?;
            Ok(result)
        })
    }

    fn prepare(&self, server: usize) -> Result<MaterialId, Error> {
        self.session(server, |client| Ok(client.prepare(&self.plan, &mut Silent)?.0))
    }

    fn infer(&self, server: usize, id: &MaterialId) -> Result<Vec<Vec<i64>>, Error> {
        let inputs = vec![vec![1234; self.plan.program().value(0).len()]];
        self.session(server, |client| Ok(client.infer(&self.plan, id, &inputs, &mut Silent)?.0))
    }

    /// What a server with these weights, and no others, gives.
    fn output(server: usize) -> Vec<Vec<i64>> {
        let scene = Self::new();
        scene.infer(server, &scene.prepare(server).expect("material")).expect("an honest run")
    }

    fn setup(&self, folder: &TempDir, id: &MaterialId) -> PathBuf {
        let program = self.plan.program().hash().to_string();
        let setup = Store::open(folder.path()).unwrap().metadata(id).unwrap().setup.expect("a setup");
        folder.path().join("setups").join(format!("{program}-")).join(setup.as_str())
    }

    /// The other weights under the setup of this entry: their digest, and what the client would have received of them.
    fn other_weights(&self, id: &MaterialId) -> ([u8; 32], Vec<u8>) {
        let setup = Stored::plain(std::fs::File::open(self.setup(&self.server_folder, id)).unwrap());
        let (mut near, mut far) = pair();
        let opened = prepare::hide_weights(&mut far, &self.plan, &weights(false), setup).unwrap();
        let mut hidden = std::fs::read(self.setup(&self.client_folder, id)).unwrap()[..16].to_vec();
        prepare::take_weights(&mut near, &self.plan, &mut hidden).unwrap();
        (opened.digest, hidden)
    }
}

/// Writes another digest into an entry that is ready.
fn redate(folder: &TempDir, id: &MaterialId, digest: &[u8; 32]) {
    let path = folder.path().join("ready").join(format!("{id}.material"));
    let mut bytes = std::fs::read(&path).unwrap();
    let end = bytes.len() - digest.len();
    bytes[end..].copy_from_slice(digest);
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn two_preparations_at_once_with_two_sets_of_weights_give_no_output_of_neither() {
    let outputs = [HONEST, OTHER].map(Scene::output);
    assert_ne!(outputs[0], outputs[1]);
    for (used_in, run_by) in [(HONEST, OTHER), (OTHER, HONEST), (OTHER, OTHER), (HONEST, HONEST)] {
        let scene = Scene::new();
        let ids = thread::scope(|scope| {
            [HONEST, OTHER]
                .map(|server| {
                    scope.spawn({
                        let scene = &scene;
                        move || scene.prepare(server)
                    })
                })
                .map(|ids| ids.join().unwrap())
        });
        // Both sessions are over one setup: the second one finds that of the first.
        let id = ids[used_in].as_ref().expect("material");
        let setup = scene.setup(&scene.client_folder, id);
        assert!(ids.iter().all(|id| scene.setup(&scene.client_folder, id.as_ref().expect("material")) == setup));
        // A server that cheats does not refuse itself.
        let (digest, _) = scene.other_weights(id);
        if run_by == OTHER {
            redate(&scene.server_folder, id, &digest);
        }
        if let Ok(output) = scene.infer(run_by, id) {
            assert!(outputs.contains(&output), "an output of neither, made with {used_in} and run by {run_by}");
        }
    }
}

/// What is on the client's disk if the last to write a setup wins: an entry made with one set, a setup with the other. `digest`: also
/// what tells them apart is that of the other set.
fn overwritten(digest_too: bool) -> Result<Vec<Vec<i64>>, Error> {
    let scene = Scene::new();
    let id = scene.prepare(HONEST).expect("material");
    let (digest, hidden) = scene.other_weights(&id);
    std::fs::write(scene.setup(&scene.client_folder, &id), hidden).unwrap();
    redate(&scene.server_folder, &id, &digest);
    if digest_too {
        redate(&scene.client_folder, &id, &digest);
    }
    scene.infer(OTHER, &id)
}

#[test]
fn the_digest_in_the_material_refuses_weights_that_were_replaced() {
    let refused = overwritten(false);
    assert!(matches!(refused, Err(Error::Store(StoreError::OtherWeights { .. }))), "{refused:?}");
    // Without the digest the client takes an output that belongs to neither set.
    let wrong = overwritten(true).expect("all codes are right");
    assert!(![HONEST, OTHER].map(Scene::output).contains(&wrong));
}
