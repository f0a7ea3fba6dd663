//! Leave for a client's requests, which a server may ask for before it works on them.

use std::sync::Arc;

use crate::MaterialId;

/// What a client asks a server for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Intent<'a> {
    /// The public half of a model, or of the only one served.
    Describe {
        /// Its name or hash.
        model: Option<&'a str>,
    },
    /// The weights of a program, hidden by a mask.
    HiddenWeights {
        /// The program's hash, in hexadecimal.
        program: &'a str,
    },
    /// The name of the encrypted weights of a program that clients keep for preparations in a suite.
    KeptWeights {
        /// The program's hash, in hexadecimal.
        program: &'a str,
        /// The suite with its options.
        suite: &'a str,
    },
    /// These weights, asked after the client was told their name and has not got them.
    SendWeights {
        /// The program's hash, in hexadecimal.
        program: &'a str,
        /// The suite with its options.
        suite: &'a str,
    },
    /// To make a material entry.
    Prepare {
        /// The program's hash, in hexadecimal.
        program: &'a str,
        /// The suite with its options.
        suite: &'a str,
    },
    /// To use up a material entry.
    Infer {
        /// The program's hash, in hexadecimal.
        program: &'a str,
        /// The suite that made the entry; `None` if there is no such entry here, which is then found out after the gate.
        suite: Option<&'a str>,
        /// The entry; `None` for an inference without material.
        material: Option<&'a MaterialId>,
    },
}

/// Decides, given the fingerprint of a client's certificate in hexadecimal and its request, whether the request is
/// admitted; if not, says why, for the client to read. A request that is refused ends its session with
/// [`NotAllowed`](privet_channel::AbortReason::NotAllowed), before anything was looked up or spent for it.
pub type Gate = Arc<dyn Fn(&str, Intent<'_>) -> Result<(), String> + Send + Sync>;
