//! Setups and linear layers: the server's weights times the client's input.

use privet_fss::Role;
use privet_ring::Modulus;
use privet_ring::linear::{Conv2d, matmul};
use privet_shark::{Error, Hiding, Layer, PeerMisbehaved, Setup};
use proptest::prelude::*;

use crate::support::{deal, hide, input, multiply, prg, random};

/// Weights times inputs, and a bias, in the clear and by the protocol.
fn check(layer: Layer, inputs: usize, bits: u32, seed: u64, plain: impl Fn(&[u64], &[i64]) -> Vec<u64>) {
    let ring = Modulus::new(bits);
    let (x, weights) = (random(inputs, bits, &mut prg(seed)), random(layer.weights(), 9, &mut prg(seed ^ 1)));
    let weights: Vec<i64> = weights.iter().map(|w| *w as i64 - 256).collect();
    let bias: Vec<i64> = (0..layer.outputs() as i64).collect();
    let material = deal(seed, |dealer, setup| {
        let mut hiding = Hiding::new(setup);
        let masks = dealer.input_masks(inputs).expect("a vector takes everything");
        let hidden = hiding.next(ring, layer.weights());
        layer.deal(dealer, &hidden, &masks).expect("a vector takes everything");
    });
    assert_eq!(material.bodies[0].len(), 0);
    assert_eq!(material.bodies[1].len(), 16 * inputs + layer.key_bytes().of(Role::Server));
    let [client, server] = hide(&material, ring, &[&weights, &bias]);
    let results = material.run(|mut party| {
        let half = match party.role() {
            Role::Client => &client,
            Role::Server => &server,
        };
        let x = input(&mut party, &x, ring)?;
        Ok(multiply(&mut party, &layer, &half[0], &x)?.add(&half[1].values()))
    });
    let expected: Vec<u64> =
        plain(&x, &weights).iter().zip(&bias).map(|(z, b)| ring.reduce(z.wrapping_add(*b as u64))).collect();
    let joined = material.join([&results[0].0, &results[1].0]);
    assert_eq!(joined.iter().map(|z| ring.reduce(*z as u64)).collect::<Vec<_>>(), expected);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(30))]

    #[test]
    fn matrix_products(rows in 1usize..4, inner in 1usize..9, columns in 1usize..9, bits in 1u32..=64, seed: u64) {
        let plain = |x: &[u64], w: &[i64]| matmul(x, w, [rows, inner, columns], Modulus::new(64));
        check(Layer::MatMul { rows, inner, columns }, rows * inner, bits, seed, plain);
    }

    #[test]
    fn convolutions(batch in 1usize..3, groups in 1usize..3, stride in 1usize..3, bits in 1u32..=64, seed: u64) {
        let shape = Conv2d {
            in_channels: 2 * groups, image: [5, 4], out_channels: 3 * groups, positions: [4 / stride + 1, 3 / stride + 1],
            kernel: [3, 3], stride: [stride; 2], origin: [1, 1], dilation: [1, 1], groups,
        };
        let plain = |x: &[u64], w: &[i64]| shape.apply(x, w, batch, Modulus::new(64));
        check(Layer::Conv2d { shape, batch }, shape.inputs(batch), bits, seed, plain);
    }

    #[test]
    fn diagonals(len in 1usize..20, bits in 1u32..=64, seed: u64) {
        check(Layer::Diagonal { len }, len, bits, seed, |x, w| x.iter().zip(w).map(|(x, w)| x.wrapping_mul(*w as u64)).collect());
    }
}

#[test]
fn other_weights_have_another_digest_and_padding_is_refused() {
    let ring = Modulus::new(37);
    let material = deal(1, |_, _| {});
    let [client, server] = hide(&material, ring, &[&[1, 2, 3]]);
    assert_eq!(client[0].digest(), server[0].digest());
    let mut setup = Setup::new(Role::Client, &material.setup.client);
    let other = setup.take(ring, 3, &[0; 14]).expect("any numbers are weights");
    assert_ne!(other.digest(), server[0].digest());
    let mut message = [0; 14];
    message[13] = 0x80;
    let refused = Setup::new(Role::Client, &material.setup.client).take(ring, 3, &message).map(|_| ());
    assert!(matches!(refused, Err(Error::PeerMisbehaved(PeerMisbehaved::Padding))));
}
