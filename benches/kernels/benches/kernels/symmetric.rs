//! Generator, hash and transpose.

use std::hint::black_box;

use privet_kernels::{Bench, Limit};
use privet_prg::{Prg, Seed, hash, transpose};

const BLOCKS: usize = 1 << 16;

pub fn run(bench: &mut Bench) {
    let mut prg = Prg::from_seed(&Seed::from_block(1));
    let mut bytes = vec![0; 16 * BLOCKS];
    let once = Limit { aes: BLOCKS as f64, why: "one AES block for 16 bytes", ..Limit::default() };
    bench.run("prg-1MiB", once, || prg.fill(black_box(&mut bytes)));

    let blocks = vec![1; BLOCKS];
    let once = Limit { aes: BLOCKS as f64, why: "an AES block a hash", ..Limit::default() };
    let hash = hash::Keys::new(&prg.seed()).at(0);
    let mut bits = vec![[0; 1]; BLOCKS / 64];
    bench.run("hash-65536", once, || hash.low_bits(black_box(&blocks), 0, &mut bits));

    let mut columns = vec![0; BLOCKS];
    let moved = Limit { bytes: 32.0 * BLOCKS as f64, why: "1 MiB read and written", ..Limit::default() };
    bench.run("transpose-128x65536", moved, || transpose::columns(black_box(&blocks), black_box(&mut columns)));
}
