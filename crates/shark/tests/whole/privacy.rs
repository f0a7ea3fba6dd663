//! What parties see looks random, whatever the values are: openings, messages, bodies, and published weights.

use privet_channel::record::{self, Direction};
use privet_ring::Modulus;
use privet_shark::{Extend, Gate, Relu, Sign, Truncate, Values};

use crate::support::{deal, hide, input, prg};

/// Elements of a run.
const COUNT: usize = 4096;

/// Whether each of the low `bits` bits is set in about half of the numbers.
fn is_balanced(bits: u32, numbers: impl Iterator<Item = u128> + Clone) -> bool {
    let count = numbers.clone().count() as f64;
    (0..bits).all(|bit| {
        let ones = numbers.clone().filter(|number| number >> bit & 1 == 1).count() as f64;
        // Six standard deviations, on some thousand bits in all and with fixed seeds.
        (ones - count / 2.0).abs() < 3.0 * count.sqrt()
    })
}

fn numbers(bytes: &[u8]) -> impl Iterator<Item = u128> + Clone {
    bytes.as_chunks().0.iter().map(|number| u128::from_le_bytes(*number))
}

#[test]
fn the_check_sees_what_is_not_masked() {
    let random: Vec<u128> = (0..COUNT as u64).map(|i| prg(i).block()).collect();
    assert!(is_balanced(128, random.iter().copied()));
    let set = random.iter().enumerate().map(|(i, x)| if i % 4 == 0 { x | 1 << 77 } else { *x });
    assert!(!is_balanced(128, set));
}

/// Values that are all the same, at both parties: what hides them is the masks.
fn shares(value: u128) -> [Values; 2] {
    [value.wrapping_sub(3), 3].map(|share| Values::from_parts(vec![share; COUNT], vec![0; COUNT]))
}

const SAMPLES: [u128; 4] = [0, 1, u128::MAX, 0x5555_5555_5555_5555_5555_5555_5555_5555];

#[test]
fn openings_and_their_messages_are_uniform() {
    for value in SAMPLES {
        let material = deal(1, |dealer, _| {
            dealer.masks(COUNT).expect("a vector takes everything");
        });
        let (client, server, transcript) = record::pair();
        let results = material.both([client, server], |mut party| {
            party.mask(&shares(value)[party.role() as usize], Modulus::new(64)).map(|masked| masked.opened().to_vec())
        });
        let opened = results[0].0.as_ref().expect("an honest run");
        assert!(is_balanced(64, opened.iter().map(|x| u128::from(*x))));
        let transcript = transcript.lock().expect("no panic");
        let [forth, back] = [Direction::FirstToSecond, Direction::SecondToFirst].map(|side| transcript.bytes(side));
        assert!(is_balanced(128, numbers(&forth)) && is_balanced(128, numbers(&back)));
        assert!(is_balanced(128, numbers(&forth).zip(numbers(&back)).map(|(a, b)| a.wrapping_add(b))));
    }
}

#[test]
fn an_input_is_masked() {
    let ring = Modulus::new(37);
    for value in [0, 1, ring.mask()] {
        let material = deal(2, |dealer, _| {
            dealer.input_masks(COUNT).expect("a vector takes everything");
        });
        let results = material.run(|mut party| input(&mut party, &[value; COUNT], ring));
        let opened = results[1].0.opened();
        assert!(is_balanced(37, opened.iter().map(|x| u128::from(*x))));
        assert_eq!(results[1].0.mask().shares(), [0; COUNT]);
    }
}

#[test]
fn an_output_shows_the_client_no_bit_above_its_ring_and_the_server_none() {
    let ring = Modulus::new(37);
    for value in SAMPLES {
        let material = deal(3, |dealer, _| {
            dealer.secrets(&[value; COUNT]).expect("a vector takes everything");
            dealer.output_masks(ring, COUNT).expect("a vector takes everything");
        });
        let (client, server, transcript) = record::pair();
        let results = material.both([client, server], |mut party| {
            let y = party.secrets(COUNT)?;
            Ok((y.shares().to_vec(), party.reveal(&y, ring)?))
        });
        let (share, output) = results[0].0.as_ref().expect("an honest run");
        assert_eq!(*output, Some(vec![ring.reduce(value as u64); COUNT]));
        let transcript = transcript.lock().expect("no panic");
        let opening = |side| transcript.payloads(side).find(|message| message.len() == 16 * COUNT).expect("an opening");
        let (forth, back) = (opening(Direction::FirstToSecond), opening(Direction::SecondToFirst));
        let sums = numbers(forth).zip(numbers(back)).map(|(a, b)| a.wrapping_add(b));
        assert!(is_balanced(128, numbers(forth)) && is_balanced(128, sums));
        // What is left at the client when it takes its own mask away.
        let values = share.iter().zip(numbers(back)).map(|(x, y)| x.wrapping_add(y));
        assert!(values.clone().all(|y| ring.reduce(y as u64) == ring.reduce(value as u64)));
        assert!(is_balanced(91, values.map(|y| y >> 37)));
    }
}

#[test]
fn what_the_dealer_sends_is_uniform() {
    let relu = Relu::new(25, 0, 37);
    let (sign, truncate, extend) = (Sign::new(64, 0), Truncate::exact(37, 12), Extend::exact(25));
    let material = deal(4, |dealer, _| {
        let masks = dealer.masks(COUNT).expect("a vector takes everything");
        relu.deal(dealer, &masks).expect("a vector takes everything");
        sign.deal(dealer, &masks).expect("a vector takes everything");
        truncate.deal(dealer, &masks).expect("a vector takes everything");
        extend.deal(dealer, &masks).expect("a vector takes everything");
        dealer.secrets(&[0; COUNT]).expect("a vector takes everything");
        dealer.input_masks(COUNT).expect("a vector takes everything");
    });
    for body in &material.bodies {
        // Entries of one kind are longer than this, so one that is constant shows.
        assert!(body.chunks(8 * COUNT).filter(|part| part.len() % 16 == 0).all(|part| is_balanced(128, numbers(part))));
        assert!(is_balanced(128, numbers(&body[body.len() % 16..])));
    }
    let client = material.run(|mut party| party.masks(COUNT)).map(|(masks, _)| masks);
    for values in &client {
        assert!(is_balanced(128, values.shares().iter().copied()) && is_balanced(128, values.codes().iter().copied()));
    }
}

#[test]
fn published_weights_and_codes_are_uniform() {
    let ring = Modulus::new(37);
    let material = deal(5, |_, _| {});
    for weight in [0, 1, -1] {
        let [client, server] = hide(&material, ring, &[&[weight; COUNT], &[weight; COUNT]]);
        let published = |i: usize| client[i].public().iter().map(|v| u128::from(*v));
        assert!((0..2).all(|i| is_balanced(37, published(i))));
        assert!(published(0).zip(published(1)).any(|(a, b)| a != b));
        for half in [&client[0], &server[0]] {
            assert!(is_balanced(128, half.values().codes().iter().copied()));
        }
        assert_eq!(client[0].values().shares(), [0; COUNT]);
    }
}

#[test]
fn a_commitment_hides_the_digest() {
    let material = deal(6, |_, _| {});
    let commitments = [(); 2].map(|()| {
        let (client, server, transcript) = record::pair();
        let results = material.both([client, server], |mut party| party.check());
        assert!(results.iter().all(|(result, _)| result.is_ok()));
        let transcript = transcript.lock().expect("no panic");
        [Direction::FirstToSecond, Direction::SecondToFirst]
            .map(|side| transcript.payloads(side).next().map(<[u8]>::to_vec))
    });
    // The same digest four times.
    let mut distinct = commitments.concat();
    distinct.sort();
    distinct.dedup();
    assert_eq!(distinct.len(), 4);
}
