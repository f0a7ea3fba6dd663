//! Writes the seeds of `corpus/` anew: what honest parties send each other, and what honest encoders write.
//!
//!     cargo run --release -p privet-audit --example corpus

use std::error::Error;
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use privet_audit::decoders::{self, dealt_plan, merging};
use privet_bfv::{Parameters, Resharing, slots};
use privet_channel::record::{self, Direction, Transcript};
use privet_ot::{Demand, ProductCounts, Stock, TableCounts};
use privet_paillier::{KeySize, PrivateKey};
use privet_prg::Prg;
use privet_program::Program;
use privet_ring::{Field, Modulus};
use privet_suites::policy::{Guard, Policy};
use privet_suites::session::{Catalog, Client};
use privet_suites::sharing::{self, Options, Plan, Rounds};
use privet_suites::suite::SuitePlan;
use privet_suites::{Silent, Store, registry, stream};

const PUBLIC: &[u8] = include_bytes!("../../suites/tests/fixtures/choice/program.json");
const PRIVATE: &[u8] = include_bytes!("../../suites/tests/fixtures/choice/weights.safetensors");
const RESIDUAL: &[u8] = include_bytes!("../../suites/tests/fixtures/residual/program.json");

type Failure = Box<dyn Error>;

fn main() -> Result<(), Failure> {
    keep("program", "choice", PUBLIC)?;
    keep("program", "residual", RESIDUAL)?;
    keep("weights", "choice", PRIVATE)?;
    let mut prg = Prg::from_os()?;
    let demand = Demand {
        private_ands: 9,
        triples: 9,
        products_sent_by_server: ProductCounts::of(20, 3),
        tables_sent_by_server: TableCounts { eights: 9, sixteens: 9 },
        ..Demand::NONE
    };
    let (stock, _) = Stock::deal(&demand, &mut prg);
    keep("stock", "small", &stock.to_bytes())?;
    let packed = Modulus::new(37).pack(&[1, 2, 3, 4]);
    keep("ring", "four", &[&[36], &packed[..]].concat())?;
    encrypted(&mut prg)?;
    let key = PrivateKey::generate(KeySize::Bits2048)?;
    keep("paillier-key", "honest", &key.public().to_bytes())?;
    keep("paillier", "two", &key.encrypt(&[1.into(), 2.into()])?.to_bytes())?;
    sessions()?;
    streamed()
}

fn keep(decoder: &str, name: &str, bytes: &[u8]) -> Result<(), Failure> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(decoder);
    fs::create_dir_all(&folder)?;
    Ok(fs::write(folder.join(name), bytes)?)
}

fn keep_link(decoder: &str, name: &str, link: &Mutex<Transcript>, from: Direction) -> Result<(), Failure> {
    keep(decoder, name, &sent(link, from)?)
}

/// What one side of a link sent, as the decoders of sessions take it.
fn sent(link: &Mutex<Transcript>, from: Direction) -> Result<Vec<u8>, Failure> {
    let transcript = link.lock().map_err(|_| "a party panicked")?;
    let mut bytes = Vec::new();
    for payload in transcript.payloads(from) {
        bytes.push(1);
        bytes.extend(u32::try_from(payload.len())?.to_le_bytes());
        bytes.extend(payload);
    }
    Ok(bytes)
}

fn encrypted(prg: &mut Prg) -> Result<(), Failure> {
    let parameters = Parameters::choose(20, 8, 16, 4096, Resharing::Approximate)?;
    keep_part("bfv", 0, &privet_bfv::SecretKey::generate(&parameters, prg).public_key(prg))?;
    let key = privet_bfv::SecretKey::generate(merging(), prg).public_key(prg);
    keep_part("bfv-merging", merging().ciphertext_bytes(), &key)?;
    let field = Field::over(Modulus::new(24)).ok_or("a field")?;
    let parameters = slots::Parameters::choose(field.prime(), 16, 1, 1)?;
    keep_part("bfv-slots", 0, &slots::SecretKey::generate(&parameters, prg).public_key(prg))
}

/// Some of a key's bytes behind their place: a key is long and uniform, and a part of it will do.
fn keep_part(decoder: &str, place: usize, key: &[u8]) -> Result<(), Failure> {
    let place_bytes = &u32::try_from(place)?.to_be_bytes()[1..];
    keep(decoder, "key", &[place_bytes, &key[place..][..4096]].concat())
}

/// Sessions of suites `gmw` and `fss`, with and without a dealer.
fn sessions() -> Result<(), Failure> {
    let folders = [tempfile::tempdir()?, tempfile::tempdir()?];
    let [client_folder, server_folder] = &folders;
    let mut catalog = Catalog::default();
    catalog.add(sharing::load(PUBLIC.to_vec(), PRIVATE)?);
    let dealer = Arc::new(registry::dealer(1 << 30, Duration::from_secs(60))?);
    let links: Arc<Mutex<Vec<Arc<Mutex<Transcript>>>>> = Arc::default();
    let (transcripts, shared_dealer) = (Arc::clone(&links), Arc::clone(&dealer));
    let connect = privet_suites::session::Connect::new(move || {
        let (near, far, transcript) = record::pair();
        transcripts.lock().expect("no panic").push(transcript);
        let dealer = Arc::clone(&shared_dealer);
        thread::spawn(move || dealer.serve(far).map(|_| ()));
        Ok(near)
    });
    let server = registry::server(catalog, Store::open(server_folder.path())?, Policy::unrestricted())?
        .with_dealer(connect.clone());
    let plans: [(_, Box<dyn SuitePlan>); 3] = [
        ("gmw", Box::new(Plan::new(Program::parse(PUBLIC)?, Options::from(Rounds::Linear))?)),
        ("fss", dealt_plan(false)),
        ("fss-malicious", dealt_plan(true)),
    ];
    for (mode, (name, plan)) in plans.iter().enumerate() {
        let (near, far, transcript) = record::pair();
        thread::scope(|scope| -> Result<(), Failure> {
            scope.spawn(|| server.serve(far, &mut Silent, &mut |_| ()));
            let mut client = Client::new(near, Store::open(client_folder.path())?)?.with_dealer(connect.clone());
            client.describe(None, None)?;
            let (id, _) = client.prepare(&**plan, &mut Silent)?;
            let len = plan.program().value(plan.program().inputs()[0].value).len();
            client.infer(&**plan, &id, &[vec![1; len]], &mut Silent)?;
            Ok(client.close()?)
        })?;
        let links = std::mem::take(&mut *links.lock().map_err(|_| "a party panicked")?);
        let [client, server] = [Direction::FirstToSecond, Direction::SecondToFirst].map(|from| sent(&transcript, from));
        let (client, server) = (client?, server?);
        if links.is_empty() {
            keep("client", name, &server)?;
            keep("server", name, &beside(&client, &[])?)?;
        }
        for (index, link) in links.iter().enumerate() {
            keep_link("dealer", &format!("{name}-{index}"), link, Direction::FirstToSecond)?;
            let from_dealer = sent(link, Direction::SecondToFirst)?;
            let to_client = [&[u8::try_from(mode - 1)?][..], &beside(&server, &from_dealer)?].concat();
            // What the dealer told one party does not do for the other.
            for (decoder, bytes) in [("dealt", to_client), ("server", beside(&client, &from_dealer)?)] {
                if decoders::named(decoder).is_some_and(|decoder| (decoder.run)(&bytes)) {
                    keep(decoder, name, &bytes)?;
                }
            }
        }
    }
    Ok(())
}

/// What a party and the dealer send, as decoders take both.
fn beside(from_peer: &[u8], from_dealer: &[u8]) -> Result<Vec<u8>, Failure> {
    Ok([&u32::try_from(from_peer.len())?.to_le_bytes()[..3], from_peer, from_dealer].concat())
}

fn streamed() -> Result<(), Failure> {
    // Nothing is counted: the folder is never made.
    let guard = Guard::new(Policy::unrestricted(), "unused")?;
    let server = stream::Server::new(PUBLIC.to_vec(), PRIVATE)?.under(guard);
    let (near, far, transcript) = record::pair();
    thread::scope(|scope| -> Result<(), Failure> {
        scope.spawn(|| server.serve(None, None, far, &mut Silent, &mut |_| ()));
        let plan = stream::Plan::new(Program::parse(PUBLIC)?, stream::Cipher::Bfv)?;
        let len = plan.program().value(plan.program().inputs()[0].value).len();
        let mut client = stream::Client::new(near)?;
        client.describe(None)?;
        client.prepare(&plan, &mut Silent)?;
        client.infer(&plan, &[vec![1; len]], &mut Silent)?;
        Ok(client.close()?)
    })?;
    keep_link("stream", "bfv", &transcript, Direction::FirstToSecond)?;
    keep_link("stream-client", "bfv", &transcript, Direction::SecondToFirst)
}
