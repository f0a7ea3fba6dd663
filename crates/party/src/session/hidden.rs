//! The client's copy of a server's hidden weights, `W - A`: fetched once, read layer by layer at each deal.

use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;

use privet_channel::Channel;
use privet_ring::Modulus;

use crate::sharing::{MaskedWeights, Plan};
use crate::{Error, Store, StoreError};

/// Weights in one message: whole bytes at any ring width.
const CHUNK: usize = 1 << 20;

/// A file: the name of the mask in hexadecimal, then every layer packed to the ring's width.
pub(super) struct HiddenWeights {
    file: File,
    path: String,
    ring: Modulus,
    layers: Vec<usize>,
}

/// Characters of a mask's name.
const NAME: usize = 32;

impl HiddenWeights {
    /// The name of the mask under which weights lie in `path`; `None` if there are none.
    pub(super) fn name(path: &Path) -> Option<String> {
        let mut name = [0; NAME];
        File::open(path).and_then(|mut file| file.read_exact(&mut name)).ok()?;
        String::from_utf8(name.to_vec()).ok()
    }

    /// Receives the weights of `plan`'s layers under the mask `name` and puts them into `path` of `store`, whole or not at
    /// all.
    pub(super) fn receive(
        channel: &mut Channel,
        plan: &Plan,
        name: &str,
        store: &Store,
        path: &Path,
    ) -> Result<(), Error> {
        let ring = Modulus::new(plan.program().ring_bits());
        store.write_whole(path, |out| {
            out.write_all(name.as_bytes()).map_err(|error| io(path, error))?;
            for chunk in lengths(plan).flat_map(chunks) {
                let bytes = channel.recv(ring.packed_bytes(chunk.len()))?;
                out.write_all(&bytes).map_err(|error| io(path, error))?;
            }
            Ok(())
        })
    }

    /// Opens what was received.
    pub(super) fn open(path: &Path, plan: &Plan) -> Result<Self, Error> {
        let file = File::open(path).map_err(|error| io(path, error))?;
        let (ring, layers) = (Modulus::new(plan.program().ring_bits()), lengths(plan).collect());
        Ok(Self { file, path: path.display().to_string(), ring, layers })
    }
}

impl MaskedWeights for HiddenWeights {
    fn layer(&mut self, index: usize) -> Result<Vec<u64>, Error> {
        let before: usize = self.layers[..index].iter().map(|&len| self.ring.packed_bytes(len)).sum();
        let mut bytes = vec![0; self.ring.packed_bytes(self.layers[index])];
        let read =
            self.file.seek(SeekFrom::Start((NAME + before) as u64)).and_then(|_| self.file.read_exact(&mut bytes));
        read.map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => {
                StoreError::Damaged { path: self.path.clone(), problem: "it ends too early".into() }
            }
            _ => io(Path::new(&self.path), error),
        })?;
        Ok(self.ring.unpack(&bytes, self.layers[index]).map_err(crate::PeerMisbehaved::from)?)
    }
}

/// Sends hidden weights as [`HiddenWeights::receive`] reads them.
pub(super) fn send(channel: &mut Channel, plan: &Plan, layers: impl Iterator<Item = Vec<u64>>) -> Result<(), Error> {
    let ring = Modulus::new(plan.program().ring_bits());
    for layer in layers {
        for chunk in chunks(layer.len()) {
            channel.send(&ring.pack(&layer[chunk]))?;
        }
    }
    Ok(channel.flush()?)
}

fn lengths(plan: &Plan) -> impl Iterator<Item = usize> {
    plan.linear().iter().map(|layer| layer.plan.weights_len())
}

fn chunks(len: usize) -> impl Iterator<Item = Range<usize>> {
    (0..len).step_by(CHUNK).map(move |start| start..len.min(start + CHUNK))
}

fn io(path: &Path, error: std::io::Error) -> StoreError {
    StoreError::Io { path: path.display().to_string(), error }
}
