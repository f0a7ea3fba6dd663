//! The scheme as a whole: correctness, hostile bytes, and the two attacks that its masks are there for.

mod attacks;
mod documented;
mod exact;
mod fresh;
mod hostile;
mod merge;
mod merge_attacks;
mod panel;
mod panel_attacks;
mod products;
mod refusals;
mod wire;

use privet_prg::{Prg, Seed};

use crate::{Ciphertext, Load, Parameters, PublicKey, SecretKey, Sum, Weights};

/// Weights of up to 16 bits that add up to this at most, for 4096 results.
fn load(weight_sum: u64) -> Load {
    Load { weight_sum, heaviest: 1 << 16, results: 4096, masks: false }
}

fn prg(byte: u8) -> Prg {
    Prg::from_seed(&Seed::from_bytes([byte; 16]))
}

/// A client and what the server knows of it.
struct Session {
    parameters: Parameters,
    secret: SecretKey,
    public: PublicKey,
    prg: Prg,
}

impl Session {
    fn new(parameters: &Parameters, seed: u8) -> Self {
        let mut prg = prg(seed);
        let secret = SecretKey::generate(parameters, &mut prg);
        let bytes = secret.public_key(&mut prg);
        assert_eq!(bytes.len(), parameters.public_key_bytes());
        let public = PublicKey::from_bytes(parameters, &bytes).unwrap();
        Self { parameters: parameters.clone(), secret, public, prg }
    }

    fn message(&mut self) -> Vec<u64> {
        let mut message = vec![0; self.parameters.degree()];
        self.prg.fill_words(&mut message);
        message.iter_mut().for_each(|x| *x &= self.parameters.ring_mask());
        message
    }

    fn weights(&mut self, count: usize, bits: u32) -> Vec<i32> {
        (0..count)
            .map(|_| self.prg.below(1 << (bits + 1)) as i32 - (1 << bits))
            .map(|w| w.max(1 - (1 << bits)))
            .collect()
    }

    fn encrypt(&mut self, message: &[u64]) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.secret.encrypt(message, &mut self.prg, &mut bytes).unwrap();
        assert_eq!(bytes.len(), self.parameters.ciphertext_bytes());
        bytes
    }

    fn sum(&mut self, terms: &[(Vec<u64>, Vec<i32>)]) -> Sum {
        let mut sum = Sum::new(&self.parameters);
        for (message, weights) in terms {
            let bytes = self.encrypt(message);
            let ciphertext = Ciphertext::from_bytes(&self.parameters, &bytes).unwrap();
            sum.multiply_add(&[(&ciphertext, &Weights::new(&self.parameters, weights).unwrap())]).unwrap();
        }
        sum
    }
}

/// The product modulo `X^N + 1` and 2^64.
fn negacyclic(message: &[u64], weights: &[i32]) -> Vec<u64> {
    let n = message.len();
    let mut product = vec![0_u64; n];
    for (j, &w) in weights.iter().enumerate().filter(|(_, w)| **w != 0) {
        for (i, &m) in message.iter().enumerate() {
            let term = m.wrapping_mul(i64::from(w) as u64);
            let at = &mut product[(i + j) % n];
            *at = if i + j < n { at.wrapping_add(term) } else { at.wrapping_sub(term) };
        }
    }
    product
}
