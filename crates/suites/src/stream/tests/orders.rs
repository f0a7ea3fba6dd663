//! Matching the values of a repeated request by their places.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::{BOTH, Fixture, Seen, repeat};

/// Two requests of one session for each cipher, made once: every test of them only looks.
static TWICE: LazyLock<[Vec<Seen>; 2]> =
    LazyLock::new(|| BOTH.map(|cipher| repeat(&Fixture::residual(cipher), 2, None)));

/// Places at which both vectors have the same value, of those whose value is like no other of its vector; and how many
/// such values there are.
fn matches(one: &[i64], two: &[i64]) -> (usize, usize) {
    let mut counts: HashMap<i64, usize> = HashMap::new();
    one.iter().for_each(|&value| *counts.entry(value).or_default() += 1);
    let telling = |value: &i64| counts.get(value) == Some(&1);
    let matched = one.iter().zip(two).filter(|(a, b)| a == b && telling(a)).count();
    (matched, one.iter().filter(|value| telling(value)).count())
}

/// The same at the best of all cyclic shifts of the second.
fn matches_shifted(one: &[i64], two: &[i64]) -> (usize, usize) {
    let shifted = |by: usize| [&two[by..], &two[..by]].concat();
    (0..two.len()).map(|by| matches(one, &shifted(by))).max().unwrap_or_default()
}

fn sorted(values: &[i64]) -> Vec<i64> {
    let mut values = values.to_vec();
    values.sort_unstable();
    values
}

/// In a random order a value keeps its place once in the mean, and more than 12 do so with probability below `2^-32`; for
/// the best of 256 shifts below `2^-24`.
const BY_CHANCE: usize = 12;

#[test]
fn repeated_requests_cannot_be_laid_side_by_side() {
    for (cipher, seen) in BOTH.iter().zip(&*TWICE) {
        let (one, two) = (&seen[0].values, &seen[1].values);
        assert_eq!(one.len(), 4);
        // The ReLU and the windows of the pooling: enough values that tell.
        for exchange in 0..2 {
            let (one, two) = (&one[exchange], &two[exchange]);
            assert_eq!(sorted(one), sorted(two), "the same request shows the same values, {cipher}");
            let (matched, telling) = matches_shifted(one, two);
            assert!(telling > 100, "only {telling} values tell");
            assert!(matched <= BY_CHANCE, "{matched} of {telling} values kept their places, {cipher}");
        }
        assert_eq!(one[3], two[3], "the output comes in order");
    }
}

#[test]
fn two_sessions_cannot_be_laid_side_by_side() {
    for (cipher, seen) in BOTH.into_iter().zip(&*TWICE) {
        let other = repeat(&Fixture::residual(cipher), 1, None).remove(0);
        let (matched, _) = matches_shifted(&seen[0].values[0], &other.values[0]);
        assert!(matched <= BY_CHANCE, "{matched} values kept their places, {cipher}");
    }
}

#[test]
fn a_fixed_order_gives_every_place_away() {
    for cipher in BOTH {
        let seen = repeat(&Fixture::residual(cipher), 2, Some(7));
        for exchange in 0..2 {
            let (matched, telling) = matches(&seen[0].values[exchange], &seen[1].values[exchange]);
            assert!(telling > 100 && matched == telling, "{matched} of {telling}, {cipher}");
        }
    }
}

#[test]
fn a_cyclic_shift_gives_every_place_away() {
    let seen = repeat(&Fixture::residual(BOTH[1]), 1, None);
    let values = &seen[0].values[0];
    let shifted = [&values[77..], &values[..77]].concat();
    let (matched, telling) = matches_shifted(values, &shifted);
    assert!(matches(values, &shifted).0 <= BY_CHANCE);
    assert_eq!(matched, telling);
}

/// A window comes whole, whatever its place: its four values are those of a window in the other request.
#[test]
fn windows_travel_whole_and_within_them_in_another_order() {
    for (cipher, seen) in BOTH.iter().zip(&*TWICE) {
        let windows = |request: usize| -> Vec<&[i64]> { seen[request].values[1].chunks(4).collect() };
        let sorted_windows = |request: usize| {
            let mut all: Vec<_> = windows(request).into_iter().map(sorted).collect();
            all.sort();
            all
        };
        assert_eq!(sorted_windows(0), sorted_windows(1));
        let find = |window: &&[i64]| windows(1).into_iter().find(|other| sorted(other) == sorted(window));
        let kept = windows(0).iter().filter(|window| find(window) == Some(**window)).count();
        // One of 24 in the mean, of 64; more than 20 with probability below 2^-40.
        assert!(kept <= 20, "{kept} of 64 windows kept the order of their elements, {cipher}");
    }
}
