//! Keys of the sizes that are offered.

use super::*;

#[test]
fn keys_of_every_size_compute_dot_products() -> Result<(), Error> {
    for size in [KeySize::Bits2048, KeySize::Bits3072] {
        let key = PrivateKey::generate_from(size, &mut Prg::from_seed(&Seed::from_bytes([4; 16])))?;
        let packing = Packing::largest(size, 1 << 52)?;
        let values: Vec<i64> = (0..packing.slots() as i64).map(|i| (i - 20) * 50_000_000).collect();
        let sent = key.encrypt(&[packing.pack(&values)?, packing.pack(&[-1])?, 7.into()])?.to_bytes();
        assert_eq!(sent.len(), 3 * size.ciphertext_bytes());
        let public = PublicKey::from_bytes(size, &key.public().to_bytes())?;
        let weights = Weights::new(2, 3, 20, vec![-524_288, 524_287, 0, 3, -1, 2])?;
        let mut dots = Ciphertexts::from_bytes(&public, 3, &sent)?.dot(&weights, &Windows::whole(3))?;
        dots.add_plain(&[5.into(), (-5).into()])?;
        dots.randomize(Noise::powers(&public, 2)?)?;
        let results = key.decrypt(&Ciphertexts::from_bytes(key.public(), 2, &dots.to_bytes())?)?;
        let expected = |scale: i64, first: i64| -> Vec<i64> {
            values.iter().enumerate().map(|(slot, value)| scale * value + if slot == 0 { first } else { 0 }).collect()
        };
        assert_eq!(packing.unpack(&results[0]), expected(-524_288, -524_287 + 5), "{size:?}");
        assert_eq!(packing.unpack(&results[1]), expected(3, 1 + 14 - 5), "{size:?}");
    }
    Ok(())
}
