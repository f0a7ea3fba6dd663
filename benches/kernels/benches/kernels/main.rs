//! Every kernel, on one thread of the pool unless `RAYON_NUM_THREADS` says otherwise: `make bench-kernels`.

mod authenticated;
mod channel;
mod cipher;
mod keys;
mod layers;
mod online;
mod paillier;
mod peaks;
mod ring;
mod symmetric;
mod transfer;
mod untransformed;

use privet_kernels::Bench;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut bench = Bench::new();
    peaks::run(&mut bench);
    symmetric::run(&mut bench);
    ring::run(&mut bench);
    transfer::run(&mut bench)?;
    cipher::run(&mut bench)?;
    layers::run(&mut bench)?;
    paillier::run(&mut bench)?;
    untransformed::run(&mut bench);
    online::run(&mut bench);
    keys::run(&mut bench)?;
    authenticated::run(&mut bench)?;
    channel::run(&mut bench);
    Ok(bench.finish()?)
}
