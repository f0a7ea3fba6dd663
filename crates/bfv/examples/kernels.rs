//! Times the parts of a private product on one core.
//!
//! `cargo run --release -p privet-bfv --example kernels`

use std::time::Instant;

use privet_bfv::{Ciphertext, Error, Parameters, PublicKey, Resharing, SecretKey, Sum, Weights};
use privet_prg::Prg;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let parameters = Parameters::choose(37, 16, 4608, Resharing::Approximate)?;
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

    println!("N = {}, q of {:?} bits, best of 200, microseconds", parameters.degree(), parameters.prime_bits());
    time("encrypt", || secret.encrypt(&message, &mut prg, &mut Vec::new()))?;
    time("read a ciphertext", || Ciphertext::from_bytes(&parameters, &bytes))?;
    time("transform weights", || Weights::new(&parameters, &coefficients))?;
    time("multiply and add", || sum.multiply_add(&[(&ciphertext, &weights)]))?;
    time("copy a sum", || Ok(sum.clone()))?;
    time("reply (with a copy)", || sum.clone().reply(&public, &positions, &mut prg, &mut Vec::new()))?;
    time("open", || secret.open(&reply, &positions))?;
    Ok(())
}

fn time<T>(name: &str, mut work: impl FnMut() -> Result<T, Error>) -> Result<(), Error> {
    let mut best = f64::MAX;
    for _ in 0..200 {
        let start = Instant::now();
        std::hint::black_box(work()?);
        best = best.min(start.elapsed().as_secs_f64() * 1e6);
    }
    println!("{name:20} {best:8.1}");
    Ok(())
}
