//! Packing at its bounds.

use proptest::prelude::*;

use super::*;
use crate::integer::Integer;

const SIZE: KeySize = KeySize::Insecure512;

#[test]
fn room_is_counted_to_the_bit() -> Result<(), Error> {
    // 511 bits: a bound of 2^9 - 1 takes ten bits with its sign, one of 2^9 eleven.
    assert_eq!(Packing::largest(SIZE, 511)?.slots(), 51);
    assert_eq!(Packing::largest(SIZE, 512)?.slots(), 46);
    assert_eq!(Packing::largest(SIZE, 1)?.slot_bits(), 2);
    assert!(Packing::new(SIZE, 51, 511).is_ok());
    for (slots, bound) in [(52, 511), (47, 512), (0, 1)] {
        let error = Packing::new(SIZE, slots, bound).expect_err("no room");
        assert!(matches!(error, Error::Misuse(Misuse::SlotsDoNotFit { plaintext_bits: 511, .. })), "{error}");
    }
    for bound in [0, (1 << 62) + 1, u128::MAX] {
        assert!(matches!(Packing::largest(SIZE, bound), Err(Error::Misuse(Misuse::Bound { .. }))));
    }
    Ok(())
}

#[test]
fn values_at_their_bounds_survive_in_full_plaintexts() -> Result<(), Error> {
    for bound in [1, 2, 3, 511, 512, (1 << 31) - 1, 1 << 31, (1 << 62) - 1, 1 << 62_i64] {
        let packing = Packing::largest(SIZE, bound as u128)?;
        let pattern = |period: usize, sign: i64| -> Vec<i64> {
            (0..packing.slots()).map(|i| if i % period == 0 { sign * bound } else { -sign * bound }).collect()
        };
        for values in [pattern(1, 1), pattern(1, -1), pattern(2, 1), pattern(3, -1), vec![0; packing.slots()]] {
            let ciphertexts = KEY.encrypt(&[packing.pack(&values)?])?;
            assert_eq!(packing.unpack(&KEY.decrypt(&ciphertexts)?[0]), values, "bound {bound}");
        }
    }
    Ok(())
}

#[test]
fn values_beyond_their_bound_are_refused() -> Result<(), Error> {
    let packing = Packing::new(SIZE, 3, 100)?;
    for values in [vec![101], vec![0, -101], vec![0, 100, i64::MIN]] {
        let index = values.len() - 1;
        let error = packing.pack(&values).expect_err("too large");
        assert!(matches!(error, Error::Misuse(Misuse::ValueTooLarge { index: at, bound: 100 }) if at == index));
    }
    assert!(matches!(packing.pack(&[0; 4]), Err(Error::Misuse(Misuse::WrongLength { .. }))));
    assert_eq!(packing.unpack(&packing.pack(&[-7])?), [-7, 0, 0]);
    Ok(())
}

#[test]
fn plaintexts_end_at_half_of_the_key() -> Result<(), Error> {
    let half = KEY.public().n().shr(1);
    let one = crate::integer::resize(&Integer::one(), 8);
    let negated = |x: &Integer| Plaintext::from_words(x.wrapping_neg().as_words().to_vec());
    let exact = |x: &Integer| Plaintext::from_words(x.as_words().to_vec());
    // (n - 1) / 2 is below 2^511, so its sign bit is clear in as many words as the key has.
    for good in [exact(&half), negated(&half)] {
        assert!(KEY.decrypt(&KEY.encrypt(std::slice::from_ref(&good))?)?[0] == good);
    }
    let beyond = half.wrapping_add(&one);
    let wide = |x: &Integer, sign: u64| Plaintext::from_words([x.as_words(), &[sign]].concat());
    let too_large = [
        wide(&beyond, 0),
        wide(&beyond.wrapping_neg(), u64::MAX),
        wide(KEY.public().n(), 0),
        wide(&KEY.public().n().wrapping_neg(), u64::MAX),
        wide(&one, 1),
        wide(&one.wrapping_neg(), u64::MAX - 1),
    ];
    for (at, bad) in too_large.into_iter().enumerate() {
        let error = KEY.encrypt(&[0.into(), bad]).expect_err("too large");
        assert!(matches!(error, Error::Misuse(Misuse::PlaintextTooLarge { index: 1 })), "case {at}");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20))]

    #[test]
    fn dot_products_act_on_every_slot(
        rows in prop::collection::vec(prop::collection::vec(-128_i32..128, 6), 1..4),
        samples in prop::collection::vec(prop::array::uniform6(-1000_i64..=1000), 1..24),
    ) {
        let weights = Weights::new(rows.len(), 6, 8, rows.concat())?;
        let packing = Packing::new(SIZE, samples.len(), weights.bound(1000).max(1000))?;
        let packed = (0..6).map(|i| packing.pack(&samples.iter().map(|sample| sample[i]).collect::<Vec<_>>()));
        let ciphertexts = KEY.encrypt(&packed.collect::<Result<Vec<_>, _>>()?)?;
        let results = KEY.decrypt(&ciphertexts.dot(&weights, &Windows::whole(6))?)?;
        for (row, result) in rows.iter().zip(&results) {
            let dot = |sample: &[i64; 6]| row.iter().zip(sample).map(|(&w, x)| i64::from(w) * x).sum::<i64>();
            prop_assert_eq!(packing.unpack(result), samples.iter().map(dot).collect::<Vec<_>>());
        }
    }
}
