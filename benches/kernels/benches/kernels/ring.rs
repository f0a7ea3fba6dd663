//! Arithmetic and layout modulo a power of two.

use std::hint::black_box;

use privet_kernels::{Bench, Limit};
use privet_ring::linear::{Conv2d, matmul};
use privet_ring::{Modulus, planes};

const COUNT: usize = 1 << 20;

pub fn run(bench: &mut Bench) {
    let (narrow, wide) = (Modulus::new(25), Modulus::new(37));
    let values: Vec<u64> = (0..COUNT as u64).map(|i| narrow.reduce(i.wrapping_mul(0x9e37_79b9_7f4a_7c15))).collect();
    let packed = narrow.pack(&values);
    let moved = |why| Limit { bytes: (8 * COUNT + packed.len()) as f64, why, ..Limit::default() };
    bench.run("pack-25-bits", moved("8 bytes read, 25 bits written, each"), || narrow.pack(black_box(&values)));
    bench.run("unpack-25-bits", moved("25 bits read, 8 bytes written, each"), || {
        narrow.unpack(black_box(&packed), COUNT).expect("the right length")
    });
    let split =
        Limit { bytes: (8 + 3) as f64 * COUNT as f64, why: "8 bytes read, 24 bits written", ..Limit::default() };
    bench.run("bit-planes-24", split, || planes::from_values(black_box(&values), 24));

    let conv = Conv2d {
        in_channels: 64,
        image: [56, 56],
        out_channels: 64,
        positions: [56, 56],
        kernel: [3, 3],
        stride: [1, 1],
        origin: [1, 1],
        dilation: [1, 1],
        groups: 1,
    };
    let weights: Vec<i64> = (0..64 * 64 * 9).map(|i| i * 77 % 4096 - 2048).collect();
    let products = |count: usize| Limit {
        vectors: count as f64 / 8.0,
        why: "one 52-bit multiply-add for eight products",
        ..Limit::default()
    };
    let taps = 9 * 64 * 64 * 56 * 56;
    bench
        .run("conv-56x56x64-3x3", products(taps), || conv.apply(black_box(&values[..64 * 56 * 56]), &weights, 1, wide));
    let weights: Vec<i64> = (0..1024 * 1024).map(|i| i * 77 % 4096 - 2048).collect();
    let once = Limit { bytes: 8.0 * 1024.0 * 1024.0, why: "8 MiB of weights read once", ..Limit::default() };
    bench.run("matmul-1x1024x1024", once, || matmul(black_box(&values[..1024]), &weights, [1, 1024, 1024], wide));
    let rows = 128 * 1024;
    bench.run("matmul-128x1024x1024", products(128 << 20), || {
        matmul(black_box(&values[..rows]), &weights, [128, 1024, 1024], wide)
    });
}
