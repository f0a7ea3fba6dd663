//! A small network between two parties: a dense layer, ReLU, a maximum, another dense layer, the output to the client.

use privet_channel::{Channel, pair};
use privet_fss::Role;
use privet_ring::Modulus;
use privet_shark::{Error, Gate, Hiding, Layer, Party, Relu, Tournament, Values, Weights};

use crate::support::{Material, deal, hide, input, multiply};

pub const RING: Modulus = Modulus::new(37);

/// The input, and the weights of both layers with the bias of the first.
pub const INPUT: [u64; 3] = [5, 11, (1 << 37) - 7];
const WEIGHTS: [&[i64]; 3] = [&[3, -1, 4, 1, -5, 9, 2, 6, 5, 3, 5, -8], &[100, -200, 3, 50], &[2, -7, 1, 8]];

const DENSE: Layer = Layer::MatMul { rows: 1, inner: 3, columns: 4 };
const LAST: Layer = Layer::MatMul { rows: 1, inner: 2, columns: 2 };

/// What the client should get.
pub fn expected() -> Vec<u64> {
    let x = INPUT.map(|x| RING.signed(x));
    let column = |j: usize| (0..3).map(|i| x[i] * WEIGHTS[0][4 * i + j]).sum::<i64>() + WEIGHTS[1][j];
    let y: Vec<i64> = (0..4).map(|j| column(j).max(0)).collect();
    let y = [y[0].max(y[1]), y[2].max(y[3])];
    (0..2).map(|j| RING.reduce((y[0] * WEIGHTS[2][j] + y[1] * WEIGHTS[2][2 + j]) as u64)).collect()
}

/// Everything that runs of the network need.
pub struct Network {
    pub material: Material,
    weights: [Vec<Weights>; 2],
}

fn relu() -> Relu {
    Relu::new(37, 0, 37)
}

fn pool() -> Tournament {
    Tournament::maxima(37, [(2, 2)])
}

impl Network {
    pub fn new() -> Self {
        let material = deal(2025, |dealer, setup| {
            let mut hiding = Hiding::new(setup);
            let [dense, _, last] = WEIGHTS.map(|weights| hiding.next(RING, weights.len()));
            let masks = dealer.input_masks(3).expect("a vector takes everything");
            DENSE.deal(dealer, &dense, &masks).expect("a vector takes everything");
            let masks = dealer.masks(4).expect("a vector takes everything");
            relu().deal(dealer, &masks).expect("a vector takes everything");
            pool().deal(dealer).expect("a vector takes everything");
            let masks = dealer.masks(2).expect("a vector takes everything");
            LAST.deal(dealer, &last, &masks).expect("a vector takes everything");
            dealer.output_masks(RING, 2).expect("a vector takes everything");
        });
        let weights = hide(&material, RING, &WEIGHTS);
        Self { material, weights }
    }

    /// Up to the output, which is not revealed.
    pub fn evaluate(&self, party: &mut Party<'_>) -> Result<Values, Error> {
        let [dense, bias, last] = &self.weights[party.role() as usize][..] else { panic!("three vectors") };
        [dense, bias, last].iter().for_each(|weights| party.state(weights.digest()));
        let x = input(party, &INPUT, RING)?;
        let z = multiply(party, &DENSE, dense, &x)?.add(&bias.values());
        let z = party.mask(&z, RING)?;
        let y = relu().evaluate(party, &z)?;
        let (y, _) = pool().evaluate(party, &vec![vec![0, 1], vec![2, 3]].into(), &y)?;
        let y = party.mask(&y, RING)?;
        multiply(party, &LAST, last, &y)
    }

    /// A run as it should be. Returns what the client and the server end with.
    pub fn run(&self, channels: [Channel; 2]) -> [Result<Option<Vec<u64>>, Error>; 2] {
        let results = self.material.both(channels, |mut party| {
            let y = self.evaluate(&mut party)?;
            party.reveal(&y, RING)
        });
        results.map(|(result, _)| result)
    }

    /// A run without any check, for comparison: it ends with the output opened as it is.
    pub fn run_unchecked(&self, channels: [Channel; 2]) -> [Result<Option<Vec<u64>>, Error>; 2] {
        let results = self.material.both(channels, |mut party| {
            let y = self.evaluate(&mut party)?;
            let opened = party.open(&y)?.iter().map(|y| RING.reduce(*y as u64)).collect();
            Ok((party.role() == Role::Client).then_some(opened))
        });
        results.map(|(result, _)| result)
    }
}

#[test]
fn the_client_gets_the_output_and_the_server_nothing() {
    let network = Network::new();
    let [client, server] = network.run(pair().into());
    assert_eq!(client.expect("an honest run"), Some(expected()));
    assert_eq!(server.expect("an honest run"), None);
    let [client, _] = network.run_unchecked(pair().into());
    assert_eq!(client.expect("an honest run"), Some(expected()));
}

#[test]
fn parties_that_disagree_on_a_statement_notice() {
    let material = deal(1, |_, _| {});
    let results = material.both(pair().into(), |mut party| {
        party.state(if party.role() == Role::Client { b"a program" } else { b"other prog" });
        party.check()
    });
    assert!(results.iter().all(|(result, _)| result.as_ref().is_err_and(Error::spoils_setup)));
}
