//! Control messages: a greeting of fixed length, then small JSON.

use privet_channel::{Channel, HEADER_BYTES};
use privet_program::{MAX_BYTES, Program, ProgramHash};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::VERSION;
use crate::{Error, MaterialId, PeerMisbehaved};

const MAGIC: [u8; 6] = *b"PRIVET";

/// Longest control message; a public half may take [`MAX_BYTES`].
const MAX_CONTROL: usize = 4096;

/// Bytes that a client may send before they are read while no job runs for which memory was found: some requests.
pub const UNREAD_REQUESTS: usize = 1 << 16;

/// What a client may ask for.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case")]
pub(super) enum Request {
    /// The public half of a model, by name or hash, or of the only one served.
    Describe { model: Option<String> },
    /// To make material for one inference of a program; `extension` is the OT extension that suits the client's link.
    /// With `base` both sides keep what stands in for base OTs next time.
    Prepare {
        program: String,
        suite: String,
        extension: String,
        nonce: [u8; 16],
        #[serde(default, skip_serializing_if = "Option::is_none")]
        base: Option<Base>,
    },
    /// The name of the mask that hides the weights of a program, and the hidden weights unless the client has them.
    HiddenWeights { program: String, known: Option<String> },
    /// The name of the encrypted weights that a suite's clients keep of a program, and the weights unless the client has them.
    KeptWeights { program: String, suite: String, known: Option<String> },
    /// To use up material; of a program with state, `step` tells which inference of a sequence it is, counted from 0.
    Infer {
        program: String,
        material: MaterialId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        step: Option<u64>,
    },
    /// An inference without material: correlations are made by `extension` as it goes, in chunks of `buffer` OTs; `nonce` and
    /// `base` are as for a preparation.
    InferUnprepared {
        program: String,
        suite: String,
        extension: String,
        buffer: usize,
        nonce: [u8; 16],
        #[serde(default, skip_serializing_if = "Option::is_none")]
        base: Option<Base>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        step: Option<u64>,
    },
    /// To end the session.
    Bye,
}

/// What a client has that can stand in for base OTs.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Base {
    /// The name of its half, if it has one.
    pub kept: Option<MaterialId>,
}

/// The server's yes to an inference.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Granted {}

/// Says yes to an inference: the server's half of the material is this client's, and is spent.
pub(super) fn grant(channel: &mut Channel) -> Result<(), Error> {
    send(channel, &Granted {})
}

/// The server's answer about hidden weights; they follow if the client does not know this mask.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Hidden {
    /// The mask's name: 32 hexadecimal digits.
    pub mask: MaterialId,
}

/// The server's answer about kept weights; they follow if the client does not know this name.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Kept {
    /// The name: 32 hexadecimal digits.
    pub weights: MaterialId,
}

/// The server's yes to a preparation, and how both begin with oblivious transfers.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Accepted {
    /// The server's part of a new entry's name.
    pub nonce: [u8; 16],
    /// Whether it took the other half of what the client named in place of base OTs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub kept: bool,
}

/// Both sides send magic and version and check the other's.
///
/// # Errors
/// [`PeerMisbehaved::NotPrivet`] or [`PeerMisbehaved::Version`]; [`Error::Channel`].
pub fn greet(channel: &mut Channel) -> Result<(), Error> {
    let message = channel.exchange(&greeting())?;
    check(&message)
}

/// Waits for a greeting, and checks it.
///
/// # Errors
/// As [`greet`].
pub(super) fn hear_greeting(channel: &mut Channel) -> Result<(), Error> {
    let message = channel.recv(greeting().len())?;
    check(&message)
}

/// Answers the greeting that was heard.
///
/// # Errors
/// [`Error::Channel`].
pub(super) fn answer_greeting(channel: &mut Channel) -> Result<(), Error> {
    channel.send(&greeting())?;
    Ok(channel.flush()?)
}

fn greeting() -> Vec<u8> {
    [MAGIC.as_slice(), &VERSION.to_le_bytes()].concat()
}

fn check(message: &[u8]) -> Result<(), Error> {
    let (magic, version) = message.split_at(MAGIC.len());
    if magic != MAGIC {
        return Err(PeerMisbehaved::NotPrivet.into());
    }
    match u16::from_le_bytes([version[0], version[1]]) {
        VERSION => Ok(()),
        theirs => Err(PeerMisbehaved::Version { ours: VERSION, theirs }.into()),
    }
}

/// Bytes of a message on the wire, its frame header included.
pub fn bytes(message: &impl Serialize) -> usize {
    HEADER_BYTES + serde_json::to_vec(message).expect("control messages are plain data").len()
}

/// Sends a control message.
pub fn send(channel: &mut Channel, message: &impl Serialize) -> Result<(), Error> {
    let bytes = serde_json::to_vec(message).expect("control messages are plain data");
    channel.send(&bytes)?;
    Ok(channel.flush()?)
}

/// Receives a control message.
///
/// # Errors
/// [`PeerMisbehaved::ControlMessage`] if it is none that was due, without a word of the peer's, as errors may be logged; [`Error::Channel`].
pub fn receive<T: DeserializeOwned>(channel: &mut Channel) -> Result<T, Error> {
    let bytes = channel.recv_at_most(MAX_CONTROL)?;
    serde_json::from_slice(&bytes).map_err(|error| {
        let what = if error.is_data() { "it has other fields than are due" } else { "it is no JSON" };
        PeerMisbehaved::ControlMessage(what.into()).into()
    })
}

/// Asks a server for a public half, and checks what it sends: first that it is the one with the hash that the client expects,
/// if it expects any.
///
/// # Errors
/// [`PeerMisbehaved::OtherProgram`] before anything else is looked at, [`PeerMisbehaved::Program`]; [`Error::Channel`].
pub fn ask_program(channel: &mut Channel, request: &impl Serialize, expected: Option<&str>) -> Result<Vec<u8>, Error> {
    send(channel, request)?;
    let public = channel.recv_at_most(MAX_BYTES)?;
    let actual = ProgramHash::of(&public).to_string();
    if let Some(expected) = expected.filter(|expected| *expected != actual) {
        return Err(PeerMisbehaved::OtherProgram { expected: expected.to_owned(), actual }.into());
    }
    Program::parse(&public).map_err(|error| PeerMisbehaved::Program(error.to_string()))?;
    Ok(public)
}

/// The name of the entry that these nonces make, the same on both sides.
pub(super) fn material_id(client: &[u8; 16], server: &[u8; 16]) -> MaterialId {
    let digest = Sha256::new_with_prefix(b"privet material").chain_update(client).chain_update(server).finalize();
    let mut id = [0; 16];
    id.copy_from_slice(&digest[..16]);
    MaterialId::new(&id)
}
