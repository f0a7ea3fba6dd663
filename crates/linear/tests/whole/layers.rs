//! Shares of every kind of layer sum to what plain loops compute, and cost what the formula says.

use crate::support::{apply, check, check_with, elements, prg, run, weights};
use privet_linear::{Conv2d, Diagonal, Keep, Layer, MatMul, Plan, Resharing, Workspace};
use proptest::prelude::*;

fn square(channels: usize, size: usize, outputs: usize, kernel: usize) -> Conv2d {
    Conv2d {
        batch: 1,
        in_channels: channels,
        height: size,
        width: size,
        out_channels: outputs,
        kernel: [kernel; 2],
        stride: [1; 2],
        padding: [kernel / 2; 4],
        dilation: [1; 2],
        groups: 1,
    }
}

#[test]
fn convolutions_of_real_networks() {
    let layers = [
        square(3, 32, 16, 3),
        square(16, 8, 16, 3),
        square(64, 7, 32, 1),
        Conv2d { stride: [2; 2], ..square(8, 16, 16, 3) },
        Conv2d { stride: [2; 2], ..square(16, 14, 32, 1) },
        Conv2d { stride: [2; 2], padding: [3; 4], ..square(3, 56, 8, 7) },
        Conv2d { groups: 24, ..square(24, 10, 24, 3) },
        Conv2d { groups: 4, batch: 2, ..square(8, 9, 12, 3) },
    ];
    for layer in layers {
        check(&Layer::Conv2d(layer), 37, 16, 1);
    }
}

#[test]
fn an_image_larger_than_a_ciphertext_is_cut_into_tiles() {
    let plan = check(&Layer::Conv2d(square(2, 90, 3, 3)), 37, 16, 2);
    assert!(plan.input_ciphertexts() > 2);
    check(&Layer::Conv2d(Conv2d { stride: [2, 1], padding: [0, 1, 2, 3], ..square(1, 111, 2, 5) }), 32, 12, 3);
}

#[test]
fn matrix_products() {
    for (rows, inner, columns) in
        [(1, 1, 1), (1, 300, 10), (1, 64, 200), (5, 30, 7), (33, 17, 40), (1, 5000, 3), (5000, 2, 2)]
    {
        check(&Layer::MatMul(MatMul { rows, inner, columns }), 37, 16, 4);
    }
}

#[test]
fn elementwise_products() {
    for len in [1, 2, 128, 129, 1000] {
        let plan = check(&Layer::Diagonal(Diagonal { len }), 37, 16, 5);
        assert_eq!(plan.input_ciphertexts(), len.div_ceil(128));
    }
}

#[test]
fn layers_whose_sums_are_merged() {
    let layers = [
        Layer::MatMul(MatMul { rows: 64, inner: 128, columns: 1024 }),
        Layer::MatMul(MatMul { rows: 50, inner: 300, columns: 777 }),
        Layer::Conv2d(square(512, 7, 512, 1)),
        Layer::Conv2d(square(64, 28, 128, 3)),
        Layer::Diagonal(Diagonal { len: 20_001 }),
    ];
    for layer in layers {
        let plan = check(&layer, 39, 12, 7);
        assert!(plan.folds() > 0, "{plan}");
        assert_eq!(plan.replied_results(), plan.output_len());
    }
    // Primes of 58 and 59 bits.
    let wide = check(&Layer::MatMul(MatMul { rows: 256, inner: 256, columns: 768 }), 50, 45, 8);
    assert!(wide.folds() > 0 && wide.parameters().degree() == 8192, "{wide}");
    // Exact shares, and a ring that leaves no room for a special prime, are not merged.
    let layer = Layer::MatMul(MatMul { rows: 64, inner: 64, columns: 256 });
    assert_eq!(check_with(&layer, 39, 12, Resharing::Exact, 8).folds(), 0);
    assert_eq!(check(&layer, 50, 24, 8).folds(), 0);
}

#[test]
fn channels_in_blocks_of_their_own() {
    let layers = [
        Layer::Conv2d(square(3, 60, 30, 1)),
        Layer::Conv2d(Conv2d { stride: [2, 1], ..square(5, 60, 3, 1) }),
        Layer::Conv2d(Conv2d { batch: 2, ..square(9, 22, 50, 1) }),
        Layer::MatMul(MatMul { rows: 100, inner: 700, columns: 900 }),
        // More ciphertexts than a panel holds.
        Layer::MatMul(MatMul { rows: 3000, inner: 300, columns: 2 }),
    ];
    for layer in layers {
        let plan = check(&layer, 39, 12, 14);
        assert!(plan.weight_polynomials() == 0, "{plan}");
        assert_eq!(plan.replied_results(), plan.output_len());
        assert!(plan.kept_bytes(Keep::Transformed) <= 4 * plan.weights_len() as u64);
        // Weights that are kept in 64 bits.
        let wide = check(&layer, 40, 35, 15);
        assert!(wide.weight_polynomials() == 0, "{wide}");
    }
}

#[test]
fn three_groups_in_three_of_four_lanes() {
    // The large layer pays for the keys.
    let large = Layer::MatMul(MatMul { rows: 64, inner: 768, columns: 3072 });
    let small = Layer::Conv2d(Conv2d { groups: 3, ..square(6, 14, 6, 1) });
    let plan = Plan::for_program(&[large, small.clone()], 39, 12, Resharing::Approximate).unwrap().pop().unwrap();
    assert_eq!((plan.products(), plan.folds(), plan.output_ciphertexts()), (3, 2, 1), "{plan}");
    let r = elements(plan.input_len(), 39, &mut prg(11));
    let w = weights(plan.weights_len(), 12, &mut prg(12));
    let outcome = run(&plan, &r, &w, 13);
    for ((client, server), expected) in outcome.client.iter().zip(&outcome.server).zip(apply(&small, &r, &w)) {
        let error = (client.wrapping_add(*server).wrapping_sub(expected) << 25) as i64 >> 25;
        assert!(error.abs() <= 1, "off by {error}");
    }
}

#[test]
fn sums_are_not_merged_where_the_wider_modulus_takes_what_that_saves() {
    // One bit more, for the noise of merging: all ciphertexts grow.
    let plan = check(&Layer::MatMul(MatMul { rows: 60, inner: 512, columns: 240 }), 43, 18, 10);
    let wider = plan.parameters().merging(1).expect("merging is possible");
    assert!(wider.ciphertext_bytes() > plan.parameters().ciphertext_bytes());
    assert_eq!(plan.folds(), 0);
}

#[test]
fn weights_too_many_to_keep_transformed() {
    let plan = check(&Layer::MatMul(MatMul { rows: 1, inner: 4096, columns: 2000 }), 37, 8, 6);
    assert!(plan.kept_bytes(Keep::Transformed) > 64 << 20);
    assert_eq!(Workspace::standard(&plan).keep, Keep::Plain);
}

#[test]
fn exact_resharing() {
    // The flood is as wide as weights, their number and that of all results ask.
    let layers = [
        (square(3, 32, 16, 3), 8192),
        (square(64, 7, 32, 1), 8192),
        (Conv2d { groups: 24, ..square(24, 10, 24, 3) }, 4096),
    ];
    for (layer, degree) in layers {
        let plan = check_with(&Layer::Conv2d(layer), 37, 16, Resharing::Exact, 9);
        assert_eq!((plan.error_bound(), plan.parameters().degree()), (0, degree));
    }
    let large = Layer::MatMul(MatMul { rows: 1, inner: 5000, columns: 3 });
    assert_eq!(check_with(&large, 37, 16, Resharing::Exact, 9).parameters().degree(), 8192);
    check_with(&Layer::MatMul(MatMul { rows: 2, inner: 20, columns: 20 }), 45, 10, Resharing::Exact, 9);
}

#[test]
fn every_supported_ring() {
    for ring_bits in [8, 16, 24, 32, 41, 46, 50] {
        check(&Layer::MatMul(MatMul { rows: 2, inner: 20, columns: 20 }), ring_bits, 10, 7);
    }
}

#[test]
fn weights_so_heavy_that_the_degree_doubles() {
    let plan = check(&Layer::MatMul(MatMul { rows: 1, inner: 30_000, columns: 2 }), 50, 31, 8);
    assert_eq!(plan.parameters().degree(), 8192);
}

fn convolutions() -> impl Strategy<Value = Conv2d> {
    let channels = (1_usize..=4, 1_usize..=3, 1_usize..=3);
    let image = (1_usize..=2, 1_usize..=14, 1_usize..=14);
    let axis = || (1_usize..=4, 1_usize..=3, 1_usize..=3, 0_usize..=3, 0_usize..=3);
    (channels, image, axis(), axis()).prop_filter_map(
        "the kernel must fit the image",
        |(channels, image, down, right)| {
            let (groups, per_in, per_out) = channels;
            let (batch, height, width) = image;
            let layer = Conv2d {
                batch,
                in_channels: groups * per_in,
                height,
                width,
                out_channels: groups * per_out,
                kernel: [down.0, right.0],
                stride: [down.1, right.1],
                padding: [down.3, right.3, down.4, right.4],
                dilation: [down.2, right.2],
                groups,
            };
            let fits =
                height + down.3 + down.4 > down.2 * (down.0 - 1) && width + right.3 + right.4 > right.2 * (right.0 - 1);
            fits.then_some(layer)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]
    #[test]
    fn any_convolution(layer in convolutions(), ring_bits in 16_u32..=50, weight_bits in 1_u32..=20, seed in 0_u8..128) {
        check(&Layer::Conv2d(layer), ring_bits, weight_bits, seed);
    }

    #[test]
    fn any_layer_of_large_tiles_without_a_kernel(
        (width, inner, outputs, stride) in (65_usize..=700, 1_usize..=40, 1_usize..=30, 1_usize..=2),
        ring_bits in 8_u32..=50,
        weight_bits in 1_u32..=30,
        is_exact in any::<bool>(),
        seed in 0_u8..128,
    ) {
        let exact = is_exact && ring_bits <= 45 && ring_bits + weight_bits <= 60;
        let resharing = if exact { Resharing::Exact } else { Resharing::Approximate };
        let rows = Layer::MatMul(MatMul { rows: width, inner, columns: outputs });
        let pixels = Conv2d { batch: 2, width, kernel: [stride; 2], stride: [stride; 2], ..square(inner, 5, outputs, 1) };
        for layer in [rows, Layer::Conv2d(pixels)] {
            check_with(&layer, ring_bits, weight_bits, resharing, seed);
        }
    }

    #[test]
    fn any_matrix_product(rows in 1_usize..=40, inner in 1_usize..=200, columns in 1_usize..=80, seed in 0_u8..128) {
        check(&Layer::MatMul(MatMul { rows, inner, columns }), 37, 16, seed);
    }
}
