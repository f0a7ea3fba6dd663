//! Triples of matrices: shares of products, what they cost, and what the client can make of its share.

use std::thread;

use crate::support::{elements, prg};
use privet_channel::{Cost, pair};
use privet_linear::{ClientKeys, Error, Misuse, Product, Saving, Triples, receive_public_key};

/// Both parties' left and right operands.
type Operands = [[Vec<u64>; 2]; 2];

fn operands(product: Product, bits: u32, seed: u8) -> Operands {
    let Product { batch, rows, inner, columns } = product;
    let mut prg = prg(seed);
    [(); 2].map(|()| [rows, columns].map(|other| elements(batch * inner * other, bits, &mut prg)))
}

/// Both parties' shares of a product, and what the client's channel counted; `seed`: of the server.
fn run(triples: &Triples, [client, server]: &Operands, seed: u8) -> ([Vec<u64>; 2], Cost) {
    let (mut near, mut far) = pair();
    thread::scope(|scope| {
        let serving = scope.spawn(move || {
            let key = receive_public_key(&mut far, triples.parameters()).unwrap();
            let share = triples.evaluate(&mut far, &key, &server[0], &server[1], &mut prg(seed)).unwrap();
            far.flush().unwrap();
            share
        });
        let mut prg = prg(1);
        let keys = ClientKeys::generate(triples.parameters(), &mut prg);
        keys.send_public_key(&mut near, &mut prg).unwrap();
        let before = near.cost();
        triples.encrypt(&mut near, &keys, &client[0], &client[1], &mut prg).unwrap();
        let share = triples.decrypt(&mut near, &keys, &client[0], &client[1]).unwrap();
        let cost = near.cost() - before;
        ([share, serving.join().unwrap()], cost)
    })
}

fn sums(one: &[u64], other: &[u64]) -> Vec<u64> {
    one.iter().zip(other).map(|(x, y)| x.wrapping_add(*y)).collect()
}

/// The product of the sums of both parties' operands, by plain loops modulo 2^64.
fn multiplied([client, server]: &Operands, product: Product) -> Vec<u64> {
    let Product { batch, rows, inner, columns } = product;
    let [left, right] = [0, 1].map(|side| sums(&client[side], &server[side]));
    let mut out = Vec::new();
    for matrix in 0..batch {
        for i in 0..rows {
            for j in 0..columns {
                let term = |k: usize| {
                    left[(matrix * rows + i) * inner + k].wrapping_mul(right[(matrix * inner + k) * columns + j])
                };
                out.push((0..inner).map(term).fold(0, u64::wrapping_add));
            }
        }
    }
    out
}

fn off(x: u64, expected: u64, bits: u32) -> u64 {
    ((x.wrapping_sub(expected) << (64 - bits)).cast_signed() >> (64 - bits)).unsigned_abs()
}

#[test]
fn shares_add_up_to_the_product_within_a_unit_and_cost_what_the_formula_says() {
    let shapes = [(1, 1, 1, 1), (1, 1, 300, 2), (2, 5, 7, 3), (3, 16, 64, 8), (12, 4, 4, 4), (1, 70, 33, 90)];
    for (at, (batch, rows, inner, columns)) in shapes.into_iter().enumerate() {
        let product = Product { batch, rows, inner, columns };
        let cases = [(30, 0), (37, 2), (43, 2), (16, 0)].map(|bits| (bits, Saving::Work));
        for ((bits, guard), saving) in cases.into_iter().chain([(36, 2), (40, 2)].map(|bits| (bits, Saving::Bytes))) {
            let triples = Triples::for_program(&[product], bits, guard, saving).unwrap().remove(0);
            // Of operands in a wider ring the low bits count.
            let operands = operands(product, bits + 5, at as u8);
            let ([client, server], cost) = run(&triples, &operands, 2);
            assert_eq!(cost, triples.cost(), "{product:?}");
            let expected = multiplied(&operands, product);
            assert_eq!(client.len(), expected.len());
            for (sum, expected) in sums(&client, &server).into_iter().zip(expected) {
                let off = off(sum, expected << guard, bits + guard);
                assert!(off <= 1, "{product:?} with {bits} and {guard} bits: {off} units off");
            }
        }
    }
}

#[test]
fn whoever_saves_bytes_merges_at_twice_the_degree() {
    let scores = Product { batch: 2, rows: 128, inner: 64, columns: 128 };
    let context = Product { batch: 2, rows: 128, inner: 128, columns: 64 };
    let [work, bytes] = [Saving::Work, Saving::Bytes]
        .map(|saving| Triples::for_program(&[scores, context, scores, context], 36, 2, saving).unwrap());
    let sent = |triples: &[Triples]| {
        let cost =
            triples.iter().map(Triples::cost).fold(triples[0].terms()[0].public_key_cost(), |sum, cost| sum + cost);
        cost.bytes_sent + cost.bytes_received
    };
    assert_eq!([&work, &bytes].map(|triples| triples[0].parameters().degree()), [4096, 8192]);
    assert_eq!([&work, &bytes].map(|triples| triples[0].parameters().levels() > 0), [false, true]);
    assert!(5 * sent(&bytes) < 2 * sent(&work), "{} and {}", sent(&bytes), sent(&work));
}

/// A client that takes the identity as its share of `A` and zeros as its share of `B` has the server's `B` in its term `A_C B_S`.
#[test]
fn a_client_does_not_find_the_servers_matrix_in_its_share() {
    let product = Product { batch: 1, rows: 16, inner: 16, columns: 64 };
    let triples = Triples::for_program(&[product], 37, 0, Saving::Work).unwrap().remove(0);
    let [_, [_, secret]] = operands(product, 37, 3);
    let identity: Vec<u64> = (0..256).map(|at| u64::from(at / 16 == at % 16)).collect();
    let scene: Operands = [[identity, vec![0; 1024]], [vec![0; 256], secret.clone()]];
    let matches = |share: &[u64]| share.iter().zip(&secret).filter(|&(&x, &secret)| off(x, secret, 37) <= 1).count();
    let ([one, masks], _) = run(&triples, &scene, 2);
    assert_eq!(matches(&one), 0);
    // The control: without the server's masks all of it is there.
    assert_eq!(matches(&sums(&one, &masks)), 1024);
    // Other masks, another share: it is not a function of the matrix. The control: the same masks give the same.
    let ([repetition, _], _) = run(&triples, &scene, 2);
    let ([other, _], _) = run(&triples, &scene, 3);
    let same = |share: &[u64]| one.iter().zip(share).filter(|(x, y)| x == y).count();
    assert_eq!((same(&repetition), same(&other)), (1024, 0));
}

#[test]
fn operands_of_another_length_and_shapes_without_elements_are_refused() {
    let product = Product { batch: 1, rows: 2, inner: 3, columns: 4 };
    let triples = Triples::for_program(&[product], 37, 0, Saving::Work).unwrap().remove(0);
    let keys = ClientKeys::generate(triples.parameters(), &mut prg(1));
    let mut channel = pair().0;
    let error = triples.encrypt(&mut channel, &keys, &[0; 5], &[0; 12], &mut prg(2)).unwrap_err();
    assert_eq!(error, Error::Misuse(Misuse::WrongLength { what: "the left operand", expected: 6, actual: 5 }));
    assert!(Triples::for_program(&[Product { inner: 0, ..product }], 37, 0, Saving::Work).is_err());
    assert_eq!(Triples::for_program(&[], 37, 0, Saving::Work).unwrap_err(), Misuse::NoLayers.into());
}
