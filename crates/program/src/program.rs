//! The public half of a program.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::{Error, Operation, check};

/// The version of the file format that this build reads and writes.
pub(crate) const VERSION: u32 = 1;

/// SHA-256 of a public half: the name by which both parties know the program.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProgramHash(pub [u8; 32]);

impl ProgramHash {
    /// Of a public half's bytes, whatever they are: what a client that expects a program compares before it reads them.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }
}

impl std::fmt::Display for ProgramHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl std::fmt::Debug for ProgramHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ProgramHash({self})")
    }
}

/// A tensor's static shape and the power of two that its integers are scaled by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Value {
    /// Row-major dimensions, each at least 1.
    pub shape: Vec<usize>,
    /// A real `x` is held as `round(x * 2^scale)`.
    pub scale: u32,
}

impl Value {
    /// Number of elements.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether there are no elements; never so in a parsed program.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// What the client gives.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Input {
    /// The ONNX input's name.
    pub name: String,
    /// The value it becomes.
    pub value: usize,
    /// The largest real magnitude that the program was compiled for, if it names one.
    #[serde(default)]
    pub magnitude: Option<f64>,
}

/// A step that the client does in the clear on its own result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientStep {
    /// `softmax` or `log_softmax`.
    pub op: String,
    /// The axis it works along; for the flattening form of old opsets, the first flattened axis.
    #[serde(default)]
    pub axis: i64,
}

/// What the client learns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    /// The ONNX output's name.
    pub name: String,
    /// The value that is revealed to the client.
    pub value: usize,
    /// What the client does to it after.
    pub client: Option<ClientStep>,
}

/// A tensor that one inference of a session leaves to the next: shared between the parties all the while, and zero at first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// The ONNX input's name.
    pub name: String,
    /// The value that an inference begins with.
    pub input: usize,
    /// The value that it leaves, of the same shape and scale.
    pub output: usize,
}

/// The public half of a compiled model, checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    pub(crate) file: File,
    hash: ProgramHash,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct File {
    pub format: String,
    pub version: u32,
    pub model: String,
    pub ring_bits: u32,
    pub scale_bits: u32,
    pub weight_bits: u32,
    pub weights_commitment: String,
    #[serde(default = "one")]
    pub batch: u32,
    pub inputs: Vec<Input>,
    pub outputs: Vec<Output>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub state: Vec<State>,
    pub values: Vec<Value>,
    pub operations: Vec<Operation>,
}

fn one() -> u32 {
    1
}

impl Program {
    /// Reads and checks a public half.
    ///
    /// # Errors
    /// [`Error::TooLong`], [`Error::Malformed`], [`Error::Version`] or [`Error::Inconsistent`], which names the operation.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        if bytes.len() > check::MAX_BYTES {
            return Err(Error::TooLong { actual: bytes.len(), limit: check::MAX_BYTES });
        }
        let file: File = serde_json::from_slice(bytes)?;
        if file.format != "privet-program" || file.version != VERSION {
            return Err(Error::Version { format: file.format, version: file.version, expected: VERSION });
        }
        check::file(&file)?;
        Ok(Self { file, hash: ProgramHash::of(bytes) })
    }

    /// The name of the program: a hash of the public half, which holds the hash of the private half.
    pub fn hash(&self) -> ProgramHash {
        self.hash
    }

    /// The model's name, for people.
    pub fn model(&self) -> &str {
        &self.file.model
    }

    /// l: all arithmetic is modulo 2^l.
    pub fn ring_bits(&self) -> u32 {
        self.file.ring_bits
    }

    /// Every weight's magnitude is below `2^weight_bits`.
    pub fn weight_bits(&self) -> u32 {
        self.file.weight_bits
    }

    /// How many samples one run computes.
    pub fn batch(&self) -> u32 {
        self.file.batch
    }

    /// What the client gives, in order.
    pub fn inputs(&self) -> &[Input] {
        &self.file.inputs
    }

    /// What the client learns, in order.
    pub fn outputs(&self) -> &[Output] {
        &self.file.outputs
    }

    /// What inferences of a session leave to one another; empty for most programs.
    pub fn state(&self) -> &[State] {
        &self.file.state
    }

    /// The state that a session begins with, or a party's share of it.
    pub fn zero_state(&self) -> Vec<Vec<u64>> {
        self.state().iter().map(|state| vec![0; self.value(state.input).len()]).collect()
    }

    /// All values by id.
    pub fn values(&self) -> &[Value] {
        &self.file.values
    }

    /// The value with id `id`.
    pub fn value(&self, id: usize) -> &Value {
        &self.file.values[id]
    }

    /// The steps in order of execution.
    pub fn operations(&self) -> &[Operation] {
        &self.file.operations
    }
}
