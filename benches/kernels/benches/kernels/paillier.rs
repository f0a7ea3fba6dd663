//! Paillier under keys of 2048 bits: what a ciphertext costs, and dot products beside one power at a time.

use std::error::Error;
use std::hint::black_box;

use crypto_bigint::modular::{BoxedMontyForm, BoxedMontyParams};
use crypto_bigint::{BoxedUint, Odd};
use privet_kernels::{Bench, Limit};
use privet_paillier::{Ciphertexts, KeySize, NoiseTable, Plaintext, PrivateKey, Weights, Windows};
use privet_prg::Prg;

/// Vector multiplications of eight products modulo a number of so many limbs: low and high halves, of the product and of the
/// multiple of the modulus.
fn multiplications(limbs: f64) -> f64 {
    4.0 * limbs * limbs
}

/// Bits of a weight, with its sign.
const WEIGHT_BITS: usize = 20;

pub fn run(bench: &mut Bench) -> Result<(), Box<dyn Error>> {
    let mut prg = Prg::from_os()?;
    let key = PrivateKey::generate(KeySize::Bits2048)?;
    let noise = NoiseTable::new(key.public())?;
    let vectors = |vectors: f64, why| Limit { vectors, why, ..Limit::default() };
    let (half, full) = (multiplications(40.0), multiplications(79.0));

    let plaintexts: Vec<Plaintext> = (0..8).map(|_| (prg.word() as i64 >> 30).into()).collect();
    let own =
        vectors(2.0 * 205.0 * half + 4.0 * full, "205 products modulo the square of each prime, eight side by side");
    bench.run("paillier-encrypt-8", own, || key.encrypt(black_box(&plaintexts)));
    let eight = key.encrypt(&plaintexts)?;
    let opening = vectors(2.0 * 1024.0 * 1.2 * half, "a power of 1,024 bits modulo the square of each prime");
    bench.run("paillier-decrypt-8", opening, || key.decrypt(black_box(&eight)));
    bench.run("paillier-noise-8", vectors(461.0 * full, "461 products"), || noise.draw(8));
    let mut sum = eight.clone();
    bench.run("paillier-add-8", vectors(full, "one product"), || sum.add(black_box(&eight)));
    let bytes = key.encrypt(&vec![Plaintext::from(0); 784])?.to_bytes();
    bench.run("paillier-read-784", vectors(2.0 * 98.0 * full, "two products each"), || {
        Ciphertexts::from_bytes(key.public(), 784, black_box(&bytes))
    });

    let values: Vec<Plaintext> = (0..784).map(|_| ((prg.word() >> 52) as i64).into()).collect();
    let ciphertexts = key.encrypt(&values)?;
    let mut random = |count: usize| (0..count).map(|_| prg.word() as i32 >> (32 - WEIGHT_BITS)).collect::<Vec<_>>();
    let one = Weights::new(1, 784, WEIGHT_BITS, random(784))?;
    let layer = Weights::new(128, 784, WEIGHT_BITS, random(784 * 128))?;
    for (name, weights) in [("paillier-dot-784", &one), ("paillier-dense-784x128", &layer)] {
        let windows = Windows::whole(784);
        let limit = vectors(weights.products(&windows) as f64 * full, "the plan's products");
        bench.run(name, limit, || ciphertexts.dot(black_box(weights), &windows));
    }
    let powers =
        vectors(98.0 * 33.0 * full, "a power of 20 bits each: 20 squarings, 10 products, three for the inverse");
    bench.run("paillier-scale-784", powers, || ciphertexts.scale(black_box(&one)));
    elsewhere(bench, &mut prg)
}

/// The same powers one at a time by `crypto-bigint`, modulo a random odd number of 4,096 bits.
fn elsewhere(bench: &mut Bench, prg: &mut Prg) -> Result<(), Box<dyn Error>> {
    let mut words = [0; 64];
    prg.fill_words(&mut words);
    words[0] |= 1;
    words[63] |= 1 << 63;
    let modulus: Option<Odd<BoxedUint>> = BoxedUint::from_words(words).into_odd().into_option();
    let parameters = BoxedMontyParams::new(modulus.ok_or("an odd number")?);
    prg.fill_words(&mut words);
    let base = BoxedMontyForm::new(BoxedUint::from_words(words), &parameters);
    let exponent = BoxedUint::from(prg.word() >> 44);
    let why = "nothing: a power of 20 bits by crypto-bigint, one of 784 in a dot product";
    let limit = Limit { why, ..Limit::default() };
    bench.run("crypto-bigint-power-20", limit, || base.pow_bounded_exp(black_box(&exponent), 20));
    Ok(())
}
