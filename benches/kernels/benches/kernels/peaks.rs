//! What the machine at hand can do: the units in which limits are told.

use std::hint::black_box;

use privet_kernels::{Bench, Limit};
use privet_prg::{KeyStream, Seed};

pub fn run(bench: &mut Bench) {
    let limit = |why| Limit { why, ..Limit::default() };
    let stream = KeyStream::new(&Seed::from_block(1));
    let mut blocks = vec![0; 1024];
    bench.run("peak-aes", limit("1,024 blocks of AES-128 in counter mode, in cache"), || {
        stream.blocks(0, black_box(&mut blocks));
    });
    // Three cycles each on processors of this decade. Of additions some of them take several in a cycle, though each waits for the last.
    bench.run("peak-cycles", limit("2,048 squarings, each waiting for the one before it"), || {
        (0..2048).fold(black_box(5u64), |x, _| x.wrapping_mul(x))
    });
    let source = vec![1u64; 16 << 20];
    let mut target = vec![0u64; 16 << 20];
    bench.run("peak-memory", limit("copy of 128 MiB: as many bytes read and written"), || {
        black_box(&mut target).copy_from_slice(black_box(&source));
    });
}
