//! The security budget of a plan: what it assumes, what it loses statistically, and what that comes to over an inference, over the
//! life of a key and over many inferences of a model. `privet inspect --security` prints it; `docs/explanation/security-budget.md` explains it.
//!
//! A computational term of `b` bits says that an attacker who takes `2^t` steps breaks one instance with a chance of `2^(t-b)` at most, by
//! the cheapest attack known. For `n` instances a hybrid argument gives `n 2^(t-b)`, and terms add up. So the sum is a bound, not the
//! price of an attack: none is known that gains by many ring-LWE instances. Statistical terms are distances and probabilities
//! and hold against everybody; they add up as well.
//!
//! Every count is taken from the plan that runs, and the parameters are those of the protocols.

use serde::Serialize;

/// Inferences with one model for which [`Loss::model_bits`] is stated: 2^20.
pub const MODEL_INFERENCES: u64 = 1 << 20;

/// What a statistical loss of an inference is promised to stay below, in bits.
pub const PROMISED_BITS: f64 = 40.0;

/// A problem that must be hard.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Assumption {
    /// What rests on it.
    pub name: &'static str,
    /// The problem, with its parameters.
    pub problem: String,
    /// Bits of one instance, by the cheapest attack known.
    pub bits: f64,
    /// Instances, or targets that one trial is compared with.
    pub count: u64,
    /// Bits of all of them together.
    pub total_bits: f64,
}

/// How losses add up over `n` inferences.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Growth {
    /// As `n`.
    Sum,
    /// As the square root of `n`: divergences add up.
    Root,
    /// Not at all: stated for the whole life of a setup.
    Whole,
}

/// A statistical loss.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Loss {
    /// What loses.
    pub name: &'static str,
    /// What one is.
    pub unit: &'static str,
    /// Bits of one.
    pub each_bits: f64,
    /// How many there are in an inference.
    pub count: u64,
    /// How it grows with inferences.
    pub growth: Growth,
    /// Bits of an inference.
    pub inference_bits: f64,
    /// Bits of a key's life.
    pub key_bits: f64,
    /// Bits of [`MODEL_INFERENCES`] inferences with one model, whatever their keys.
    pub model_bits: f64,
}

/// A plan's budget.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Security {
    /// Computational terms.
    pub assumptions: Vec<Assumption>,
    /// Bits of their sum.
    pub computational_bits: f64,
    /// Statistical terms; none if nothing is lost.
    pub losses: Vec<Loss>,
    /// Bits of their sum over an inference.
    pub inference_bits: Option<f64>,
    /// Bits of their sum over a key's life.
    pub key_bits: Option<f64>,
    /// Bits of their sum over [`MODEL_INFERENCES`].
    pub model_bits: Option<f64>,
    /// What a key is here, and when the code retires it.
    pub key: &'static str,
    /// Inferences that one key serves; none if there is no limit.
    pub key_inferences: Option<u64>,
    /// What else gives something away by design, which no bits measure.
    pub notes: Vec<&'static str>,
}

impl Assumption {
    /// `count` instances of `bits` bits.
    pub fn new(name: &'static str, problem: impl Into<String>, bits: f64, count: u64) -> Self {
        let total_bits = bits - (count.max(1) as f64).log2();
        Self { name, problem: problem.into(), bits, count, total_bits }
    }
}

impl Loss {
    /// `inference`: what an inference loses; `key_inferences`: a key's.
    pub fn new(
        name: &'static str,
        unit: &'static str,
        count: u64,
        inference: f64,
        growth: Growth,
        key_inferences: u64,
    ) -> Self {
        let over = |inferences: u64| match growth {
            Growth::Sum => inference * inferences as f64,
            Growth::Root => inference * (inferences as f64).sqrt(),
            Growth::Whole => inference,
        };
        let each = match growth {
            Growth::Root => inference / (count as f64).sqrt(),
            Growth::Sum => inference / count as f64,
            Growth::Whole => inference,
        };
        Self {
            name,
            unit,
            each_bits: -each.log2(),
            count,
            growth,
            inference_bits: -inference.log2(),
            key_bits: -over(key_inferences).log2(),
            model_bits: -over(MODEL_INFERENCES).log2(),
        }
    }
}

impl Security {
    /// Adds terms up.
    pub fn new(
        assumptions: Vec<Assumption>,
        losses: Vec<Loss>,
        key: &'static str,
        key_inferences: Option<u64>,
        notes: Vec<&'static str>,
    ) -> Self {
        let sum = |bits: &dyn Fn(&Loss) -> f64| {
            (!losses.is_empty()).then(|| -losses.iter().map(|loss| (-bits(loss)).exp2()).sum::<f64>().log2())
        };
        Self {
            computational_bits: -assumptions.iter().map(|term| (-term.total_bits).exp2()).sum::<f64>().log2(),
            inference_bits: sum(&|loss| loss.inference_bits),
            key_bits: sum(&|loss| loss.key_bits),
            model_bits: sum(&|loss| loss.model_bits),
            assumptions,
            losses,
            key,
            key_inferences,
            notes,
        }
    }
}

/// What oblivious transfers for `demand` rest on, made anew for so many inferences in a session, where so many sessions follow
/// from the same base transfers.
pub fn transfers(
    extension: privet_ot::Extension,
    demand: &privet_ot::Demand,
    inferences: u64,
    sessions: u64,
) -> Vec<Assumption> {
    use privet_ot::security::{BASE_BITS, BASE_COUNT, SEED_BITS};
    let strength = extension.strength(demand);
    let delta = strength.delta_bits;
    let mut terms = vec![
        Assumption::new("base OT", "CDH on Ristretto, order of 252 bits", BASE_BITS, BASE_COUNT),
        Assumption::new("seeds of the OT extension", "AES-128 keys", SEED_BITS, sessions * strength.seeds),
        Assumption::new(
            "hash of OTs",
            "AES as an ideal cipher, targets under one key",
            delta,
            sessions * strength.hashed,
        ),
    ];
    if let Some(bits) = strength.lpn_bits {
        let instances = strength.instances * inferences * sessions;
        terms.push(Assumption::new("silent OT", format!("LPN, regular noise, {}", extension.name()), bits, instances));
        terms.push(Assumption::new(
            "trees of silent OT",
            "AES as an ideal cipher, targets under one key",
            delta,
            sessions * strength.tree_hashes,
        ));
    }
    terms
}

/// What trees of point functions and comparisons rest on: targets under one key, of trees with so many hashes each.
pub fn trees(hashes: usize) -> Assumption {
    // The lowest bit of a difference is fixed.
    let count = (privet_prg::KEYS_A_PART * hashes) as u64;
    Assumption::new("half-trees of keys", "AES as an ideal cipher, targets under one key", 127.0, count)
}

/// What generators of seeds rest on.
pub fn seeds(count: u64) -> Assumption {
    Assumption::new("seeds of generators", "AES-128 keys", privet_ot::security::SEED_BITS, count)
}

/// What a BFV key and the secrets of replies rest on; the modulus is that of switching keys, where any are.
pub fn ring_lwe(degree: usize, modulus_bits: f64, replies: u64) -> Assumption {
    let problem = format!(
        "ring-LWE, N = {degree}, log q = {modulus_bits:.1} (special primes included), ternary secrets (standard's table)"
    );
    Assumption::new("BFV key and replies", problem, 128.0, 1 + replies)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_add_up() {
        let budget = Security::new(
            vec![Assumption::new("a", "", 130.0, 4), Assumption::new("b", "", 128.0, 1)],
            vec![
                Loss::new("x", "", 8, 2_f64.powi(-42), Growth::Sum, 16),
                Loss::new("y", "", 4, 2_f64.powi(-42), Growth::Root, 16),
                Loss::new("z", "", 1, 2_f64.powi(-63), Growth::Whole, 16),
            ],
            "",
            Some(16),
            Vec::new(),
        );
        assert!((budget.computational_bits - 127.0).abs() < 1e-9);
        let near = |bits: Option<f64>, expected: f64| (bits.expect("losses") - expected).abs() < 1e-5;
        assert!(near(budget.inference_bits, 41.0), "{budget:?}");
        // 16 times 2^-42, and 4 times 2^-42.
        assert!(near(budget.key_bits, 42.0 - 20_f64.log2()), "{budget:?}");
        assert_eq!([0, 1, 2].map(|i| budget.losses[i].each_bits), [45.0, 43.0, 63.0]);
    }
}
