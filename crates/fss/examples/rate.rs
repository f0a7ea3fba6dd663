//! Comparisons a second on one core, beside what AES and memory allow in the same run, and ReLUs of two parties.
//!
//! `cargo run --release -p privet-fss --example rate [keys]`; with `PRIVET_PORTABLE=1` for the portable code.

use std::hint::black_box;
use std::time::Instant;

use privet_channel::pair;
use privet_fss::group::TaggedBit;
use privet_fss::point::{self, Table};
use privet_fss::{Compared, Gate, Party, Relu, Role, Seeds, dcf};
use privet_prg::{Block, Prg, TreeHashes, paths};

/// Each figure is the best of as many runs: other processes only ever slow one down.
const RUNS: usize = 5;

fn main() {
    let argument = std::env::args().nth(1).map(|keys| keys.parse().expect("a number of keys"));
    let keys: usize = argument.unwrap_or(1 << 18);
    let one_core = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("one thread");
    one_core.install(|| report(keys));
}

fn report(keys: usize) {
    let mut prg = Prg::from_os().expect("entropy");
    let mut blocks = vec![1; paths::GROUP];
    let hashes = 1 << 15;
    let keyed = TreeHashes::new(&prg.seed());
    let hash = keyed.part(0);
    let aes =
        best(|| (0..hashes).for_each(|_| paths::hash(&hash, black_box(&mut blocks)))) / (hashes * blocks.len()) as f64;
    println!("AES as a hash, from cache: {:.0} million/s", 1e-6 / aes);
    for bits in [24, 36, 63, 64] {
        let levels = point::words(bits);
        let roots = roots(keys, &mut prg);
        let mut points = vec![0; keys];
        prg.fill_words(&mut points);
        points.iter_mut().for_each(|point| *point >>= 64 - bits);
        let words = point::plant(Table::Step, bits, &keyed, [&roots[0], &roots[1]], &points);
        let mut out = vec![0; keys];
        let mut nodes = roots[0].clone();
        // The nodes of the last run are roots as good as any.
        let walk = best(|| point::at_most(bits, &keyed, &mut nodes, &points, &words, &mut out)) / keys as f64;
        let read = best(|| {
            black_box(words.iter().fold(0, |sum, word| sum ^ u128::from_le_bytes(*word)));
        }) / keys as f64;
        println!(
            "{bits} bits, {} bytes: {:.2} million/s, {:.1} GB/s; AES alone {:.0} %, memory alone {:.0} % of the time",
            16 * levels,
            1e-6 / walk,
            16e-9 * levels as f64 / walk,
            100.0 * levels as f64 * aes / walk,
            100.0 * read / walk,
        );
    }
    tagged(keys / 16, &mut prg);
    for (bits, wide) in [(25, 37), (37, 37), (64, 64)] {
        let gate = Relu::new(bits, wide);
        let bytes = gate.key_bytes(keys);
        let seeds = Seeds::draw(&mut prg);
        let deal = best(|| {
            black_box(gate.deal(keys, &seeds, &mut std::io::sink()).expect("a sink takes everything"));
        });
        println!(
            "ReLU {bits} to {wide} bits: {:.2} + {:.2} bytes of key, {:.2} million/s dealt, {:.2} million/s online",
            bytes.words as f64 / keys as f64,
            bytes.corrections as f64 / keys as f64,
            1e-6 * keys as f64 / deal,
            1e-6 * keys as f64 / online(gate, keys, &seeds),
        );
    }
}

/// Both parties' roots.
fn roots(keys: usize, prg: &mut Prg) -> [Vec<Block>; 2] {
    [0, 1].map(|mark| {
        let mut roots = vec![0; keys];
        prg.fill_blocks(&mut roots);
        roots.iter_mut().for_each(|root| *root = *root & !1 | mark);
        roots
    })
}

/// Comparison functions of 64 bits whose value is a bit and its tag.
fn tagged(keys: usize, prg: &mut Prg) {
    let (roots, hashes) = (roots(keys, prg), TreeHashes::new(&prg.seed()));
    let mut points = vec![0; keys];
    prg.fill_words(&mut points);
    let values = vec![(true, prg.block()); keys];
    let mut dealt = Vec::new();
    let plant = best(|| dealt = dcf::plant(&TaggedBit, 64, &hashes, [&roots[0], &roots[1]], &points, &values));
    let read = best(|| {
        black_box(dcf::at_most(&TaggedBit, 64, Role::Client, &hashes, &roots[0], &points, &dealt));
    });
    println!(
        "64 bits with a tagged bit, {} bytes: {:.2} million/s evaluated, {:.2} million/s dealt",
        dcf::key_bytes(64, &TaggedBit),
        1e-6 * keys as f64 / read,
        1e-6 * keys as f64 / plant,
    );
}

/// Seconds of both parties, each on a core of its own, over a channel in memory.
fn online(gate: Relu, keys: usize, seeds: &Seeds) -> f64 {
    let mut words = Vec::new();
    let corrections = gate.deal(keys, seeds, &mut words).expect("a vector takes everything");
    let bodies = [words.clone(), [words, corrections].concat()];
    let x = vec![0; keys];
    best(|| {
        let (mut client, mut server) = pair();
        let run = |role, channel, seed, mut body: &[u8]| {
            let one_core = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("one thread");
            let party = &mut Party { role, channel };
            one_core.install(|| gate.evaluate(party, seed, &mut body, &x)).expect("an honest run");
        };
        std::thread::scope(|scope| {
            scope.spawn(|| run(Role::Server, &mut server, &seeds.server, &bodies[1]));
            run(Role::Client, &mut client, &seeds.client, &bodies[0]);
        });
    })
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
