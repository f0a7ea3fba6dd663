//! ReLUs a second of two parties on a core each, malicious beside semi-honest, in one run.
//!
//! `cargo run --release -p privet-shark --example relus [count]`; the default count is a million.

use std::time::Instant;

use privet_channel::{Channel, pair};
use privet_fss::{Gate, KeyBytes, Role, Seeds};
use privet_prg::Prg;
use privet_ring::Modulus;
use privet_shark::{Dealer, Key, Keys, Party, Relu, Values, dealer};

/// Each figure is the best of as many runs: other processes only ever slow one down.
const RUNS: usize = 7;

fn main() {
    let argument = std::env::args().nth(1).map(|count| count.parse().expect("a number of ReLUs"));
    let count: usize = argument.unwrap_or(1_000_000);
    for (bits, dropped, wide) in [(64, 0, 64), (37, 0, 37), (25, 0, 37), (37, 12, 37)] {
        report(bits, dropped, wide, count);
    }
}

fn report(bits: u32, dropped: u32, wide: u32, count: usize) {
    let gate = Relu::new(bits, dropped, wide);
    let bytes = gate.key_bytes(count) + KeyBytes { words: 0, corrections: dealer::MASK_BYTES * count };
    let (dealing, online) = malicious(gate, bits, count);
    let semi_honest = if std::env::var_os("ONLY").is_some() { 1.0 } else { semi_honest(bits - dropped, wide, count) };
    println!(
        "{bits} bits without {dropped} into {wide}: {} bytes of key at the server, {} at the client; {:.2} million/s dealt, \
         {:.2} million/s online ({:.3} s for {count}); semi-honest {:.2} million/s, {:.2} times as many",
        bytes.of(Role::Server) / count,
        bytes.of(Role::Client) / count,
        1e-6 * count as f64 / dealing,
        1e-6 * count as f64 / online,
        online,
        1e-6 * count as f64 / semi_honest,
        online / semi_honest,
    );
}

/// Seconds to deal, and seconds online: opening behind masks, the gate, and a check.
fn malicious(gate: Relu, bits: u32, count: usize) -> (f64, f64) {
    let mut prg = Prg::from_os().expect("entropy");
    let (setup, seeds) = (Seeds::draw(&mut prg), Seeds::draw(&mut prg));
    let mut bodies = [Vec::new(), Vec::new()];
    let start = Instant::now();
    let [client, server] = &mut bodies;
    one_core(|| {
        let mut dealer = Dealer::new(&Keys::new(&setup), &seeds, client, server);
        let masks = dealer.masks(count).expect("a vector takes everything");
        gate.deal(&mut dealer, &masks).expect("a vector takes everything");
    });
    let dealing = start.elapsed().as_secs_f64();
    let ring = Modulus::new(bits);
    let play = |role, channel: &mut Channel, setup, seed, mut body: &[u8]| {
        one_core(|| {
            let key = Key::new(role, setup);
            let mut party = Party::new(&key, channel, seed, &mut body, b"rate");
            let x = party.mask(&Values::public(&key, &vec![5; count]), ring)?;
            gate.evaluate(&mut party, &x)?;
            party.check()
        })
        .expect("an honest run");
    };
    let online = best(|| {
        let (mut client, mut server) = pair();
        std::thread::scope(|scope| {
            scope.spawn(|| play(Role::Server, &mut server, &setup.server, &seeds.server, &bodies[1]));
            play(Role::Client, &mut client, &setup.client, &seeds.client, &bodies[0]);
        });
    });
    (dealing, online)
}

/// Seconds online of the semi-honest gate.
fn semi_honest(bits: u32, wide: u32, count: usize) -> f64 {
    let gate = privet_fss::Relu::new(bits, wide);
    let seeds = Seeds::draw(&mut Prg::from_os().expect("entropy"));
    let mut words = Vec::new();
    let corrections = gate.deal(count, &seeds, &mut words).expect("a vector takes everything");
    let bodies = [words.clone(), [words, corrections].concat()];
    let x = vec![0; count];
    best(|| {
        let (mut client, mut server) = pair();
        let play = |role, channel, seed, mut body: &[u8]| {
            let party = &mut privet_fss::Party { role, channel };
            one_core(|| gate.evaluate(party, seed, &mut body, &x)).expect("an honest run");
        };
        std::thread::scope(|scope| {
            scope.spawn(|| play(Role::Server, &mut server, &seeds.server, &bodies[1]));
            play(Role::Client, &mut client, &seeds.client, &bodies[0]);
        });
    })
}

/// Runs on one core, whatever the machine has.
fn one_core<T: Send>(run: impl FnOnce() -> T + Send) -> T {
    rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("one thread").install(run)
}

/// Seconds of the fastest run.
fn best(mut run: impl FnMut()) -> f64 {
    (0..RUNS)
        .map(|_| {
            let start = Instant::now();
            run();
            start.elapsed().as_secs_f64()
        })
        .fold(f64::INFINITY, f64::min)
}
