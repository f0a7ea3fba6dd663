//! Bytes from a peer that does not follow the protocol: a typed error, never a panic.

use proptest::prelude::*;

use super::Session;
use crate::Resharing;
use crate::{Ciphertext, Error, Parameters, PeerMisbehaved, PublicKey, Sum, Weights};

fn parameters() -> Parameters {
    Parameters::choose(37, 16, 64, 4096, Resharing::Approximate).unwrap()
}

fn blamed<T>(result: Result<T, Error>) -> PeerMisbehaved {
    match result.map(drop) {
        Err(Error::PeerMisbehaved(blame)) => blame,
        other => panic!("not blamed: {other:?}"),
    }
}

/// What is read of a ciphertext when it is multiplied.
fn multiplied(parameters: &Parameters, bytes: &[u8]) -> Result<Sum, Error> {
    let weights = Weights::new(parameters, &[1])?;
    Sum::product(bytes, &[weights.residues(0), weights.residues(1)])
}

#[test]
fn wrong_lengths() {
    let parameters = parameters();
    let mut session = Session::new(&parameters, 1);
    let bytes = session.encrypt(&[1, 2, 3]);
    for length in [0, 1, 15, 16, 17, bytes.len() - 1, bytes.len() + 1] {
        let mut cut = bytes.clone();
        cut.resize(length, 0);
        assert!(matches!(blamed(Ciphertext::from_bytes(&parameters, &cut)), PeerMisbehaved::WrongLength { .. }));
        assert!(matches!(blamed(multiplied(&parameters, &cut)), PeerMisbehaved::WrongLength { .. }));
        assert!(matches!(blamed(PublicKey::from_bytes(&parameters, &cut)), PeerMisbehaved::WrongLength { .. }));
        assert!(matches!(blamed(session.secret.open(&cut, &[0, 7])), PeerMisbehaved::WrongLength { .. }));
    }
}

#[test]
fn residues_that_are_not_reduced() {
    let parameters = parameters();
    let mut session = Session::new(&parameters, 2);
    let mut bytes = session.encrypt(&[1, 2, 3]);
    bytes[16..].fill(0xff);
    let [prime, _] = parameters.primes();
    let blame = blamed(Ciphertext::from_bytes(&parameters, &bytes));
    assert_eq!(blame, PeerMisbehaved::NotReduced { what: "ciphertext", index: 0, prime });
    assert_eq!(blamed(multiplied(&parameters, &bytes)), blame);
    let blame = blamed(PublicKey::from_bytes(&parameters, &bytes));
    assert_eq!(blame, PeerMisbehaved::NotReduced { what: "public key", index: 0, prime });
}

#[test]
fn a_single_residue_equal_to_its_prime() {
    let parameters = parameters();
    let mut bytes = vec![0; parameters.ciphertext_bytes()];
    let [bits, _] = parameters.prime_bits();
    let [prime, _] = parameters.primes();
    // Coefficient 8 starts at a whole byte, whatever the width.
    let at = 16 + bits as usize;
    bytes[at..at + 8].copy_from_slice(&prime.to_le_bytes());
    let blame = blamed(Ciphertext::from_bytes(&parameters, &bytes));
    assert_eq!(blame, PeerMisbehaved::NotReduced { what: "ciphertext", index: 8, prime });
    assert_eq!(blamed(multiplied(&parameters, &bytes)), blame);
    bytes[at..at + 8].copy_from_slice(&(prime - 1).to_le_bytes());
    assert!(Ciphertext::from_bytes(&parameters, &bytes).is_ok());
    // Far from the first ones, which are read together.
    let at = 16 + 4000 / 8 * bits as usize;
    bytes[at..at + 8].copy_from_slice(&prime.to_le_bytes());
    let blame = PeerMisbehaved::NotReduced { what: "ciphertext", index: 4000, prime };
    assert_eq!(blamed(Ciphertext::from_bytes(&parameters, &bytes)), blame);
    assert_eq!(blamed(multiplied(&parameters, &bytes)), blame);
}

#[test]
fn replies_with_dirty_padding() {
    let parameters = parameters();
    let mut session = Session::new(&parameters, 3);
    let mut reply = Vec::new();
    Sum::new(&parameters).reply(&session.public, &[9], &mut session.prg, &mut reply).unwrap();
    assert!(session.secret.open(&reply, &[9]).is_ok());
    assert_ne!(parameters.reply_bits() % 8, 0);
    *reply.last_mut().unwrap() |= 0x80;
    assert_eq!(blamed(session.secret.open(&reply, &[9])), PeerMisbehaved::DirtyPadding { what: "reply" });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..100), fill: u8, seed: u8) {
        let parameters = parameters();
        let session = Session::new(&parameters, seed);
        for length in [bytes.len(), parameters.ciphertext_bytes(), parameters.reply_bytes(2)] {
            let mut message = bytes.clone();
            message.resize(length, fill);
            // Accepted or refused: what matters is that it returns.
            let _ = Ciphertext::from_bytes(&parameters, &message);
            let _ = multiplied(&parameters, &message);
            let _ = PublicKey::from_bytes(&parameters, &message);
            let _ = session.secret.open(&message, &[0, 4095]);
        }
    }
}
