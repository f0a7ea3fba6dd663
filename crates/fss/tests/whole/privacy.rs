//! What parties send, are dealt and get out is uniform, whatever the input.
//!
//! Each gate runs on one value over and over under fresh seeds. Of every message, of the sum of both parties' messages,
//! of the server's corrections and of either party's result, each bit must be one half of the time. Of all that a party sees, so must the sum
//! of any two bits: a mask that is used twice is uniform each time, but not both times together.

use std::thread;

use privet_channel::record::{self, Direction};
use privet_fss::{
    Above, Carried, Error, Extend, ExtendBounded, Gate, Lift, Party, Piecewise, Relu, Role, Select, Sign, Source,
    Truncate,
};
use privet_prg::Seed;
use privet_ring::{Bits, Lines, Modulus};

use crate::support::{deal, prg};

/// Elements of a batch: a multiple of 64, so that packed values of one column start on a byte.
const COUNT: usize = 4096;

/// Whether every bit of `ring` is one about half of the time in `values`.
fn is_balanced(values: &[u64], ring: Modulus) -> bool {
    let half = values.len() as f64 / 2.0;
    (0..ring.bits()).all(|bit| {
        let ones = values.iter().filter(|value| *value >> bit & 1 == 1).count() as f64;
        // Six standard deviations, on some thousand bits in all and with fixed seeds.
        (ones - half).abs() < 3.0 * (values.len() as f64).sqrt()
    })
}

/// Bits of values that parties see, one vector for each bit, 64 values to a word.
fn bits_of(columns: &[Vec<u64>], rings: &[Modulus]) -> Vec<Vec<u64>> {
    let bit = |column: &[u64], bit: u32| Bits::from_lowest(column.iter().map(|x| x >> bit & 1)).words().to_vec();
    let of_column =
        |(column, ring): (&Vec<u64>, &Modulus)| (0..ring.bits()).map(|at| bit(column, at)).collect::<Vec<_>>();
    columns.iter().zip(rings).flat_map(of_column).collect()
}

/// Two bits of which the sum is not one half of the time, if there are any.
fn dependent(bits: &[Vec<u64>]) -> Option<[usize; 2]> {
    let biased = |one: &[u64], other: &[u64]| {
        let count = 64.0 * one.len() as f64;
        let ones: u32 = one.iter().zip(other).map(|(one, other)| (one ^ other).count_ones()).sum();
        // Seven standard deviations, on some million pairs in all and with fixed seeds.
        (f64::from(ones) - count / 2.0).abs() > 3.5 * count.sqrt()
    };
    let later = |i: usize| (i + 1..bits.len()).map(move |j| [i, j]);
    (0..bits.len()).flat_map(later).find(|&[i, j]| biased(&bits[i], &bits[j]))
}

/// The columns of a message or of corrections: all values of the first ring, then of the second, and so on.
fn columns(bytes: &[u8], rings: &[Modulus], count: usize) -> Vec<Vec<u64>> {
    let mut rest = bytes;
    let columns = rings.iter().map(|ring| {
        let (column, later) = rest.split_at(ring.packed_bytes(count));
        rest = later;
        ring.unpack(column, count).expect("a column")
    });
    let columns = columns.collect();
    assert!(rest.is_empty());
    columns
}

fn assert_uniform(what: &str, columns: &[Vec<u64>], rings: &[Modulus]) {
    for (i, (column, ring)) in columns.iter().zip(rings).enumerate() {
        assert!(is_balanced(column, *ring), "{what}, column {i}");
    }
}

type Evaluate<'a> = &'a (dyn Fn(&mut Party<'_>, &Seed, &mut dyn Source, &[u64]) -> Result<Vec<u64>, Error> + Sync);

/// `sent`: the rings of all messages' columns; `secrets`: those of the corrections.
fn check(gate: &dyn Gate, sent: &[Modulus], secrets: &[Modulus], output: Modulus, evaluate: Evaluate<'_>) {
    check_batch(COUNT, gate, sent, secrets, output, evaluate);
}

/// The same for a batch of `count` elements, a multiple of 64.
fn check_batch(
    count: usize,
    gate: &dyn Gate,
    sent: &[Modulus],
    secrets: &[Modulus],
    output: Modulus,
    evaluate: Evaluate<'_>,
) {
    for value in [0, 1, u64::MAX, 0x5555_5555_5555_5555] {
        let key = deal(gate, count, &mut prg(value));
        let corrections = &key.bodies[1][gate.key_bytes(count).words..];
        assert_uniform("corrections", &columns(corrections, secrets, count), secrets);

        let (mut client, mut server, transcript) = record::pair();
        let run = |role, channel, seed, mut body: &[u8], x: &[u64]| {
            evaluate(&mut Party { role, channel }, seed, &mut body, x).expect("an honest run")
        };
        // Shares that are the same for all elements: what hides them is the gate's own.
        let shares = [vec![3; count], vec![value.wrapping_sub(3); count]];
        let results = thread::scope(|scope| {
            let server_thread =
                scope.spawn(|| run(Role::Server, &mut server, &key.seeds.server, &key.bodies[1], &shares[1]));
            let client_result = run(Role::Client, &mut client, &key.seeds.client, &key.bodies[0], &shares[0]);
            [client_result, server_thread.join().expect("no panic")]
        });
        for result in results {
            assert_uniform("a result", &[result], &[output]);
        }
        let transcript = transcript.lock().expect("no panic");
        let [forth, back] = [Direction::FirstToSecond, Direction::SecondToFirst]
            .map(|direction| columns(&transcript.bytes(direction), sent, count));
        assert_uniform("the client's messages", &forth, sent);
        assert_uniform("the server's messages", &back, sent);
        let opened: Vec<Vec<u64>> =
            forth.iter().zip(&back).zip(sent).map(|((forth, back), ring)| ring.add(forth, back)).collect();
        assert_uniform("what is opened", &opened, sent);
        // What a party draws from its seed hides its messages, so that these stand for it.
        let opened = bits_of(&opened, sent);
        let server = [bits_of(&columns(corrections, secrets, count), secrets), bits_of(&back, sent), opened.clone()];
        assert_eq!(dependent(&server.concat()), None, "what the server sees of {value:x}");
        let client = [bits_of(&forth, sent), opened];
        assert_eq!(dependent(&client.concat()), None, "what the client sees of {value:x}");
    }
}

const BIT: Modulus = Modulus::new(1);

/// Inputs of a ring from shares of 64 bits.
fn reduced(x: &[u64], bits: u32) -> Vec<u64> {
    x.iter().map(|x| Modulus::new(bits).reduce(*x)).collect()
}

#[test]
fn the_check_sees_a_value_that_is_not_masked() {
    let ring = Modulus::new(25);
    assert!(!is_balanced(&[3; COUNT], ring));
    let mut masked = vec![0; COUNT];
    prg(1).fill_words(&mut masked);
    assert!(is_balanced(&masked, ring));
    // One bit that is set too often is enough.
    masked.iter_mut().step_by(4).for_each(|value| *value |= 1 << 24);
    assert!(!is_balanced(&masked, ring));
}

#[test]
fn the_check_sees_a_mask_that_is_used_twice() {
    let (ring, value) = (Modulus::new(25), 3);
    let mut prg = prg(1);
    let mut masks = [vec![0; COUNT], vec![0; COUNT]];
    masks.iter_mut().for_each(|masks| prg.fill_words(masks));
    let hidden = |masks: &[u64], value: u64| masks.iter().map(|mask| ring.reduce(mask.wrapping_add(value))).collect();
    let [first, second]: [Vec<u64>; 2] = [hidden(&masks[0], value), hidden(&masks[0], 2 * value)];
    assert!([&first, &second].into_iter().all(|hidden| is_balanced(hidden, ring)));
    assert!(dependent(&bits_of(&[first.clone(), second], &[ring; 2])).is_some());
    assert_eq!(dependent(&bits_of(&[first, hidden(&masks[1], 2 * value)], &[ring; 2])), None);
}

#[test]
fn a_relu_shows_nothing() {
    // So few bits that these values are compared by trees.
    let (input, output, above) = (Modulus::new(15), Modulus::new(37), Modulus::new(22));
    let gate = Relu::new(15, 37);
    let secrets = [output, output, above, above, above];
    check(&gate, &[input, BIT], &secrets, output, &|party, seed, body, x| {
        gate.evaluate(party, seed, body, &reduced(x, 15))
    });
}

#[test]
fn a_relu_of_many_values_shows_nothing() {
    let (input, output, above) = (Modulus::new(25), Modulus::new(37), Modulus::new(12));
    let gate = Relu::new(25, 37);
    // Tables of five digits, products of hidden bits, then the secrets.
    let secrets =
        [[64, 64, 16].map(Modulus::new).as_slice(), &[BIT; 37], &[output, output, above, above, above]].concat();
    check(&gate, &[[input].as_slice(), &[BIT; 10]].concat(), &secrets, output, &|party, seed, body, x| {
        gate.evaluate(party, seed, body, &reduced(x, 25))
    });
}

#[test]
fn lines_show_nothing() {
    let output = Modulus::new(37);
    let gate = Piecewise::new(18, [8, 6], Above::Rising, 37);
    let slopes: Vec<i64> = (0..64).map(|i| i << 20).collect();
    let lines = Lines::new(&slopes, &[5; 64], 8, true, output);
    let top = Modulus::new(37 - 18);
    // Tables of six digits; products of hidden bits, as bits and modulo the number of lines; unit vectors, the sign, two sets of secrets, those
    // above the table.
    let (set, counts) = ([output, output, top, top], Modulus::new(37 - 8));
    let above = [output, counts, counts, Modulus::new(37 - 8 - 18), Modulus::new(37 - 8 - 18)];
    let secrets =
        [&[Modulus::new(56)], &[BIT; 15][..], &[INDEX; 4], &[BIT; 13], &[Modulus::new(64), output], &set, &set, &above]
            .concat();
    let sent = lines_sent(output);
    check(&gate, &sent, &secrets, output, &|party, seed, body, x| {
        gate.evaluate(party, seed, body, &reduced(x, 18), &lines)
    });
}

#[test]
fn lines_above_which_alone_is_more_show_nothing() {
    let (output, top) = (Modulus::new(37), Modulus::new(37 - 18));
    let gate = Piecewise::new(18, [8, 6], Above::OnlyConstant, 37);
    let slopes: Vec<i64> = (0..64).map(|i| i << 20).collect();
    let lines = Lines::new(&slopes, &[5; 64], 8, false, output);
    // As above without what the sign takes, and what is above the table.
    let set = [output, output, top, top];
    let secrets =
        [&[Modulus::new(56)], &[BIT; 15][..], &[INDEX; 4], &[BIT; 8], &[Modulus::new(64), output], &set, &set].concat();
    let sent = [&[Modulus::new(18)], &[BIT; 11][..], &[INDEX, BIT], &[output, output, BIT]].concat();
    check(&gate, &sent, &secrets, output, &|party, seed, body, x| {
        gate.evaluate(party, seed, body, &reduced(x, 18), &lines)
    });
}

/// The ring of the number of one of 64 lines.
const INDEX: Modulus = Modulus::new(6);

/// What is opened for lines over 8 bits each of 18.
fn lines_sent(output: Modulus) -> Vec<Modulus> {
    [&[Modulus::new(18)], &[BIT; 14][..], &[INDEX, BIT], &[output, output, BIT, BIT]].concat()
}

#[test]
fn a_sign_shows_nothing() {
    let gate = Sign::new(37);
    check(&gate, &[Modulus::new(37)], &[BIT], BIT, &|party, seed, body, x| {
        Ok(gate.evaluate(party, seed, body, &reduced(x, 37))?.iter().map(u64::from).collect())
    });
}

#[test]
fn a_multiplexer_shows_nothing() {
    let (ring, gate) = (Modulus::new(37), Select::new(37));
    for bit in [false, true] {
        check(&gate, &[BIT, ring], &[ring; 2], ring, &|party, seed, body, x| {
            let bits = Bits::from_bools(&vec![bit && party.role == Role::Server; x.len()]);
            gate.evaluate(party, seed, body, &bits, &reduced(x, 37))
        });
    }
}

#[test]
fn a_bit_that_becomes_a_number_shows_nothing() {
    let (ring, gate) = (Modulus::new(37), Lift::new(37));
    for bit in [false, true] {
        check(&gate, &[BIT], &[ring], ring, &|party, seed, body, x| {
            gate.evaluate(party, seed, body, &Bits::from_bools(&vec![bit && party.role == Role::Server; x.len()]))
        });
    }
}

#[test]
fn a_truncation_shows_nothing() {
    let (dropped, output) = (Modulus::new(12), Modulus::new(25));
    let gate = Truncate::new(37, 12);
    // Tables of two digits, then secrets.
    let secrets = [[Modulus::new(64); 2].as_slice(), &[output; 5]].concat();
    check(&gate, &[dropped, BIT, BIT, BIT], &secrets, output, &|party, seed, body, x| {
        gate.evaluate(party, seed, body, &reduced(x, 37))
    });
}

#[test]
fn digits_are_hidden_by_bits_of_their_own() {
    // What is opened for one digit, added to what is opened for another, tells nothing either.
    let gate = Extend::new(25, 37);
    let sent = [&[Modulus::new(25)], &[BIT; 7][..]].concat();
    assert_bits_of_their_own(&gate, 0x155_5555, &sent, &|party, seed, body, x| gate.evaluate(party, seed, body, x));
}

/// What is opened for one value over and over, column by column; `sent`: the rings of all messages' columns.
fn opened(gate: &dyn Gate, value: u64, sent: &[Modulus], evaluate: Evaluate<'_>) -> Vec<Vec<u64>> {
    let key = deal(gate, COUNT, &mut prg(1));
    let (mut client, mut server, transcript) = record::pair();
    let run = |role, channel, seed, mut body: &[u8], x: u64| {
        evaluate(&mut Party { role, channel }, seed, &mut body, &vec![x; COUNT]).expect("an honest run")
    };
    thread::scope(|scope| {
        scope.spawn(|| run(Role::Server, &mut server, &key.seeds.server, &key.bodies[1], value - 3));
        run(Role::Client, &mut client, &key.seeds.client, &key.bodies[0], 3)
    });
    let transcript = transcript.lock().expect("no panic");
    let [forth, back] = [Direction::FirstToSecond, Direction::SecondToFirst]
        .map(|direction| columns(&transcript.bytes(direction), sent, COUNT));
    forth.iter().zip(&back).zip(sent).map(|((forth, back), ring)| ring.add(forth, back)).collect()
}

/// Whether no two of the bits that are opened for one value tell anything together.
fn assert_bits_of_their_own(gate: &dyn Gate, value: u64, sent: &[Modulus], evaluate: Evaluate<'_>) {
    let opened = opened(gate, value, sent, evaluate);
    let bits: Vec<_> = opened.iter().zip(sent).filter(|(_, ring)| **ring == BIT).collect();
    for (i, (one, _)) in bits.iter().enumerate() {
        for (j, (other, _)) in bits.iter().enumerate().skip(i + 1) {
            assert!(is_balanced(&BIT.add(one, other), BIT), "columns {i} and {j}");
        }
    }
}

#[test]
fn a_line_s_number_is_hidden_by_a_mask_of_its_own() {
    // Less the high bits of the masked argument it would else tell whether the low ones borrow.
    let (gate, output) = (Piecewise::new(18, [8, 6], Above::Rising, 37), Modulus::new(37));
    let lines = Lines::new(&[1 << 20; 64], &[5; 64], 8, true, output);
    for value in [0x1500, 0x1555, 0x15ff] {
        let evaluate: Evaluate<'_> = &|party, seed, body, x| gate.evaluate(party, seed, body, x, &lines);
        let opened = opened(&gate, value, &lines_sent(output), evaluate);
        let (arguments, numbers) = (&opened[0], &opened[15]);
        let high: Vec<u64> = arguments.iter().map(|x| INDEX.reduce(x >> 8)).collect();
        assert!(is_balanced(&INDEX.sub(&high, numbers), INDEX));
    }
}

#[test]
fn digits_of_a_relu_are_hidden_by_bits_of_their_own() {
    let gate = Relu::new(25, 37);
    let sent = [&[Modulus::new(25)], &[BIT; 10][..]].concat();
    assert_bits_of_their_own(&gate, 0x155_5555, &sent, &|party, seed, body, x| gate.evaluate(party, seed, body, x));
}

#[test]
fn what_lines_open_is_hidden_by_bits_of_their_own() {
    let (gate, output) = (Piecewise::new(18, [8, 6], Above::Rising, 37), Modulus::new(37));
    let lines = Lines::new(&[1 << 20; 64], &[5; 64], 8, true, output);
    let sent = lines_sent(output);
    // Below the table, in it and above it.
    for value in [0x3_fff0, 0x1555, 0x5555] {
        assert_bits_of_their_own(&gate, value, &sent, &|party, seed, body, x| {
            gate.evaluate(party, seed, body, x, &lines)
        });
    }
}

#[test]
fn an_extension_shows_nothing() {
    let (input, above) = (Modulus::new(25), Modulus::new(12));
    let gate = Extend::new(25, 37);
    // Below the new bits of a result are those of the share that went in.
    let added = |x: Vec<u64>| x.iter().map(|x| x >> 25).collect::<Vec<_>>();
    let secrets = [[Modulus::new(64); 5].as_slice(), &[above; 23]].concat();
    check(&gate, &[[input].as_slice(), &[BIT; 7]].concat(), &secrets, above, &|party, seed, body, x| {
        gate.evaluate(party, seed, body, &reduced(x, 25)).map(added)
    });
    // Of very many: tables of five digits, products of hidden bits, a secret.
    let secrets = [[64, 64, 32].map(Modulus::new).as_slice(), &[BIT; 37], &[above]].concat();
    let sent = [[input].as_slice(), &[BIT; 10]].concat();
    check_batch(1 << 16, &gate, &sent, &secrets, above, &|party, seed, body, x| {
        gate.evaluate(party, seed, body, &reduced(x, 25)).map(added)
    });
    let gate = ExtendBounded::non_negative(25, 37);
    check(&gate, &[BIT], &[above], above, &|party, seed, body, x| {
        gate.evaluate(party, seed, body, &reduced(x, 25)).map(added)
    });
}
