//! BFV at N = 4096 with two primes of 39 bits.

use std::error::Error;
use std::hint::black_box;

use privet_bfv::{Ciphertext, Merge, Parameters, PublicKey, Resharing, SecretKey, Sum, Weights};
use privet_kernels::{Bench, Limit};
use privet_prg::Prg;

/// Multiplications of a transform modulo two primes: 12 levels of 2,048 butterflies, three each, eight to an instruction.
pub const TRANSFORM: f64 = 2.0 * 12.0 * 2048.0 * 3.0 / 8.0;

/// Those of a product: 4 polynomials of 4,096, two multiplications each, eight to an instruction. What sums are reduced by comes once for
/// many.
pub const PRODUCT: f64 = 4.0 * 4096.0 * 2.0 / 8.0;

/// Sums that become one reply: `2^LEVELS`.
const LEVELS: u32 = 3;

pub fn run(bench: &mut Bench) -> Result<(), Box<dyn Error>> {
    let parameters = Parameters::choose(37, 16, 4608, 1 << 18, Resharing::Approximate)?;
    let parameters = parameters.merging(LEVELS).ok_or("no room for a special prime")?;
    let mut prg = Prg::from_os()?;
    let secret = SecretKey::generate(&parameters, &mut prg);
    let public = PublicKey::from_bytes(&parameters, &secret.public_key(&mut prg))?;
    let message: Vec<u64> = (0..4096).map(|_| prg.word() >> 27).collect();
    let coefficients: Vec<i32> = (0..4096).map(|_| (prg.word() >> 48) as i32 - (1 << 15)).collect();
    let mut bytes = Vec::new();
    secret.encrypt(&message, &mut prg, &mut bytes)?;
    let ciphertext = Ciphertext::from_bytes(&parameters, &bytes)?;
    let weights = Weights::new(&parameters, &coefficients)?;
    let mut sum = Sum::new(&parameters);
    sum.multiply_add(&[(&ciphertext, &weights)])?;
    let positions: Vec<usize> = (0..4096).collect();
    let mut reply = Vec::new();
    sum.clone().reply(&public, &positions, &mut prg, &mut reply)?;

    let vectors = |vectors: f64, why| Limit { vectors, why, ..Limit::default() };
    let terms: Vec<_> = (0..16).map(|_| (&ciphertext, &weights)).collect();
    let products = vectors(16.0 * PRODUCT, "two 52-bit multiplications for eight coefficients of four polynomials");
    bench.run("bfv-product-16", products, || sum.multiply_add(black_box(&terms)));
    bench.run("bfv-transform", vectors(TRANSFORM, "three multiplications a butterfly, two primes"), || {
        Weights::new(&parameters, black_box(&coefficients))
    });
    let folding = vectors(7.0 * 4.5 * TRANSFORM, "seven folds of nine transforms modulo one prime");
    bench.run("bfv-merge-8", folding, || {
        let mut merge = Merge::new(&public, LEVELS)?;
        (0..1 << LEVELS).try_for_each(|_| merge.add(black_box(&sum).clone()))?;
        Ok::<_, privet_bfv::Error>(merge.finish())
    });
    let sample = |polynomials: f64, words: f64, why| Limit {
        vectors: polynomials * TRANSFORM,
        aes: words * 4096.0 / 2.0,
        why,
        ..Limit::default()
    };
    let encrypting = sample(1.0, 3.0, "one transform; three words of randomness a coefficient, two to an AES block");
    bench.run("bfv-encrypt", encrypting, || secret.encrypt(black_box(&message), &mut prg, &mut Vec::new()));
    let replying = sample(3.0, 3.0, "three transforms; three words of randomness a coefficient");
    let mut prg = Prg::from_os()?;
    bench.run("bfv-reply", replying, || sum.clone().reply(&public, &positions, &mut prg, &mut Vec::new()));
    bench.run("bfv-open", vectors(2.0 * TRANSFORM, "two transforms"), || secret.open(black_box(&reply), &positions));
    Ok(())
}
