//! What bounds a kernel, and how it is measured beside that bound.
//!
//! A [`Limit`] counts what an algorithm cannot leave out: AES blocks, vector instructions of its main kind, bytes that
//! must come from or go to memory. The same run measures what one of each takes on the machine at hand, so a kernel's
//! least time can be told on any machine. `python -m benches.kernels` puts the two side by side.

#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use criterion::Criterion;
use serde::Serialize;

/// What a kernel cannot do without. The least time is that of the resource that takes longest.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Limit {
    /// Blocks of AES-128, pipelined and from cache.
    pub aes: f64,
    /// Instructions on 512 bits of the main kind, at one per cycle.
    pub vectors: f64,
    /// Bytes read from or written to memory, if the operands exceed the caches.
    pub bytes: f64,
    /// How these were counted.
    pub why: &'static str,
}

/// Runs kernels under criterion and keeps their limits.
pub struct Bench {
    criterion: Criterion,
    limits: BTreeMap<String, Limit>,
    home: PathBuf,
}

impl Bench {
    /// Takes criterion's options from the command line; results lie in the folder `CRITERION_HOME`.
    pub fn new() -> Self {
        let home = std::env::var_os("CRITERION_HOME").map_or_else(|| PathBuf::from("target/kernels"), PathBuf::from);
        let criterion = Criterion::default()
            .output_directory(&home)
            .sample_size(10)
            .warm_up_time(Duration::from_millis(300))
            .measurement_time(Duration::from_secs(1))
            .configure_from_args();
        Self { criterion, limits: BTreeMap::new(), home }
    }

    /// Measures `work` as it is.
    pub fn run<T>(&mut self, name: &str, limit: Limit, mut work: impl FnMut() -> T) {
        self.criterion.bench_function(name, |bencher| bencher.iter(&mut work));
        self.limits.insert(name.to_owned(), limit);
    }

    /// Measures what `work` says that it took, for kernels that need preparation each time.
    pub fn run_timed(&mut self, name: &str, limit: Limit, mut work: impl FnMut() -> Duration) {
        self.criterion.bench_function(name, |bencher| bencher.iter_custom(|count| (0..count).map(|_| work()).sum()));
        self.limits.insert(name.to_owned(), limit);
    }

    /// Writes the limits beside criterion's results.
    ///
    /// # Errors
    /// If the folder cannot be written.
    pub fn finish(self) -> std::io::Result<()> {
        std::fs::create_dir_all(&self.home)?;
        std::fs::write(self.home.join("limits.json"), serde_json::to_vec_pretty(&self.limits)?)
    }
}

impl Default for Bench {
    fn default() -> Self {
        Self::new()
    }
}

/// Runs the two halves of a protocol, each on a thread of its own. Returns both results.
pub fn both<A: Send, B: Send>(client: impl FnOnce() -> A + Send, server: impl FnOnce() -> B + Send) -> (A, B) {
    std::thread::scope(|scope| {
        let serving = scope.spawn(server);
        (client(), serving.join().expect("the server does not panic"))
    })
}
