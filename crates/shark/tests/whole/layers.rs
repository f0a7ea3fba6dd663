//! Setups and linear layers: the server's weights times the client's input.

use privet_fss::{Role, Source};
use privet_ring::Modulus;
use privet_ring::linear::{Conv2d, matmul};
use privet_shark::{Error, Hiding, Key, Layer, Party, PeerMisbehaved, Setup, Weights};
use proptest::prelude::*;

use crate::support::{Material, deal, prg, random};

/// A dealer, and both halves of the weights of a program.
pub fn hide(material: &Material, ring: Modulus, weights: &[&[i64]]) -> [Vec<Weights>; 2] {
    let (mut hiding, mut codes) = (Hiding::new(&material.setup), Vec::new());
    weights.iter().for_each(|weights| hiding.deal(ring, weights.len(), &mut codes).expect("a vector takes everything"));
    let mut server = Setup::new(Role::Server, &material.setup.server);
    let mut client = Setup::new(Role::Client, &material.setup.client);
    let mut body = &codes[..];
    let halves = weights.iter().map(|weights| {
        let (own, message) = server.hide(ring, weights, &mut body as &mut dyn Source).expect("codes for all");
        (client.take(ring, weights.len(), &message).expect("an honest message"), own)
    });
    let (client, server) = halves.unzip();
    assert!(body.is_empty());
    [client, server]
}

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
        let own = match party.role() {
            Role::Client => &client,
            Role::Server => &server,
        };
        let x = input(&mut party, &x, ring)?;
        Ok(layer.evaluate(&mut party, &own[0], &x)?.add(&own[1].values()))
    });
    let expected: Vec<u64> =
        plain(&x, &weights).iter().zip(&bias).map(|(z, b)| ring.reduce(z.wrapping_add(*b as u64))).collect();
    let joined = material.join([&results[0].0, &results[1].0]);
    assert_eq!(joined.iter().map(|z| ring.reduce(*z as u64)).collect::<Vec<_>>(), expected);
}

/// The client's input at either side.
pub fn input(party: &mut Party<'_>, x: &[u64], ring: Modulus) -> Result<privet_shark::Masked, Error> {
    match party.role() {
        Role::Client => party.input(x, ring),
        Role::Server => party.input_of_client(x.len(), ring),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(30))]

    #[test]
    fn matrix_products(rows in 1usize..4, inner in 1usize..9, columns in 1usize..9, bits in 1u32..=64, seed: u64) {
        check(Layer::MatMul { rows, inner, columns }, rows * inner, bits, seed, |x, w| matmul(x, w, rows, inner, columns));
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
    assert_eq!(Key::new(Role::Client, &material.setup.client).role(), Role::Client);
}
