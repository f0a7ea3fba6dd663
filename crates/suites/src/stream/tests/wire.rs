//! What crosses the wire is uniform and never the same.

use std::collections::HashSet;

use super::{BOTH, Cipher, Fixture, repeat};

fn is_balanced(messages: &[Vec<u8>]) -> bool {
    let ones: u64 = messages.iter().flatten().map(|byte| u64::from(byte.count_ones())).sum();
    let bits = messages.iter().map(|message| 8 * message.len()).sum::<usize>() as f64;
    (ones as f64 - bits / 2.0).abs() < 3.0 * bits.sqrt()
}

/// Runs of 16 bytes that occur in both, at multiples of 16 in the first.
fn shared(one: &[Vec<u8>], two: &[Vec<u8>]) -> usize {
    let blocks: HashSet<[u8; 16]> = one.iter().flat_map(|message| message.as_chunks().0.to_vec()).collect();
    two.iter().flat_map(|message| message.windows(16)).filter(|window| blocks.contains(*window)).count()
}

/// Inputs of zeros, so that what is not masked is not balanced.
fn zeros(cipher: Cipher) -> Fixture {
    let mut fixture = Fixture::residual(cipher);
    fixture.inputs.iter_mut().for_each(|input| input.fill(0));
    fixture
}

#[test]
fn masked_values_are_uniform() {
    let seen = repeat(&zeros(Cipher::Bfv), 8, None);
    // The input; then the answer to each of three exchanges.
    for message in 0..4 {
        let sent: Vec<_> = seen.iter().map(|seen| seen.online[0][message].clone()).collect();
        assert!(is_balanced(&sent), "the client's message {message}");
    }
    for message in 0..4 {
        let sent: Vec<_> = seen.iter().map(|seen| seen.online[1][message].clone()).collect();
        assert!(is_balanced(&sent), "the server's message {message}");
    }
}

#[test]
fn nothing_is_sent_twice() {
    for cipher in BOTH {
        let seen = repeat(&zeros(cipher), 2, None);
        for side in 0..2 {
            let all = |request: usize| [&seen[request].offline[side][..], &seen[request].online[side][..]].concat();
            assert_eq!(shared(&all(0), &all(1)), 0, "{cipher}, side {side}");
            assert_ne!(shared(&all(0), &all(0)), 0, "the check sees what is sent twice");
        }
    }
}
