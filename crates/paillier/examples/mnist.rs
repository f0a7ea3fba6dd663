//! MNIST-1 of PP-Stream, three dense layers of 784, 128, 128 and 10 with weights of 20 bits: the processor time, all
//! threads together, that each side takes for one inference, without a network between them, and with as many samples
//! packed as a plaintext has room for.

use std::time::Duration;

use privet_paillier::{Ciphertexts, Error, KeySize, NoiseTable, Packing, Plaintext, PrivateKey, Weights, Windows};
use privet_prg::Prg;
use rustix::time::{ClockId, clock_gettime};

/// Bits of a weight, with its sign.
const WEIGHT_BITS: usize = 20;

/// Bound on the values that enter a layer, and on what it gives.
const INPUT: u64 = 1 << 12;

fn main() -> Result<(), Error> {
    let mut prg = Prg::from_os()?;
    let start = processor_time();
    let key = PrivateKey::generate(KeySize::Bits2048)?;
    println!("key             {:>9.1?}", processor_time() - start);
    let start = processor_time();
    let noise = NoiseTable::new(key.public())?;
    println!("table of noise  {:>9.1?}", processor_time() - start);
    for packed in [false, true] {
        infer(&key, &noise, packed, &mut prg)?;
    }
    Ok(())
}

fn infer(key: &PrivateKey, noise: &NoiseTable, packed: bool, prg: &mut Prg) -> Result<(), Error> {
    let packing = Packing::largest(KeySize::Bits2048, u128::from(INPUT) << (WEIGHT_BITS - 1) << 10)?;
    let slots = if packed { packing.slots() } else { 1 };
    let packing = Packing::new(KeySize::Bits2048, slots, u128::from(INPUT) << (WEIGHT_BITS - 1) << 10)?;
    let (mut client, mut server, mut drawing) = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
    let mut bytes = 0;
    for [inputs, outputs] in [[784, 128], [128, 128], [128, 10]] {
        let random = |prg: &mut Prg| prg.word() as i32 >> (32 - WEIGHT_BITS);
        let rows: Vec<i32> = (0..inputs * outputs).map(|_| random(prg)).collect();
        let weights = Weights::new(outputs, inputs, WEIGHT_BITS, rows.clone())?;
        let values: Vec<Vec<i64>> =
            (0..inputs).map(|_| (0..slots).map(|_| prg.below(INPUT) as i64).collect()).collect();

        let start = processor_time();
        let plaintexts = values.iter().map(|values| packing.pack(values)).collect::<Result<Vec<Plaintext>, _>>()?;
        let sent = key.encrypt(&plaintexts)?.to_bytes();
        client += processor_time() - start;

        let start = processor_time();
        let fresh = noise.draw(outputs)?;
        drawing += processor_time() - start;

        let start = processor_time();
        let received = Ciphertexts::from_bytes(key.public(), inputs, &sent)?;
        let mut results = received.dot(&weights, &Windows::whole(inputs))?;
        results.randomize(fresh)?;
        let reply = results.to_bytes();
        server += processor_time() - start;

        let start = processor_time();
        let results = key.decrypt(&Ciphertexts::from_bytes(key.public(), outputs, &reply)?)?;
        client += processor_time() - start;
        bytes += sent.len() + reply.len();
        for (row, result) in rows.chunks(inputs).zip(&results) {
            for (slot, result) in packing.unpack(result).into_iter().enumerate() {
                let expected: i64 = row.iter().zip(&values).map(|(&w, x)| i64::from(w) * x[slot]).sum();
                assert_eq!(result, expected, "the dot product of sample {slot}");
            }
        }
    }
    println!("{slots} samples, {bytes} bytes");
    println!("data provider   {client:>9.1?}");
    println!("model provider  {server:>9.1?}");
    println!("noise, ahead    {drawing:>9.1?}");
    Ok(())
}

/// Of all threads, since the process began.
fn processor_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap_or_default()
}
