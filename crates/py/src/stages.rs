//! `StreamStages`, `StreamNoise` and `StreamKey`: suite `stream` as stages of a pipeline.

use privet_program::{Program, Weights};
use privet_suites::registry;
use privet_suites::stream::{Config, Hiding, KeySize, PrivateKey, Randomizer, Slice, Stages};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::client::{integers, to_python};
use crate::errors::{Failure, misuse};

/// Elements of a base or a share, as indices (little-endian uint32), and their rows.
type Given = (Vec<u8>, Vec<u8>);

/// The elements of a part, and those that it reads of each base and of each share.
type Cut<'py> = (Bound<'py, PyBytes>, Vec<Bound<'py, PyBytes>>, Vec<Bound<'py, PyBytes>>);

/// A data provider's private key.
#[pyclass(frozen)]
pub(crate) struct StreamKey(
    // In a box of its own: keys hold vectors of 64 bytes, and Python's allocator aligns to 16.
    Box<PrivateKey>,
);

#[pymethods]
impl StreamKey {
    /// Makes one of 2048 or 3072 bits.
    #[staticmethod]
    fn generate(py: Python<'_>, key_bits: usize) -> Result<Self, Failure> {
        let size = key_size(key_bits)?;
        Ok(Self(Box::new(py.detach(|| PrivateKey::generate(size).map_err(privet_suites::Error::from))?)))
    }

    /// Reads one that `secret` gave.
    #[staticmethod]
    fn read(py: Python<'_>, key_bits: usize, secret: &[u8]) -> Result<Self, Failure> {
        let size = key_size(key_bits)?;
        Ok(Self(Box::new(py.detach(|| PrivateKey::from_bytes(size, secret).map_err(privet_suites::Error::from))?)))
    }

    /// The key, for workers of the data provider and nobody else.
    fn secret<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.to_bytes())
    }

    /// What the model provider gets of it.
    fn public<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.public().to_bytes())
    }
}

/// A model provider's noise under a data provider's key.
#[pyclass(frozen)]
pub(crate) struct StreamNoise(Box<Randomizer>);

/// A program as stages; with the weights, the model provider's.
#[pyclass(frozen)]
pub(crate) struct StreamStages(Box<Stages>);

#[pymethods]
impl StreamStages {
    /// `public`: the public half's bytes; `config`: the suite's config in JSON; `weights`: the private half's, at the model
    /// provider.
    #[new]
    #[pyo3(signature = (public, config, weights=None))]
    fn new(py: Python<'_>, public: &[u8], config: &str, weights: Option<&[u8]>) -> Result<Self, Failure> {
        let cipher = registry::read_as::<Config>(config)?.cipher;
        let stages = py.detach(|| {
            let program = Program::parse(public)?;
            let weights = weights.map(|weights| Weights::parse(weights, &program)).transpose()?;
            Stages::new(program, cipher, weights)
        });
        Ok(Self(Box::new(stages?)))
    }

    /// What each round is, as JSON.
    fn rounds(&self) -> String {
        serde_json::to_string(&self.0.rounds()).expect("rounds are plain data")
    }

    /// A round's value in at most `count` parts: for each its elements, and those of each base and each share that it
    /// reads, as indices (little-endian uint32).
    fn slices<'py>(&self, py: Python<'py>, round: usize, count: usize) -> Result<Vec<Cut<'py>>, Failure> {
        let slices = py.detach(|| self.0.slices(round, count))?;
        let all = |read: &[Vec<usize>]| read.iter().map(|read| indices(py, read)).collect();
        let each = |slice: &Slice| (indices(py, &slice.elements), all(&slice.needs), all(&slice.shares));
        Ok(slices.iter().map(each).collect())
    }

    /// A fresh arrangement from the operating system's randomness: the element at each place, and the place of each
    /// element of the answer, as indices.
    fn arrange<'py>(
        &self,
        py: Python<'py>,
        round: usize,
    ) -> Result<(Bound<'py, PyBytes>, Bound<'py, PyBytes>), Failure> {
        let (sent, returned) = py.detach(|| self.0.arrange(round))?;
        Ok((indices(py, &sent), indices(py, &returned)))
    }

    /// Noise under a data provider's public key.
    fn noise(&self, py: Python<'_>, key: &[u8]) -> Result<StreamNoise, Failure> {
        Ok(StreamNoise(Box::new(py.detach(|| self.0.randomizer(key))?)))
    }

    /// Elements of a round's value as rows, under Paillier re-randomised with `noise`; `given` has for each base, and
    /// then for each share, what is there of it.
    fn linear<'py>(
        &self,
        py: Python<'py>,
        round: usize,
        noise: Option<&StreamNoise>,
        elements: &[u8],
        given: Vec<Given>,
    ) -> Result<Bound<'py, PyBytes>, Failure> {
        let (elements, noise) = (places(elements), noise.map(|noise| &*noise.0));
        let given: Vec<_> = given.iter().map(|(indices, bytes)| (places(indices), bytes.as_slice())).collect();
        Ok(PyBytes::new(py, &py.detach(|| self.0.linear(round, noise, &elements, &given))?))
    }

    /// Hides values (little-endian int64) by the key, or without one by masks.
    fn encrypt<'py>(
        &self,
        py: Python<'py>,
        key: Option<&StreamKey>,
        values: &[u8],
        hiding: &[u8],
    ) -> Result<Bound<'py, PyBytes>, Failure> {
        let values = integers(values);
        Ok(PyBytes::new(py, &py.detach(|| self.0.encrypt(by(key, hiding), &values))?))
    }

    /// What the data provider computes on whole units of a round's message, hidden again. Without a key `opening` and
    /// `hiding` are the masks of both.
    fn answer<'py>(
        &self,
        py: Python<'py>,
        round: usize,
        key: Option<&StreamKey>,
        rows: &[u8],
        opening: &[u8],
        hiding: &[u8],
    ) -> Result<Bound<'py, PyBytes>, Failure> {
        let answer = py.detach(|| {
            let values = self.0.values(round, by(key, opening), rows)?;
            self.0.encrypt(by(key, hiding), &values)
        });
        Ok(PyBytes::new(py, &answer?))
    }

    /// The same in the clear (little-endian int64), for outputs.
    fn values<'py>(
        &self,
        py: Python<'py>,
        round: usize,
        key: Option<&StreamKey>,
        rows: &[u8],
        opening: &[u8],
    ) -> Result<Bound<'py, PyBytes>, Failure> {
        let values = py.detach(|| self.0.values(round, by(key, opening), rows))?;
        to_python(py, &[values]).pop().ok_or_else(|| misuse("there are no values").into())
    }

    /// Sums of masked values, row by row.
    fn add<'py>(&self, py: Python<'py>, one: &[u8], other: &[u8]) -> Result<Bound<'py, PyBytes>, Failure> {
        Ok(PyBytes::new(py, &py.detach(|| self.0.add(one, other))?))
    }

    /// The row of a masked value that no maximum notices.
    fn least<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyBytes>, Failure> {
        Ok(PyBytes::new(py, &self.0.least()?))
    }

    /// Bytes of a row, and of a public key.
    fn sizes(&self) -> (usize, usize) {
        (self.0.row_bytes(), self.0.key_bytes())
    }
}

/// By the key, or without one by masks.
fn by<'a>(key: Option<&'a StreamKey>, masks: &'a [u8]) -> Hiding<'a> {
    key.map_or(Hiding::Masks(masks), |key| Hiding::Key(&key.0))
}

/// The size of that many bits.
fn key_size(bits: usize) -> Result<KeySize, privet_suites::Error> {
    let sizes = [KeySize::Bits2048, KeySize::Bits3072];
    let size = sizes.into_iter().find(|size| size.bits() == bits);
    size.ok_or_else(|| misuse(format!("keys have 2048 or 3072 bits, not {bits}")))
}

pub(crate) fn indices<'py>(py: Python<'py>, indices: &[usize]) -> Bound<'py, PyBytes> {
    // A tensor that does not fit 32 bits would be 2 TB of ciphertexts.
    PyBytes::new(py, &indices.iter().flat_map(|&index| (index as u32).to_le_bytes()).collect::<Vec<u8>>())
}

fn places(bytes: &[u8]) -> Vec<usize> {
    bytes.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word) as usize).collect()
}
