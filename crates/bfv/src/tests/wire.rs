//! What travels is the same whatever code a processor runs, with `PRIVET_PORTABLE=1` and without.

use super::{Session, prg};
use crate::{Merge, Parameters, Resharing};

/// FNV-1a.
fn digest(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, &byte| (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

/// Digests of a public key, a ciphertext, a reply and both shares, all from fixed seeds.
fn digests(parameters: &Parameters) -> [u64; 4] {
    let mut session = Session::new(parameters, 1);
    let key = session.secret.public_key(&mut prg(2));
    // More terms than are reduced at once.
    let terms: Vec<_> = (0..9).map(|_| (session.message(), session.weights(64, 9))).collect();
    let ciphertext = session.encrypt(&terms[0].0);
    let mut sum = session.sum(&terms);
    if parameters.levels() > 0 {
        let mut merge = Merge::new(&session.public, parameters.levels()).unwrap();
        (0..3).for_each(|_| merge.add(sum.clone()).unwrap());
        sum = merge.finish();
    }
    let (positions, mut reply): (Vec<usize>, _) = ((0..parameters.degree()).collect(), Vec::new());
    let server_shares = sum.reply(&session.public, &positions, &mut session.prg, &mut reply).unwrap();
    let client_shares = session.secret.open(&reply, &positions).unwrap();
    let shares: Vec<u8> = server_shares.iter().chain(&client_shares).flat_map(|share| share.to_le_bytes()).collect();
    [&key, &ciphertext, &reply, &shares].map(|bytes| digest(bytes))
}

#[test]
fn bytes_are_those_of_every_other_processor() {
    let parameters = |resharing| Parameters::choose(37, 16, 1 << 10, 4096, resharing).unwrap();
    let narrow = parameters(Resharing::Approximate);
    // Primes above 2^50, which have another product.
    let wide = parameters(Resharing::Exact);
    assert!(wide.prime_bits().iter().all(|&bits| bits > 50));
    let digests = [narrow.clone(), narrow.merging(3).unwrap(), wide].map(|parameters| digests(&parameters));
    let pinned = [
        [977_590_983_448_308_800, 9_303_645_562_729_689_597, 1_535_285_741_593_148_187, 16_055_547_878_574_321_517],
        [6_126_050_955_764_366_041, 8_962_022_651_655_639_198, 14_351_920_051_446_297_519, 12_782_457_965_473_194_583],
        [
            10_673_003_971_216_536_136,
            13_808_301_380_953_514_931,
            13_271_497_288_723_487_122,
            18_074_745_243_721_208_999,
        ],
    ];
    assert_eq!(digests, pinned);
}
