//! What can be wrong with a program or its weights.

#![allow(missing_docs, reason = "the message of a variant says what its fields are")]

/// A program or its private half could not be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The public half is not the JSON of a program.
    #[error("the program is not readable: {0}")]
    Malformed(#[from] serde_json::Error),
    /// The file is longer than any program.
    #[error("the program has {actual} bytes, more than the {limit} that are read")]
    TooLong { actual: usize, limit: usize },
    /// The file is of another format or version.
    #[error(
        "the program has format {format:?} version {version}; this build reads \"privet-program\" version {expected}"
    )]
    Version { format: String, version: u32, expected: u32 },
    /// The header, a value or an operation contradicts itself.
    #[error("the program is inconsistent at {place}: {problem}")]
    Inconsistent { place: String, problem: String },
    /// The private half is not the one that the public half was compiled with.
    #[error("these weights belong to another program: compile the model again, or use the two files saved together")]
    WrongWeights,
    /// The private half is not a safetensors file, or lacks a tensor.
    #[error("the weights are not readable: {0}")]
    Weights(String),
}

impl Error {
    pub(crate) fn inconsistent(place: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Inconsistent { place: place.into(), problem: problem.into() }
    }
}
