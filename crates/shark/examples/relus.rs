//! ReLUs a second of two parties on a core each, malicious beside semi-honest, in one run.
//!
//! `cargo run --release -p privet-shark --example relus [count]`; the default count is a million.

use std::time::Instant;

use privet_channel::{Channel, pair};
use privet_fss::{Compared, Gate as _, KeyBytes, Role, Seeds};
use privet_prg::Prg;
use privet_ring::Modulus;
use privet_shark::{Dealer, Gate as _, Key, Keys, Party, Relu, Values, dealer};

/// Each figure is the best of as many runs: other processes only ever slow one down.
const RUNS: usize = 5;

fn main() {
    let argument = std::env::args().nth(1).map(|count| count.parse().expect("a number of ReLUs"));
    let count: usize = argument.unwrap_or(1_000_000);
    for (bits, dropped, wide) in [(64, 0, 64), (37, 0, 37), (25, 0, 37), (37, 12, 37)] {
        report(bits, dropped, wide, count);
    }
}

fn report(bits: u32, dropped: u32, wide: u32, count: usize) {
    let (gate, plain) = (Relu::new(bits, dropped, wide), privet_fss::Relu::new(bits - dropped, wide));
    let bytes = gate.key_bytes(count) + KeyBytes { words: 0, corrections: dealer::MASK_BYTES * count };
    let malicious = Malicious::new(gate, bits, count);
    let semi_honest = SemiHonest::new(plain, count);
    // By turns, so that other load falls on both.
    let (mut best, mut plain_best) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..RUNS {
        best = best.min(seconds(|| malicious.run(count)));
        plain_best = plain_best.min(seconds(|| semi_honest.run(count)));
    }
    println!(
        "{bits} bits without {dropped} into {wide}: {} bytes of key at the server, {} at the client; {:.2} million/s dealt, \
         {:.2} million/s online ({best:.3} s for {count}); semi-honest {:.2} million/s, {:.2} times as many",
        bytes.of(Role::Server) / count,
        bytes.of(Role::Client) / count,
        1e-6 * count as f64 / malicious.dealing,
        1e-6 * count as f64 / best,
        1e-6 * count as f64 / plain_best,
        best / plain_best,
    );
}

/// What a run of the malicious gate takes.
struct Malicious {
    gate: Relu,
    ring: Modulus,
    setup: Seeds,
    seeds: Seeds,
    bodies: [Vec<u8>; 2],
    /// Seconds that it took to deal.
    dealing: f64,
}

impl Malicious {
    fn new(gate: Relu, bits: u32, count: usize) -> Self {
        let mut prg = Prg::from_os().expect("entropy");
        let (setup, seeds) = (Seeds::draw(&mut prg), Seeds::draw(&mut prg));
        let bytes = gate.key_bytes(count);
        let mut bodies = [Role::Client, Role::Server].map(|role| Vec::with_capacity(bytes.of(role) + 16 * count));
        let [client, server] = &mut bodies;
        let dealing = seconds(|| {
            one_core(|| {
                let mut dealer = Dealer::new(&Keys::new(&setup), &seeds, client, server);
                let masks = dealer.masks(count).expect("a vector takes everything");
                gate.deal(&mut dealer, &masks).expect("a vector takes everything");
            });
        });
        Self { gate, ring: Modulus::new(bits), setup, seeds, bodies, dealing }
    }

    /// Opening behind masks, the gate, and a check.
    fn run(&self, count: usize) {
        both(|role, channel| {
            let (setup, seed, mut body) = match role {
                Role::Client => (&self.setup.client, &self.seeds.client, &self.bodies[0][..]),
                Role::Server => (&self.setup.server, &self.seeds.server, &self.bodies[1][..]),
            };
            let key = Key::new(role, setup);
            let mut party = Party::new(&key, channel, seed, &mut body, b"rate");
            let x = party.mask(&Values::public(&key, &vec![5; count]), self.ring).expect("an honest run");
            self.gate.evaluate(&mut party, &x).expect("an honest run");
            party.check().expect("an honest run");
        });
    }
}

/// What a run of the semi-honest gate takes.
struct SemiHonest {
    gate: privet_fss::Relu,
    seeds: Seeds,
    bodies: [Vec<u8>; 2],
}

impl SemiHonest {
    fn new(gate: privet_fss::Relu, count: usize) -> Self {
        let seeds = Seeds::draw(&mut Prg::from_os().expect("entropy"));
        let mut words = Vec::new();
        let corrections = gate.deal(count, &seeds, &mut words).expect("a vector takes everything");
        Self { gate, seeds, bodies: [words.clone(), [words, corrections].concat()] }
    }

    fn run(&self, count: usize) {
        both(|role, channel| {
            let (seed, mut body) = match role {
                Role::Client => (&self.seeds.client, &self.bodies[0][..]),
                Role::Server => (&self.seeds.server, &self.bodies[1][..]),
            };
            let party = &mut privet_fss::Party { role, channel };
            self.gate.evaluate(party, seed, &mut body, &vec![5; count]).expect("an honest run");
        });
    }
}

/// Both parties, on a core each.
fn both(run: impl Fn(Role, &mut Channel) + Sync) {
    let (mut client, mut server) = pair();
    std::thread::scope(|scope| {
        scope.spawn(|| one_core(|| run(Role::Server, &mut server)));
        one_core(|| run(Role::Client, &mut client));
    });
}

/// Runs on one core, whatever the machine has.
fn one_core<T: Send>(run: impl FnOnce() -> T + Send) -> T {
    rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("one thread").install(run)
}

fn seconds(run: impl FnOnce()) -> f64 {
    let start = Instant::now();
    run();
    start.elapsed().as_secs_f64()
}
