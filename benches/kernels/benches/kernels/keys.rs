//! Function secret sharing: comparisons of one party, and ReLU keys at the dealer.

use std::error::Error;
use std::hint::black_box;

use privet_fss::{Gate, Relu, Seeds, point};
use privet_kernels::{Bench, Limit};
use privet_prg::{Prg, TreeHashes};
use privet_ring::{Lines, Modulus};

const KEYS: usize = 1 << 17;

/// Functions by lines that are looked up, and the binary logarithm of the lines of each.
const LOOK_UPS: usize = 1 << 13;
const INDEX_BITS: u32 = 9;

pub fn run(bench: &mut Bench) -> Result<(), Box<dyn Error>> {
    let mut prg = Prg::from_os()?;
    let hashes = TreeHashes::new(&prg.seed());
    for bits in [24, 63] {
        let levels = point::words(bits);
        let mut roots = [vec![0; KEYS], vec![0; KEYS]];
        roots.iter_mut().for_each(|roots| prg.fill_blocks(roots));
        roots[0].iter_mut().for_each(|root| *root &= !1);
        roots[1].iter_mut().for_each(|root| *root |= 1);
        let points: Vec<u64> = (0..KEYS).map(|_| prg.word() >> (64 - bits)).collect();
        let words = point::plant(bits, &hashes, [&roots[0], &roots[1]], &points);
        let (mut nodes, mut out) = (roots[0].clone(), vec![0; KEYS]);
        let limit = Limit {
            aes: (levels * KEYS) as f64,
            bytes: (16 * levels * KEYS) as f64,
            why: "one AES block a level; 16 bytes of key a level",
            ..Limit::default()
        };
        bench.run(&format!("fss-compare-{bits}-bits-131072"), limit, || {
            // The nodes of the last run are roots as good as any.
            point::at_most(bits, &hashes, &mut nodes, black_box(&points), &words, &mut out);
        });
    }
    look_up(bench, &mut prg);
    let gate = Relu::new(25, 37);
    let seeds = Seeds::draw(&mut prg);
    let levels = point::words(24);
    let limit = Limit {
        aes: (2 * levels * KEYS) as f64,
        bytes: gate.key_bytes(KEYS).words as f64,
        why: "one AES block a level and party; every word written",
        ..Limit::default()
    };
    bench.run("fss-deal-relu-131072", limit, || gate.deal(KEYS, &seeds, &mut std::io::sink()).expect("a sink"));
    Ok(())
}

/// The client's shares of unit vectors over the lines, and the sums over them.
fn look_up(bench: &mut Bench, prg: &mut Prg) {
    let lines = 1 << INDEX_BITS;
    let mut values = || (0..lines).map(|_| prg.word().cast_signed()).collect::<Vec<_>>();
    let table = Lines::new(&values(), &values(), 9, true, Modulus::new(37));
    let (mut vectors, indices, mut sums) = (vec![0; LOOK_UPS * lines / 64], vec![5; LOOK_UPS], vec![[0; 2]; LOOK_UPS]);
    let limit = Limit { aes: (LOOK_UPS * lines / 128) as f64, why: "one AES block for 128 lines", ..Limit::default() };
    bench.run(&format!("fss-lines-{lines}-{LOOK_UPS}"), limit, || {
        prg.fill_words(&mut vectors);
        table.chosen(&vectors, black_box(&indices), &mut sums);
        black_box(&sums);
    });
}
