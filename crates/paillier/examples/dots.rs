//! A dot product of 784 ciphertexts with weights of 20 bits, three ways, on one thread: by the cheapest plan, one power
//! at a time by the same arithmetic, and one power at a time by `crypto-bigint`. And a layer of 128 such products. The
//! least processor time of several runs each, so that a busy machine tells nearly the same.
//!
//! `RAYON_NUM_THREADS=1 cargo run --release -p privet-paillier --example dots`

use std::error::Error;
use std::hint::black_box;
use std::time::Duration;

use crypto_bigint::modular::{BoxedMontyForm, BoxedMontyParams};
use crypto_bigint::{BoxedUint, Odd};
use privet_paillier::{KeySize, NoiseTable, Plaintext, PrivateKey, Weights, Windows};
use privet_prg::Prg;
use rustix::time::{ClockId, clock_gettime};

/// Inputs of a dot product.
const INPUTS: usize = 784;

/// Bits of a weight, with its sign.
const WEIGHT_BITS: usize = 20;

fn main() -> Result<(), Box<dyn Error>> {
    let mut prg = Prg::from_os()?;
    let key = PrivateKey::generate(KeySize::Bits2048)?;
    let values: Vec<Plaintext> = (0..INPUTS).map(|_| ((prg.word() >> 52) as i64).into()).collect();
    let ciphertexts = key.encrypt(&values)?;
    let mut random = |count: usize| (0..count).map(|_| prg.word() as i32 >> (32 - WEIGHT_BITS)).collect::<Vec<_>>();
    let one = Weights::new(1, INPUTS, WEIGHT_BITS, random(INPUTS))?;
    let layer = Weights::new(128, INPUTS, WEIGHT_BITS, random(128 * INPUTS))?;
    let windows = Windows::whole(INPUTS);

    let mut sum = ciphertexts.slice(0..8);
    let product = least(2000, || sum.add(black_box(&ciphertexts.slice(0..8)))) / 8;
    println!("adding ciphertexts, eight at once  {product:>10.2?}");
    let dot = least(40, || ciphertexts.dot(black_box(&one), &windows));
    println!("dot product                       {dot:>10.2?}  {:?}", one.plan(&windows));
    let powers = least(10, || ciphertexts.scale(black_box(&one)));
    let ratio = powers.as_secs_f64() / dot.as_secs_f64();
    println!("one power at a time               {powers:>10.2?}  {ratio:.1} times as long");
    let elsewhere = elsewhere(&mut prg)? * INPUTS as u32;
    let ratio = elsewhere.as_secs_f64() / dot.as_secs_f64();
    println!("one power at a time, crypto-bigint{elsewhere:>10.2?}  {ratio:.1} times as long");
    let dense = least(3, || ciphertexts.dot(black_box(&layer), &windows));
    println!("a layer of 128                    {dense:>10.2?}  {:.2?} each, {:?}", dense / 128, layer.plan(&windows));

    let encrypt = least(20, || key.encrypt(black_box(&values[..8]))) / 8;
    let decrypt = least(20, || key.decrypt(black_box(&sum))) / 8;
    let table = NoiseTable::new(key.public())?;
    let tables = least(3, || NoiseTable::new(key.public()));
    let sent = key.public().to_bytes();
    let check = least(10, || privet_paillier::PublicKey::from_bytes(key.public().size(), black_box(&sent)));
    let secret = key.to_bytes();
    let prove = least(10, || PrivateKey::from_bytes(key.public().size(), black_box(&secret)));
    println!(
        "read a key and check its proof {check:.2?}, read a private key and prove {prove:.2?}, a table of noise {tables:.2?}"
    );
    let noise = least(20, || table.draw(8)) / 8;
    let bytes = ciphertexts.to_bytes();
    let read = least(10, || privet_paillier::Ciphertexts::from_bytes(key.public(), INPUTS, &bytes)) / INPUTS as u32;
    println!("encrypt {encrypt:.2?}, decrypt {decrypt:.2?}, noise {noise:.2?}, read and check {read:.2?}");
    Ok(())
}

/// A power of 20 bits modulo a random odd number of 4,096 bits, in constant time.
fn elsewhere(prg: &mut Prg) -> Result<Duration, Box<dyn Error>> {
    let mut words = [0; 64];
    prg.fill_words(&mut words);
    words[0] |= 1;
    words[63] |= 1 << 63;
    let modulus: Option<Odd<BoxedUint>> = BoxedUint::from_words(words).into_odd().into_option();
    let parameters = BoxedMontyParams::new(modulus.ok_or("an odd number")?);
    prg.fill_words(&mut words);
    words[63] >>= 1;
    let base = BoxedMontyForm::new(BoxedUint::from_words(words), &parameters);
    let exponent = BoxedUint::from(prg.word() >> 44);
    Ok(least(200, || base.pow_bounded_exp(black_box(&exponent), 20)))
}

/// The least processor time of several runs.
fn least<T>(runs: usize, mut work: impl FnMut() -> T) -> Duration {
    let time = |work: &mut dyn FnMut() -> T| {
        let start = clock_gettime(ClockId::ProcessCPUTime);
        black_box(work());
        Duration::try_from(clock_gettime(ClockId::ProcessCPUTime) - start).unwrap_or_default()
    };
    (0..runs).map(|_| time(&mut work)).min().unwrap_or_default()
}
