//! A model as a service describes it.

use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use privet_program::{Program, ProgramHash};
use serde::Deserialize;

use crate::calls::printable;
use crate::client::Shared;
use crate::codec::Codec;
use crate::predictor::Predictor;
use crate::{Error, Suite};

/// A version of a model, with the public half of its program as this client has checked it.
#[derive(Clone)]
pub struct Model(pub(crate) Arc<Described>);

pub(crate) struct Described {
    pub(crate) client: Arc<Shared>,
    pub(crate) name: String,
    pub(crate) version: u64,
    description: String,
    pub(crate) program: Program,
    pub(crate) codec: Codec,
    pub(crate) offered: Vec<Offered>,
    /// This client's material at the service by the label of its suite, when the model was read.
    pub(crate) stock: BTreeMap<String, u64>,
}

/// A suite at a security level in which a model is offered.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Offered {
    /// The suite's name.
    #[serde(deserialize_with = "printable")]
    pub suite: String,
    /// What the other party may do: `semi-honest` or `malicious`.
    #[serde(deserialize_with = "printable")]
    pub security: String,
    /// Depths of comparisons to choose from; none where the suite has no choice.
    pub rounds: Vec<String>,
    /// What it rests on beyond the two parties' following the protocol.
    pub trust: Option<String>,
}

/// What the service says of a model.
#[derive(Deserialize)]
struct Document {
    #[serde(deserialize_with = "printable")]
    name: String,
    privet: Own,
}

#[derive(Deserialize)]
struct Own {
    version: String,
    description: String,
    #[serde(deserialize_with = "printable")]
    program: String,
    suites: Vec<Offered>,
    stock: BTreeMap<String, u64>,
}

/// Reads a model, by default its newest version.
pub(crate) fn read(client: &Arc<Shared>, name: &str, version: Option<u64>) -> Result<Model, Error> {
    let newest = path(name);
    let path = version.map_or(newest.clone(), |version| format!("{newest}/versions/{version}"));
    let Document { name, privet: own } = client.calls.get(&path, Duration::ZERO)?;
    let malformed = |_| Error::PeerMisbehaved(format!("the service calls a version {:?}", own.version));
    let version: u64 = own.version.parse().map_err(malformed)?;
    let public = client.calls.program(&format!("{newest}/versions/{version}/program"))?;
    if ProgramHash::of(&public).to_string() != own.program {
        return Err(Error::PeerMisbehaved(format!(
            "the service calls a program {} that has another hash",
            own.program
        )));
    }
    let program = Program::parse(&public).map_err(|error| Error::PeerMisbehaved(error.to_string()))?;
    let codec = Codec::new(&program, &public)?;
    Ok(Model(Arc::new(Described {
        client: client.clone(),
        name,
        version,
        description: own.description,
        program,
        codec,
        offered: own.suites,
        stock: own.stock,
    })))
}

/// Where the service has a model.
pub(crate) fn path(name: &str) -> String {
    let mut path = String::from("/v2/models/");
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => path.push(byte.into()),
            other => write!(path, "%{other:02X}").expect("a string takes it"),
        }
    }
    path
}

impl Model {
    /// Plans the model for a suite, within what the service offers.
    ///
    /// # Errors
    /// [`Error::Misuse`] if the model is not offered so, does not fit the suite, or takes more memory than there is;
    /// [`Error::Link`] and others if the service does not answer.
    pub fn predictor(&self, suite: impl Into<Suite>) -> Result<Predictor, Error> {
        Predictor::new(self, &suite.into())
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Its version.
    pub fn version(&self) -> u64 {
        self.0.version
    }

    /// What its owner says of it.
    pub fn description(&self) -> &str {
        &self.0.description
    }

    /// The program's name: SHA-256 of its public half, in hexadecimal.
    pub fn program_hash(&self) -> String {
        self.0.program.hash().to_string()
    }

    /// How many samples one inference takes at most, along the first axis of each input.
    pub fn batch(&self) -> usize {
        self.0.program.batch() as usize
    }

    /// Names and shapes of its inputs, in order, for a full batch.
    pub fn inputs(&self) -> impl Iterator<Item = (&str, &[usize])> {
        self.0.codec.inputs()
    }

    /// Names and shapes of its outputs, in order, for a full batch.
    pub fn outputs(&self) -> impl Iterator<Item = (&str, &[usize])> {
        self.0.codec.outputs()
    }

    /// The suites that it is offered in.
    pub fn suites(&self) -> &[Offered] {
        &self.0.offered
    }

    /// What to say with every prediction of it, if anything: ranges that were measured on random inputs alone leave an
    /// answer that may be wrong without a sign.
    pub fn caveat(&self) -> Option<&'static str> {
        (self.0.codec.calibration == "random").then_some(
            "this program was compiled without samples of real inputs: its ranges were measured on random ones, so an \
             answer may be wrong without a sign. Its owner can compile with --calibration samples.npz",
        )
    }
}

impl fmt::Debug for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Model").field("name", &self.0.name).field("version", &self.0.version).finish()
    }
}
