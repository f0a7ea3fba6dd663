//! Every decoder of bytes from a peer under one name and one signature.
//!
//! A decoder may refuse, and must not panic, hang, or allocate by a length that it did not check.

use std::sync::LazyLock;
use std::time::Duration;

use privet_bfv::{Parameters, Resharing, slots};
use privet_channel::replay::peer;
use privet_channel::{Channel, Link};
use privet_ot::Stock;
use privet_paillier::{Ciphertexts, KeySize, PublicKey};
use privet_program::{Program, Weights};
use privet_ring::{Bits, Field, Modulus};
use privet_suites::policy::{Guard, Policy};
use privet_suites::session::{Catalog, Client, Connect};
use privet_suites::sharing::{self, Options, Plan, Rounds, Truncation};
use privet_suites::suite::{SuiteConfig, SuitePlan};
use privet_suites::{Silent, Store, fss, malicious, registry, stream};
use tempfile::TempDir;

/// A decoder and its name, which is also its folder of the corpus.
pub struct Decoder {
    /// Name on the command line and in `corpus/`.
    pub name: &'static str,
    /// Reads some bytes, whatever they are; whether they got as far as those of an honest peer do. Every entry of the corpus
    /// must: one that is refused at the door, because a format has changed, would test nothing behind it.
    pub run: fn(&[u8]) -> bool,
}

/// All of them.
pub const DECODERS: [Decoder; 15] = [
    Decoder { name: "program", run: program },
    Decoder { name: "weights", run: weights },
    Decoder { name: "stock", run: stock },
    Decoder { name: "ring", run: ring },
    Decoder { name: "bfv", run: bfv },
    Decoder { name: "bfv-merging", run: bfv_merging },
    Decoder { name: "bfv-slots", run: bfv_slots },
    Decoder { name: "paillier-key", run: paillier_key },
    Decoder { name: "paillier", run: paillier },
    Decoder { name: "server", run: server },
    Decoder { name: "client", run: client },
    Decoder { name: "dealt", run: dealt },
    Decoder { name: "dealer", run: dealer },
    Decoder { name: "stream", run: stream_server },
    Decoder { name: "stream-client", run: stream_client },
];

/// The decoder with this name.
pub fn named(name: &str) -> Option<&'static Decoder> {
    DECODERS.iter().find(|decoder| decoder.name == name)
}

const PUBLIC: &[u8] = include_bytes!("../../suites/tests/fixtures/choice/program.json");
const PRIVATE: &[u8] = include_bytes!("../../suites/tests/fixtures/choice/weights.safetensors");

/// The public half of a program, and all plans of it.
fn program(bytes: &[u8]) -> bool {
    let Ok(program) = Program::parse(bytes) else { return false };
    let _ = Plan::new(program.clone(), Options::from(Rounds::Linear)).map(|plan| plan.forecast());
    let _ = stream::Plan::new(program.clone(), stream::Cipher::Bfv).map(|plan| plan.forecast());
    let _ = malicious::Plan::new(program, malicious::Config { truncation: Truncation::Exact });
    true
}

/// The private half, behind a program whose hash it cannot match: the file itself is read by its own crate.
fn weights(bytes: &[u8]) -> bool {
    let program = Program::parse(PUBLIC).expect("the fixture is a program");
    Weights::parse(bytes, &program).is_ok()
}

fn stock(bytes: &[u8]) -> bool {
    Stock::from_bytes(bytes).is_ok()
}

/// Packed ring elements and bits; the first byte chooses the width.
fn ring(bytes: &[u8]) -> bool {
    let Some((&width, rest)) = bytes.split_first() else { return false };
    let modulus = Modulus::new(u32::from(width) % 64 + 1);
    let counts = [0, 1, rest.len() * 8 / (usize::from(width) % 64 + 1), usize::MAX / 64];
    let read = |count| modulus.unpack(rest, count).is_ok() | Bits::from_bytes(rest, count).is_ok();
    counts.map(read).contains(&true)
}

/// The bytes of an honest key, but behind the place that the first three of the given ones say, where the others lie. Keys have
/// tens of kilobytes, and one of another length is refused at once.
fn laid_over(honest: &[u8], bytes: &[u8]) -> Vec<u8> {
    let (place, part) = bytes.split_at(bytes.len().min(3));
    let place = place.iter().fold(0, |place, &byte| place << 8 | usize::from(byte)) % honest.len();
    let mut key = honest.to_vec();
    key.iter_mut().skip(place).zip(part).for_each(|(byte, &other)| *byte = other);
    key
}

/// A key, which has the form of a ciphertext, and a reply.
fn bfv(bytes: &[u8]) -> bool {
    static PARAMETERS: LazyLock<Parameters> =
        LazyLock::new(|| Parameters::choose(20, 8, 16, 4096, Resharing::Approximate).expect("parameters"));
    static KEY: LazyLock<(privet_bfv::SecretKey, Vec<u8>)> = LazyLock::new(|| {
        let mut prg = privet_prg::Prg::from_os().expect("entropy");
        let key = privet_bfv::SecretKey::generate(&PARAMETERS, &mut prg);
        let public = key.public_key(&mut prg);
        (key, public)
    });
    let (key, public) = &*KEY;
    let reply: Vec<u8> = bytes.iter().copied().cycle().take(PARAMETERS.reply_bytes(2)).collect();
    for bytes in [bytes, &reply] {
        let _ = privet_bfv::PublicKey::from_bytes(&PARAMETERS, bytes);
        let _ = privet_bfv::Ciphertext::from_bytes(&PARAMETERS, bytes);
        let _ = key.open(bytes, &[0, 5]);
    }
    let public = laid_over(public, bytes);
    let ciphertext = privet_bfv::Ciphertext::from_bytes(&PARAMETERS, &public);
    ciphertext.is_ok() && privet_bfv::PublicKey::from_bytes(&PARAMETERS, &public).is_ok()
}

/// A public key with those that merge replies.
fn bfv_merging(bytes: &[u8]) -> bool {
    static HONEST: LazyLock<Vec<u8>> = LazyLock::new(|| {
        let mut prg = privet_prg::Prg::from_os().expect("entropy");
        privet_bfv::SecretKey::generate(merging(), &mut prg).public_key(&mut prg)
    });
    let _ = privet_bfv::PublicKey::from_bytes(merging(), bytes);
    privet_bfv::PublicKey::from_bytes(merging(), &laid_over(&HONEST, bytes)).is_ok()
}

/// Parameters under which replies are merged.
pub fn merging() -> &'static Parameters {
    static PARAMETERS: LazyLock<Parameters> = LazyLock::new(|| {
        let plain = Parameters::choose(20, 8, 16, 4096, Resharing::Approximate).expect("parameters");
        plain.merging(1).expect("room for a special prime")
    });
    &PARAMETERS
}

fn bfv_slots(bytes: &[u8]) -> bool {
    static PARAMETERS: LazyLock<slots::Parameters> = LazyLock::new(|| {
        let field = Field::over(Modulus::new(24)).expect("a field");
        slots::Parameters::choose(field.prime(), 16, 1, 1).expect("parameters")
    });
    static HONEST: LazyLock<Vec<u8>> = LazyLock::new(|| {
        let mut prg = privet_prg::Prg::from_os().expect("entropy");
        slots::SecretKey::generate(&PARAMETERS, &mut prg).public_key(&mut prg)
    });
    let _ = slots::PublicKey::from_bytes(&PARAMETERS, bytes);
    let key = laid_over(&HONEST, bytes);
    let _ = slots::Ciphertext::from_bytes(&PARAMETERS, &key);
    slots::PublicKey::from_bytes(&PARAMETERS, &key).is_ok()
}

fn paillier_key(bytes: &[u8]) -> bool {
    PublicKey::from_bytes(KeySize::Bits2048, bytes).is_ok()
}

fn paillier(bytes: &[u8]) -> bool {
    static KEY: LazyLock<PublicKey> =
        LazyLock::new(|| privet_paillier::PrivateKey::generate(KeySize::Bits2048).expect("a key").public().clone());
    let counts = [0, 1, 2, usize::MAX / 512];
    counts.map(|count| Ciphertexts::from_bytes(&KEY, count, bytes).is_ok()).contains(&true)
}

/// A store that nobody has used, in a folder that must outlive it.
fn store() -> (Store, TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    (Store::open(folder.path()).expect("a store"), folder)
}

/// What the other party sends, and what the dealer does: the first three bytes say how many bytes the former has.
fn split(bytes: &[u8]) -> Option<(Channel, Connect)> {
    let (length, rest) = bytes.split_first_chunk::<3>()?;
    let length = length.iter().rev().fold(0, |length, &byte| length << 8 | usize::from(byte));
    let (from_peer, from_dealer) = rest.split_at(length.min(rest.len()));
    let from_dealer = from_dealer.to_vec();
    Some((peer(from_peer), Connect::new(move || Ok(peer(&from_dealer)))))
}

/// A server of suites `gmw` and `fss`, whose client and dealer send anything.
fn server(bytes: &[u8]) -> bool {
    static CATALOG: LazyLock<Catalog> = LazyLock::new(|| {
        let mut catalog = Catalog::default();
        catalog.add(sharing::load(PUBLIC.to_vec(), PRIVATE).expect("a served program"));
        catalog
    });
    let Some((client, dealer)) = split(bytes) else { return false };
    let (store, _folder) = store();
    // What a policy refuses, it refuses before anything else is read.
    let server = registry::server(CATALOG.clone(), store, Policy::unrestricted()).expect("nothing is counted");
    let mut served = 0;
    let _ = server.with_dealer(dealer).serve(client, &mut Silent, &mut |_| served += 1);
    // The inference names material that another server had.
    served == 2
}

/// A client of suite `gmw` whose server sends anything.
fn client(bytes: &[u8]) -> bool {
    let plan = Plan::new(Program::parse(PUBLIC).expect("a program"), Options::from(Rounds::Linear)).expect("a plan");
    let (store, _folder) = store();
    let Ok(client) = Client::new(peer(bytes), store) else { return false };
    prepares(client, &plan)
}

/// Whether a client gets the program and material.
fn prepares(mut client: Client, plan: &dyn SuitePlan) -> bool {
    client.describe(None, None).is_ok() && client.prepare(plan, &mut Silent).is_ok()
}

/// A client of suite `fss` in the mode that the first byte chooses, whose server and dealer send anything.
fn dealt(bytes: &[u8]) -> bool {
    let Some((&mode, rest)) = bytes.split_first() else { return false };
    let Some((server, dealer)) = split(rest) else { return false };
    let (store, _folder) = store();
    let Ok(client) = Client::new(server, store) else { return false };
    prepares(client.with_dealer(dealer), &*dealt_plan(mode % 2 == 1))
}

/// The plan of suite `fss` that [`DECODERS`] have for `dealt`, against malicious parties or semi-honest ones.
pub fn dealt_plan(is_malicious: bool) -> Box<dyn SuitePlan> {
    let truncation = Truncation::Exact;
    let config: &dyn SuiteConfig =
        if is_malicious { &malicious::Config { truncation } } else { &fss::Config { truncation } };
    config.plan(Program::parse(PUBLIC).expect("a program"), Link::LAN).expect("a plan")
}

/// A dealer whose server or client sends anything.
fn dealer(bytes: &[u8]) -> bool {
    let Ok(dealer) = registry::dealer(1 << 24, Duration::from_millis(20)) else { return false };
    // Who has asked for what there is waits for the other party.
    dealer.serve(peer(bytes)).is_err_and(|error| error.to_string().contains("did not come"))
}

/// A provider of suite `stream`, whose client sends anything.
fn stream_server(bytes: &[u8]) -> bool {
    let Ok(guard) = Guard::new(Policy::unrestricted(), "unused") else { return false };
    let Ok(server) = stream::Server::new(PUBLIC.to_vec(), PRIVATE) else { return false };
    let mut served = 0;
    let _ = server.under(guard).serve(None, None, peer(bytes), &mut Silent, &mut |_| served += 1);
    served > 1
}

/// A client of suite `stream` over BFV, whose provider sends anything.
fn stream_client(bytes: &[u8]) -> bool {
    let program = Program::parse(PUBLIC).expect("a program");
    let inputs: Vec<_> = program.inputs().iter().map(|input| vec![1; program.value(input.value).len()]).collect();
    let plan = stream::Plan::new(program, stream::Cipher::Bfv).expect("a plan");
    let Ok(mut client) = stream::Client::new(peer(bytes)) else { return false };
    client.describe(None).is_ok()
        && client.prepare(&plan, &mut Silent).is_ok()
        && client.infer(&plan, &inputs, &mut Silent).is_ok()
}
