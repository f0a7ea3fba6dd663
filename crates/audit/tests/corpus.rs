//! The kept corpus, and seeded mutations of it, through every decoder: the short form of fuzzing.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use privet_audit::decoders::DECODERS;
use privet_prg::{Prg, Seed};

/// Mutations of each decoder's corpus; `PRIVET_FUZZ_ROUNDS` takes others.
fn rounds() -> usize {
    std::env::var("PRIVET_FUZZ_ROUNDS").ok().and_then(|word| word.parse().ok()).unwrap_or(200)
}

/// No decoder may take longer over a few kilobytes; far above what any takes on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(10);

fn corpus(name: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name);
    let mut files: Vec<_> =
        fs::read_dir(folder).into_iter().flatten().map(|entry| entry.expect("a file").path()).collect();
    files.sort();
    files.iter().map(|file| fs::read(file).expect("a file of the corpus")).collect()
}

/// Changes a few bytes, cuts, repeats or joins with another entry.
fn mutated(corpus: &[Vec<u8>], prg: &mut Prg) -> Vec<u8> {
    let mut pick = |count: usize| prg.below(count as u64) as usize;
    let mut bytes = corpus[pick(corpus.len())].clone();
    for _ in 0..=pick(4) {
        let at = pick(bytes.len() + 1);
        match pick(5) {
            0 => bytes.truncate(at),
            1 => {
                let other = &corpus[pick(corpus.len())];
                bytes.truncate(at);
                bytes.extend_from_slice(&other[pick(other.len() + 1)..]);
            }
            2 => bytes.insert(at, pick(256) as u8),
            _ if at < bytes.len() => bytes[at] ^= 1 << pick(8),
            _ => bytes.extend([0xff; 4]),
        }
    }
    bytes
}

#[test]
fn no_decoder_panics_or_hangs_on_the_corpus_or_near_it() {
    let mut prg = Prg::from_seed(&Seed::from_bytes([5; 16]));
    for decoder in &DECODERS {
        let mut entries = corpus(decoder.name);
        assert!(!entries.is_empty(), "the corpus of {} is empty", decoder.name);
        for (index, bytes) in entries.iter().enumerate() {
            assert!((decoder.run)(bytes), "{} refuses entry {index} of its corpus: write it anew", decoder.name);
        }
        entries.push(Vec::new());
        let mutations: Vec<Vec<u8>> = (0..rounds()).map(|_| mutated(&entries, &mut prg)).collect();
        let start = Instant::now();
        for bytes in entries.iter().chain(&mutations) {
            let began = Instant::now();
            (decoder.run)(bytes);
            assert!(
                began.elapsed() < PATIENCE,
                "{} takes {:?} over {} bytes",
                decoder.name,
                began.elapsed(),
                bytes.len()
            );
        }
        println!("{}: {} inputs in {:?}", decoder.name, entries.len() + mutations.len(), start.elapsed());
    }
}
