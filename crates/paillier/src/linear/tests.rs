//! Both ways against plain arithmetic.

use proptest::prelude::*;

use super::*;
use crate::tests::{KEY, decrypted, plaintexts};

/// Plain dot products, `[outputs, windows]`.
fn expected(values: &[i64], weights: &[Vec<i32>], windows: &[Vec<Option<usize>>]) -> Vec<i64> {
    let dot = |row: &[i32], window: &[Option<usize>]| {
        row.iter().zip(window).map(|(&w, at)| i64::from(w) * at.map_or(0, |at| values[at])).sum()
    };
    weights.iter().flat_map(|row| windows.iter().map(move |window| dot(row, window))).collect()
}

fn shape(outputs: usize, inputs: usize) -> impl Strategy<Value = (Vec<Vec<i32>>, Vec<Vec<Option<usize>>>)> {
    let weight = prop_oneof![Just(-(1 << 9)), Just((1 << 9) - 1), -(1 << 9)..1 << 9];
    let weights = prop::collection::vec(prop::collection::vec(weight, inputs), outputs);
    let windows = prop::collection::vec(prop::collection::vec(prop::option::of(0_usize..12), inputs), 1..4);
    (weights, windows)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn every_plan_gives_dot_products(
        values in prop::collection::vec(-(1_i64 << 40)..1 << 40, 12),
        (rows, patches) in (1_usize..5, 1_usize..20).prop_flat_map(|(outputs, inputs)| shape(outputs, inputs)),
        group in 1_usize..4, bits in 1_usize..4, parts in 1_usize..5, run in 0_usize..6,
    ) {
        let weights = Weights::new(rows.len(), rows[0].len(), 10, rows.concat())?;
        let divisors = (1..=rows[0].len()).filter(|run| rows[0].len().is_multiple_of(*run)).collect::<Vec<_>>();
        let windows = Windows::in_runs(rows[0].len(), divisors[run % divisors.len()], patches.concat())?;
        let ciphertexts = KEY.encrypt(&plaintexts(&values))?;
        let expected = expected(&values, &rows, &patches);
        for plan in [
            Plan::Tables { run: rows[0].len(), inputs: group, bits },
            Plan::Tables { run: windows.run(), inputs: group, bits },
            Plan::Buckets { bits: bits + 1, parts },
            Plan::Buckets { bits, parts },
            weights.plan(&windows),
        ] {
            prop_assert_eq!(decrypted(&ciphertexts.dot_by(&weights, &windows, plan)?), expected.clone(), "{:?}", plan);
        }
    }
}

#[test]
fn weights_of_every_width_reach_their_ends() {
    let values = [3, -5, 7];
    let ciphertexts = KEY.encrypt(&plaintexts(&values)).expect("small numbers");
    for bits in 2..=32 {
        let (least, most) = ((-1_i64 << (bits - 1)) as i32, ((1_i64 << (bits - 1)) - 1) as i32);
        let rows = [vec![least, most, 0], vec![least; 3], vec![most; 3], vec![-1, 1, -1]];
        let weights = Weights::new(4, 3, bits, rows.concat()).expect("weights of this width");
        let windows = vec![vec![Some(0), Some(1), Some(2)]];
        for plan in
            (1..=5).flat_map(|b| [Plan::Tables { run: 3, inputs: 2, bits: b }, Plan::Buckets { bits: b, parts: 2 }])
        {
            let dots = ciphertexts.dot_by(&weights, &Windows::whole(3), plan).expect("a whole window");
            assert_eq!(decrypted(&dots), expected(&values, &rows, &windows), "{bits} bits, {plan:?}");
        }
    }
}

#[test]
fn scaling_takes_a_weight_each() {
    let row: Vec<i32> = vec![0, 1, -1, 511, -512, 77, -78, 3, 2, -2];
    let values: Vec<i64> = (0..10).map(|i| (i - 4) << 30).collect();
    let scaled: Vec<i64> = row.iter().zip(&values).map(|(&w, x)| i64::from(w) * x).collect();
    let weights = Weights::new(1, 10, 10, row).expect("weights");
    let ciphertexts = KEY.encrypt(&plaintexts(&values)).expect("small numbers");
    assert_eq!(decrypted(&ciphertexts.scale(&weights).expect("one row")), scaled);
    assert!(ciphertexts.slice(0..9).scale(&weights).is_err());
}

#[test]
fn layers_take_tables_and_single_products_buckets() {
    assert!(matches!(Plan::choose(128, 20, &Windows::whole(784)).1, Plan::Tables { .. }));
    assert!(matches!(Plan::choose(1, 20, &Windows::whole(784)).1, Plan::Buckets { .. }));
}

/// A kernel of three places over a line of `places` with `channels` each, padded on both sides.
fn line(places: usize, channels: usize) -> Windows {
    let read =
        |at: usize| (0..channels).map(move |channel| (1..=places).contains(&at).then(|| (at - 1) * channels + channel));
    let indices = (0..places).flat_map(|position| (position..position + 3).flat_map(read)).collect();
    Windows::in_runs(3 * channels, channels, indices).expect("whole runs")
}

#[test]
fn overlapping_windows_share_what_they_read() {
    let windows = line(10, 32);
    let [runs, whole] = [32, 96].map(|run| runs::Runs::of(&windows, run, 0..10));
    assert_eq!([runs.distinct(), runs.read()], [10, 28]);
    assert_eq!([whole.distinct(), whole.read()], [10, 10]);
    assert_eq!(runs.window(0), [None, Some(0), Some(1)]);
    assert_eq!(runs.window(9), [Some(8), Some(9), None]);
    assert!(matches!(Plan::choose(64, 17, &windows).1, Plan::Tables { run: 32, .. }));
}

#[test]
fn what_does_not_fit_is_named() {
    let misuse = |error: Error| match error {
        Error::Misuse(misuse) => misuse,
        other => panic!("{other}"),
    };
    let refused =
        |outputs, inputs, bits, values| misuse(Weights::new(outputs, inputs, bits, values).err().expect("refused"));
    assert_eq!(refused(1, 1, 1, vec![0]), Misuse::WeightWidth { bits: 1 });
    assert_eq!(refused(1, 1, 33, vec![0]), Misuse::WeightWidth { bits: 33 });
    assert_eq!(refused(1, 2, 4, vec![7, 8]), Misuse::WeightTooLarge { index: 1, bits: 4 });
    assert_eq!(refused(1, 2, 4, vec![-8, -9]), Misuse::WeightTooLarge { index: 1, bits: 4 });
    assert!(matches!(refused(2, 2, 4, vec![1; 3]), Misuse::WrongLength { expected: 4, actual: 3, .. }));
    assert!(Windows::new(2, vec![None; 3]).is_err() && Windows::new(0, vec![]).is_err());
    assert!(Windows::in_runs(4, 3, vec![None; 4]).is_err() && Windows::in_runs(4, 0, vec![None; 4]).is_err());
    let weights = Weights::new(1, 2, 4, vec![1, 1]).expect("weights");
    let ciphertexts = KEY.encrypt(&plaintexts(&[1])).expect("small numbers");
    let error = ciphertexts.dot(&weights, &Windows::whole(2)).expect_err("refused");
    assert_eq!(misuse(error), Misuse::NoSuchInput { index: 1, count: 1 });
    let error = ciphertexts.dot(&weights, &Windows::whole(1)).expect_err("refused");
    assert!(matches!(misuse(error), Misuse::WrongLength { expected: 2, actual: 1, .. }));
}

#[test]
fn bounds_are_those_of_the_heaviest_row() {
    let weights = Weights::new(2, 2, 8, vec![-128, 3, 100, 32]).expect("weights");
    assert_eq!(weights.bound(10), 1320);
}
