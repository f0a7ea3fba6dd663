//! Tests of whole keys and ciphertexts, under toy keys unless sizes matter.

use std::sync::LazyLock;

use privet_prg::{Prg, Seed};

use crate::*;

mod hostile;
mod known;
mod laws;
mod noise;
mod packing;
mod proof;
mod sizes;

/// A toy key.
pub(crate) static KEY: LazyLock<PrivateKey> = LazyLock::new(|| {
    let mut prg = Prg::from_seed(&Seed::from_bytes([1; 16]));
    PrivateKey::generate_from(KeySize::Insecure512, &mut prg).expect("a key")
});

pub(crate) fn plaintexts(values: &[i64]) -> Vec<Plaintext> {
    values.iter().map(|&value| value.into()).collect()
}

pub(crate) fn decrypted(ciphertexts: &Ciphertexts) -> Vec<i64> {
    let plaintexts = KEY.decrypt(ciphertexts).expect("the same key");
    plaintexts.iter().map(|plaintext| plaintext.to_i64().expect("a small number")).collect()
}
