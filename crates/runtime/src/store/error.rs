//! What can go wrong in a store.

#![allow(missing_docs, reason = "the message of a variant says what its fields are")]

use super::MaterialId;

/// A store operation failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The entry was claimed before.
    #[error("material {id} has been used: each entry serves one inference, prepare another")]
    Spent { id: MaterialId },
    /// Somebody else holds the entry: its maker, or an inference that has asked for it.
    #[error("material {id} is held by another process or session, which makes or uses it: try again, or take another")]
    Held { id: MaterialId },
    /// There is no such entry.
    #[error("there is no material {id} in {store}: prepare first")]
    Missing { id: MaterialId, store: String },
    /// The entry is for other work.
    #[error("material {id} was made for another program, suite or peer: prepare for this one")]
    Unfit { id: MaterialId },
    /// The setup that an entry was made with is not here any more.
    #[error("setup {name} is gone or was given up: prepare again, what was made with it is useless")]
    GivenUp { name: MaterialId },
    /// The server's weights are not those that an entry was made with.
    #[error(
        "material {id} was made with other weights of the server than its setup holds, so the server gave two sets of weights \
         for one or a file was changed: prepare again"
    )]
    OtherWeights { id: MaterialId },
    /// An entry would take the store beyond its limit.
    #[error(
        "the material store {store} is full: an entry takes {needed} bytes, and {limit} is the limit for all: use or delete \
         some, or raise the limit"
    )]
    Full { store: String, needed: u64, limit: u64 },
    /// The store is encrypted and the key is not its own, or there is one and the store is not encrypted, or the other way
    /// round.
    #[error("the material store {store} {problem}")]
    Key { store: String, problem: String },
    /// A file is not what the store writes.
    #[error("{path} is damaged ({problem}): delete it and prepare again")]
    Damaged { path: String, problem: String },
    /// The file system failed.
    #[error("the material store failed at {path}: {error}")]
    Io { path: String, error: std::io::Error },
}
