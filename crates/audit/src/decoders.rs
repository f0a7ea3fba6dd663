//! Every decoder of bytes from a peer under one name and one signature.
//!
//! A decoder may refuse, and must not panic, hang, or allocate by a length that it did not check.

use std::sync::LazyLock;
use std::time::Duration;

use privet_bfv::{Parameters, Resharing, slots};
use privet_channel::{Channel, pair};
use privet_ot::Stock;
use privet_paillier::{Ciphertexts, KeySize, PublicKey};
use privet_program::{Program, Weights};
use privet_ring::{Bits, Field, Modulus};
use privet_suites::policy::Policy;
use privet_suites::session::{Catalog, Client};
use privet_suites::sharing::{self, Options, Plan, Rounds, Truncation};
use privet_suites::{Silent, Store, malicious, registry};
use tempfile::TempDir;

/// A decoder and its name, which is also its folder of the corpus.
pub struct Decoder {
    /// Name on the command line and in `corpus/`.
    pub name: &'static str,
    /// Reads some bytes, whatever they are.
    pub run: fn(&[u8]),
}

/// All of them.
pub const DECODERS: [Decoder; 13] = [
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
    Decoder { name: "dealer", run: dealer },
    Decoder { name: "stream", run: stream },
];

/// The decoder with this name.
pub fn named(name: &str) -> Option<&'static Decoder> {
    DECODERS.iter().find(|decoder| decoder.name == name)
}

const PUBLIC: &[u8] = include_bytes!("../../suites/tests/fixtures/choice/program.json");
const PRIVATE: &[u8] = include_bytes!("../../suites/tests/fixtures/choice/weights.safetensors");

/// The public half of a program, and all plans of it.
fn program(bytes: &[u8]) {
    if let Ok(program) = Program::parse(bytes) {
        let _ = Plan::new(program.clone(), Options::from(Rounds::Linear)).map(|plan| plan.forecast());
        let _ = malicious::Plan::new(program, malicious::Config { truncation: Truncation::Exact });
    }
}

/// The private half, behind a program whose hash it cannot match: the file itself is read by its own crate.
fn weights(bytes: &[u8]) {
    let program = Program::parse(PUBLIC).expect("the fixture is a program");
    let _ = Weights::parse(bytes, &program);
}

fn stock(bytes: &[u8]) {
    let _ = Stock::from_bytes(bytes);
}

/// Packed ring elements and bits; the first byte chooses the width.
fn ring(bytes: &[u8]) {
    let Some((&width, rest)) = bytes.split_first() else { return };
    let modulus = Modulus::new(u32::from(width) % 64 + 1);
    for count in [0, 1, rest.len() * 8 / (usize::from(width) % 64 + 1), usize::MAX / 64] {
        let _ = modulus.unpack(rest, count);
        let _ = Bits::from_bytes(rest, count);
    }
}

fn bfv(bytes: &[u8]) {
    static PARAMETERS: LazyLock<Parameters> =
        LazyLock::new(|| Parameters::choose(20, 8, 16, 4096, Resharing::Approximate).expect("parameters"));
    let _ = privet_bfv::PublicKey::from_bytes(&PARAMETERS, bytes);
    let _ = privet_bfv::Ciphertext::from_bytes(&PARAMETERS, bytes);
    static KEY: LazyLock<privet_bfv::SecretKey> = LazyLock::new(|| {
        privet_bfv::SecretKey::generate(&PARAMETERS, &mut privet_prg::Prg::from_os().expect("entropy"))
    });
    let _ = KEY.open(bytes, &[0, 5]);
}

/// A public key with those that merge replies. It has some hundred kilobytes: the given ones, repeated, are one of the right length.
fn bfv_merging(bytes: &[u8]) {
    let parameters = merging();
    let length = parameters.public_key_bytes();
    if !bytes.is_empty() {
        let whole: Vec<u8> = bytes.iter().copied().cycle().take(length).collect();
        let _ = privet_bfv::PublicKey::from_bytes(parameters, &whole);
        // An honest key but for these bytes, where the first three say.
        static HONEST: LazyLock<Vec<u8>> = LazyLock::new(|| {
            let mut prg = privet_prg::Prg::from_os().expect("entropy");
            privet_bfv::SecretKey::generate(merging(), &mut prg).public_key(&mut prg)
        });
        let mut key = HONEST.clone();
        let place = bytes.iter().take(3).fold(0, |place, &byte| place << 8 | usize::from(byte)) % length;
        let end = length.min(place + bytes.len());
        key[place..end].copy_from_slice(&bytes[..end - place]);
        let _ = privet_bfv::PublicKey::from_bytes(parameters, &key);
    }
    let _ = privet_bfv::PublicKey::from_bytes(parameters, bytes);
}

/// Parameters under which replies are merged.
pub fn merging() -> &'static Parameters {
    static PARAMETERS: LazyLock<Parameters> = LazyLock::new(|| {
        let plain = Parameters::choose(20, 8, 16, 4096, Resharing::Approximate).expect("parameters");
        plain.merging(1).expect("room for a special prime")
    });
    &PARAMETERS
}

fn bfv_slots(bytes: &[u8]) {
    static PARAMETERS: LazyLock<slots::Parameters> = LazyLock::new(|| {
        let field = Field::over(Modulus::new(24)).expect("a field");
        slots::Parameters::choose(field.prime(), 16, 1, 1).expect("parameters")
    });
    let _ = slots::PublicKey::from_bytes(&PARAMETERS, bytes);
    let _ = slots::Ciphertext::from_bytes(&PARAMETERS, bytes);
}

fn paillier_key(bytes: &[u8]) {
    let _ = PublicKey::from_bytes(KeySize::Bits2048, bytes);
}

fn paillier(bytes: &[u8]) {
    static KEY: LazyLock<PublicKey> =
        LazyLock::new(|| privet_paillier::PrivateKey::generate(KeySize::Bits2048).expect("a key").public().clone());
    for count in [0, 1, 2, usize::MAX / 512] {
        let _ = Ciphertexts::from_bytes(&KEY, count, bytes);
    }
}

/// A peer that sends these frames, each behind its length in two bytes, and leaves.
fn peer(bytes: &[u8]) -> Channel {
    let (mut near, mut far) = pair();
    near.set_timeout(Duration::from_secs(5));
    let mut rest = bytes;
    while let Some((length, tail)) = rest.split_first_chunk::<2>() {
        let (frame, tail) = tail.split_at(usize::from(u16::from_le_bytes(*length)).min(tail.len()));
        if far.send(frame).is_err() {
            break;
        }
        rest = tail;
    }
    near
}

/// A store that lives as long as the process.
fn store() -> Store {
    static FOLDER: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().expect("a folder"));
    Store::open(FOLDER.path()).expect("a store")
}

/// A server of suites `gmw` and `fss`, whose client sends anything.
fn server(bytes: &[u8]) {
    static CATALOG: LazyLock<Catalog> = LazyLock::new(|| {
        let mut catalog = Catalog::default();
        catalog.add(sharing::load(PUBLIC.to_vec(), PRIVATE).expect("a served program"));
        catalog
    });
    let server = registry::server(CATALOG.clone(), store(), Policy::default()).expect("nothing is counted");
    let _ = server.serve(peer(bytes), &mut Silent, &mut |_| ());
}

/// A client whose server sends anything.
fn client(bytes: &[u8]) {
    let plan = Plan::new(Program::parse(PUBLIC).expect("a program"), Options::from(Rounds::Linear)).expect("a plan");
    for step in 0..2 {
        let Ok(mut client) = Client::new(peer(bytes), store()) else { return };
        match step {
            0 => drop(client.describe(None, None)),
            _ => drop(client.prepare(&plan, &mut Silent)),
        }
    }
}

/// A dealer whose server or client sends anything.
fn dealer(bytes: &[u8]) {
    let Ok(dealer) = registry::dealer(1 << 24, Duration::from_millis(20)) else { return };
    let _ = dealer.serve(peer(bytes));
}

/// A provider of suite `stream`, whose client sends anything.
fn stream(bytes: &[u8]) {
    let Ok(server) = privet_suites::stream::Server::new(PUBLIC.to_vec(), PRIVATE) else { return };
    let _ = server.serve(None, None, peer(bytes), &mut Silent, &mut |_| ());
}
