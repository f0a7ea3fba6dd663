//! What a plan says ahead of time that a job will take: correlations, bytes, rounds, and memory.

use std::collections::BTreeMap;

use privet_program::Program;
use serde::Serialize;

use crate::Error;

/// Correlations, bytes and rounds of one inference.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Forecast {
    /// Linear layers in order.
    pub linear: Vec<LinearForecast>,
    /// The OT extension that makes the correlations; none if a dealer does.
    pub extension: Option<&'static str>,
    /// Every OT extension that could; none if a dealer makes them.
    pub extensions: Vec<ExtensionForecast>,
    /// Correlations by kind.
    pub correlations: BTreeMap<&'static str, usize>,
    /// Bytes of encrypted weights that the server sends a client before its first preparation, and the client keeps.
    pub kept_bytes: u64,
    /// Bytes that the client sends while preparing.
    pub offline_bytes_client: u64,
    /// Bytes that the server sends while preparing.
    pub offline_bytes_server: u64,
    /// Bytes that the client gets from a dealer.
    pub dealer_bytes_client: u64,
    /// Bytes that the server gets from a dealer.
    pub dealer_bytes_server: u64,
    /// Offline rounds of the client, with the other party or the dealer.
    pub offline_rounds: u64,
    /// What an inference without material takes more, online: in the one-shot mode.
    pub refill: Option<RefillForecast>,
    /// Bytes that the client sends while inferring; in the one-shot mode, in the first inference of a session, which
    /// begins with a key.
    pub online_bytes_client: u64,
    /// Bytes that the server sends while inferring.
    pub online_bytes_server: u64,
    /// Online rounds of the client: how often it turns to waiting.
    pub online_rounds: u64,
    /// Size of the client's half of the material in its store.
    pub material_bytes_client: u64,
    /// Size of the server's half of the material in its store.
    pub material_bytes_server: u64,
    /// Most bytes of memory that the client needs beside its process, with this machine's threads.
    pub memory_bytes_client: u64,
    /// Most bytes of memory that a server without a limit needs beside its process, with one job at a time.
    pub memory_bytes_server: u64,
}

/// The offline half of one linear layer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LinearForecast {
    /// The ONNX node.
    pub name: String,
    /// The operator.
    pub operator: String,
    /// Ciphertexts, products and parameters, in words.
    pub layout: String,
    /// Ciphertexts that the client and that the server sends; none with a dealer.
    pub ciphertexts: [u64; 2],
    /// Products of ciphertexts with plain weights that the server computes; none with a dealer.
    pub products: u64,
    /// Bytes that the client sends.
    pub bytes_client: u64,
    /// Bytes that the server sends.
    pub bytes_server: u64,
}

/// What an OT extension takes to make a plan's correlations.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExtensionForecast {
    /// The extension.
    pub name: &'static str,
    /// Bytes that the client sends.
    pub bytes_client: u64,
    /// Bytes that the server sends.
    pub bytes_server: u64,
    /// The client's rounds.
    pub rounds: u64,
    /// A core's time for both parties, by the rates that extensions are chosen by.
    pub core_seconds: f64,
}

/// What an inference without material takes more, online.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RefillForecast {
    /// How often the buffer is filled.
    pub chunks: usize,
    /// Bytes that the client sends.
    pub bytes_client: u64,
    /// Bytes that the server sends.
    pub bytes_server: u64,
    /// Rounds of the client.
    pub rounds: u64,
}

/// Most bytes that a party holds, beyond what its process had before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Between jobs: a server's weights.
    pub resting: u64,
    /// While the program is loaded.
    pub loading: u64,
    /// On top of `resting` during a preparation.
    pub offline: u64,
    /// On top of `resting` during an inference.
    pub online: u64,
}

impl Memory {
    /// On top of `resting` during either job.
    pub fn job(self) -> u64 {
        self.offline.max(self.online)
    }

    /// The most there is at any time, with one job at a time.
    pub fn peak(self) -> u64 {
        self.loading.max(self.resting + self.job())
    }
}

/// Says that a party needs more memory for a program than `limit` leaves.
pub fn too_little(program: &Program, limit: u64, needed: u64) -> Error {
    let megabytes = |bytes: u64| bytes.div_ceil(1_000_000);
    Error::Misuse(format!(
        "{} needs {} MB beside the process itself, the limit leaves {} MB: raise the limit, or take a smaller model or \
         input",
        program.model(),
        megabytes(needed),
        megabytes(limit)
    ))
}
