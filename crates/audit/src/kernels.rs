//! Code that handles secrets, under one signature: a secret goes in, something that depends on it comes out.

use std::sync::LazyLock;

use privet_bfv::{Parameters, Resharing, SecretKey};
use privet_fss::point;
use privet_paillier::{KeySize, Plaintext, PrivateKey};
use privet_prg::{Block, Prg, Seed, TreeHashes, hash};
use privet_ring::{Bits, Field, Modulus, planes, select};

/// Code under test.
pub struct Kernel {
    /// Name in tables.
    pub name: &'static str,
    /// Bytes of the secret.
    pub secret_bytes: usize,
    /// Runs on a secret and folds its result into a word, without a branch on it.
    pub run: fn(&[u8]) -> u64,
    /// Whether valgrind can follow it: its result must not be compared on the way, and one run must be short.
    pub followed: bool,
}

/// All of them. The controls leak on purpose: a test that passes them has found nothing out.
pub const KERNELS: [Kernel; 9] = [
    Kernel { name: "ring: pack, planes, select", secret_bytes: 512, run: ring, followed: true },
    Kernel { name: "ring: field", secret_bytes: 512, run: field, followed: true },
    Kernel { name: "prg: AES in counter mode", secret_bytes: 16, run: prg, followed: true },
    Kernel { name: "prg: hash", secret_bytes: 256, run: hashed, followed: true },
    Kernel { name: "fss: keys of comparisons", secret_bytes: 256, run: dealt, followed: true },
    Kernel { name: "bfv: secret key", secret_bytes: 16, run: key, followed: true },
    Kernel { name: "bfv: encrypt", secret_bytes: 512, run: encrypt, followed: true },
    Kernel { name: "paillier: encrypt", secret_bytes: 32, run: paillier_encrypt, followed: false },
    Kernel { name: "paillier: decrypt", secret_bytes: 32, run: paillier_decrypt, followed: false },
];

/// A comparison that stops at the first byte that differs: what no kernel may do.
pub const CONTROL: Kernel = Kernel { name: "control: early exit", secret_bytes: 512, run: early_exit, followed: true };

fn words(secret: &[u8]) -> Vec<u64> {
    secret.chunks_exact(8).map(|chunk| u64::from_le_bytes(chunk.try_into().expect("eight bytes"))).collect()
}

fn fold(values: &[u64]) -> u64 {
    values.iter().fold(0, |sum, x| sum.rotate_left(5) ^ x)
}

fn seed(secret: &[u8]) -> Seed {
    Seed::from_bytes(secret[..16].try_into().expect("sixteen bytes"))
}

fn ring(secret: &[u8]) -> u64 {
    let modulus = Modulus::new(37);
    let values: Vec<u64> = words(secret).into_iter().map(|x| modulus.reduce(x)).collect();
    let packed = modulus.pack(&values);
    let bits: Vec<Bits> = planes::from_values(&values, 37);
    let mut out = values.clone();
    select::signed(&mut out, bits[3].words(), &values);
    fold(&out) ^ u64::from(packed[7])
}

fn field(secret: &[u8]) -> u64 {
    static FIELD: LazyLock<Field> = LazyLock::new(|| Field::over(Modulus::new(37)).expect("a field"));
    let values: Vec<u64> = words(secret).into_iter().map(|x| FIELD.reduce(x)).collect();
    let sums: Vec<u64> = values.iter().zip(values.iter().rev()).map(|(&a, &b)| FIELD.sub(FIELD.add(a, b), b)).collect();
    let signed = sums.iter().map(|&x| FIELD.from_signed(FIELD.signed(x) >> 1) ^ FIELD.upper(x));
    fold(&signed.collect::<Vec<_>>())
}

fn prg(secret: &[u8]) -> u64 {
    let mut out = [0; 64];
    Prg::from_seed(&seed(secret)).fill_words(&mut out);
    fold(&out)
}

fn blocks(secret: &[u8]) -> Vec<Block> {
    secret.chunks_exact(16).map(|chunk| Block::from_le_bytes(chunk.try_into().expect("sixteen bytes"))).collect()
}

fn hashed(secret: &[u8]) -> u64 {
    let blocks = blocks(secret);
    let mut words = vec![0; blocks.len()];
    hash::Keys::new(&Seed::from_bytes([5; 16])).at(0).words(&blocks, 7, &mut words);
    fold(&words)
}

fn dealt(secret: &[u8]) -> u64 {
    let points: Vec<u64> = words(secret).into_iter().map(|x| x >> 40).collect();
    let roots = [0, 1].map(|mark| (0..points.len()).map(|i| (i as Block + 9) << 1 | mark).collect::<Vec<_>>());
    let hashes = TreeHashes::new(&Seed::from_bytes([5; 16]));
    let keys = point::plant(24, &hashes, [&roots[0], &roots[1]], &points);
    keys.as_flattened().iter().fold(0, |sum, x| sum.rotate_left(3) ^ u64::from(*x))
}

static BFV: LazyLock<Parameters> =
    LazyLock::new(|| Parameters::choose(37, 12, 64, 4096, Resharing::Approximate).expect("parameters"));

fn key(secret: &[u8]) -> u64 {
    let key = SecretKey::generate(&BFV, &mut Prg::from_seed(&seed(secret)));
    u64::from(key.parameters().ring_bits())
}

fn encrypt(secret: &[u8]) -> u64 {
    static KEY: LazyLock<SecretKey> =
        LazyLock::new(|| SecretKey::generate(&BFV, &mut Prg::from_os().expect("entropy")));
    let message: Vec<u64> = words(secret).into_iter().map(|x| x >> 27).collect();
    let mut out = Vec::new();
    let mut prg = Prg::from_seed(&Seed::from_bytes([3; 16]));
    KEY.encrypt(&message, &mut prg, &mut out).expect("the message fits");
    out.iter().fold(0, |sum, x| sum.rotate_left(3) ^ u64::from(*x))
}

static PAILLIER: LazyLock<PrivateKey> = LazyLock::new(|| PrivateKey::generate(KeySize::Bits2048).expect("entropy"));

fn plaintexts(secret: &[u8]) -> Vec<Plaintext> {
    words(secret).into_iter().map(|x| Plaintext::from((x >> 1) as i64)).collect()
}

fn paillier_encrypt(secret: &[u8]) -> u64 {
    let ciphertexts = PAILLIER.encrypt(&plaintexts(secret)).expect("entropy");
    ciphertexts.len() as u64
}

/// Decrypts a number that is as long as the secret says; the encryption before it is the same for all.
fn paillier_decrypt(secret: &[u8]) -> u64 {
    let ciphertexts = PAILLIER.encrypt(&plaintexts(secret)).expect("entropy");
    PAILLIER.decrypt(&ciphertexts).expect("its own ciphertexts").len() as u64
}

fn early_exit(secret: &[u8]) -> u64 {
    secret.iter().position(|byte| *byte != 0).unwrap_or(secret.len()) as u64
}
