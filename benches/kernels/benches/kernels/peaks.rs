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
    bench.run("peak-cycles", limit("4,096 additions, each waiting for the one before it"), || {
        let mut sum = black_box(1u64);
        for _ in 0..4096 {
            sum = black_box(sum.wrapping_add(3)) ^ 1;
        }
        sum
    });
    let source = vec![1u64; 16 << 20];
    let mut target = vec![0u64; 16 << 20];
    bench.run("peak-memory", limit("copy of 128 MiB: as many bytes read and written"), || {
        black_box(&mut target).copy_from_slice(black_box(&source));
    });
}
