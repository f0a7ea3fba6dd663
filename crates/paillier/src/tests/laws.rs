//! Decryption undoes encryption, and products are sums.

use proptest::prelude::*;

use super::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20))]

    #[test]
    fn decryption_undoes_encryption(values in prop::collection::vec(any::<i64>(), 0..20)) {
        let ciphertexts = KEY.encrypt(&plaintexts(&values))?;
        prop_assert_eq!(decrypted(&ciphertexts), values);
    }

    #[test]
    fn sums_are_sums(pairs in prop::collection::vec(any::<[i32; 2]>(), 1..20)) {
        let column = |i: usize| plaintexts(&pairs.iter().map(|pair| pair[i].into()).collect::<Vec<_>>());
        let expected: Vec<_> = pairs.iter().map(|pair| i64::from(pair[0]) + i64::from(pair[1])).collect();
        let mut sum = KEY.encrypt(&column(0))?;
        sum.add(&KEY.encrypt(&column(1))?)?;
        prop_assert_eq!(decrypted(&sum), expected.clone());
        let mut sum = KEY.encrypt(&column(0))?;
        sum.add_plain(&column(1))?;
        prop_assert_eq!(decrypted(&sum), expected);
    }

    #[test]
    fn every_noise_decrypts_to_zero(count in 1_usize..20) {
        let table = NoiseTable::new(KEY.public())?;
        for noise in [Noise::powers(KEY.public(), count)?, table.draw(count)?, KEY.noise(count)?] {
            let zeros = Ciphertexts::encrypt(&plaintexts(&vec![0; count]), noise)?;
            prop_assert_eq!(decrypted(&zeros), vec![0; count]);
        }
    }

    #[test]
    fn bytes_hold_ciphertexts(values in prop::collection::vec(any::<i64>(), 0..20)) {
        let bytes = KEY.encrypt(&plaintexts(&values))?.to_bytes();
        prop_assert_eq!(bytes.len(), values.len() * KeySize::Insecure512.ciphertext_bytes());
        let read = Ciphertexts::from_bytes(KEY.public(), values.len(), &bytes)?;
        prop_assert_eq!(decrypted(&read), values);
        prop_assert_eq!(read.to_bytes(), bytes);
    }
}
