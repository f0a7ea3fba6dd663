//! The client's copy of a server's hidden weights, `W - A`: fetched once, read layer by layer at each deal.

use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;

use privet_channel::Channel;
use privet_ring::Modulus;
use privet_seal::Stored;

use crate::store::io;
use crate::{Error, Store, StoreError};

/// Weights in one message: whole bytes at any ring width.
const CHUNK: usize = 1 << 20;

/// A file: the name of the mask in hexadecimal, then every layer packed to the ring's width.
pub struct HiddenWeights {
    file: Stored,
    path: String,
    ring: Modulus,
    layers: Vec<usize>,
}

/// Characters of a mask's name.
const NAME: usize = 32;

impl HiddenWeights {
    /// The name of the mask under which weights lie in `path`; `None` if there are none.
    pub(super) fn name(store: &Store, path: &Path) -> Option<String> {
        let mut name = [0; NAME];
        store.open_file(path).ok().flatten()?.read_exact(&mut name).ok()?;
        String::from_utf8(name.to_vec()).ok()
    }

    /// Receives the weights of layers of these lengths under the mask `name` and puts them into `path` of `store`, whole
    /// or not at all.
    pub(super) fn receive(
        channel: &mut Channel,
        ring: Modulus,
        layers: &[usize],
        name: &str,
        store: &Store,
        path: &Path,
    ) -> Result<(), Error> {
        store.write_whole(path, |out| {
            out.write_all(name.as_bytes()).map_err(|error| io(path, error))?;
            for chunk in layers.iter().flat_map(|&len| chunks(len)) {
                let bytes = channel.recv(ring.packed_bytes(chunk.len()))?;
                out.write_all(&bytes).map_err(|error| io(path, error))?;
            }
            Ok(())
        })
    }

    /// Opens what was received.
    pub(super) fn open(store: &Store, path: &Path, ring: Modulus, layers: Vec<usize>) -> Result<Self, Error> {
        let file = store.open_file(path)?.ok_or_else(|| io(path, ErrorKind::NotFound.into()))?;
        Ok(Self { file, path: path.display().to_string(), ring, layers })
    }

    /// The hidden weights of the layer with this index.
    ///
    /// # Errors
    /// [`Error::Store`] if they cannot be read.
    pub fn layer(&mut self, index: usize) -> Result<Vec<u64>, Error> {
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

    /// Sends the hidden weights of one layer, as [`HiddenWeights::receive`] reads them; the caller flushes.
    pub fn send(channel: &mut Channel, ring: Modulus, layer: &[u64]) -> Result<(), Error> {
        chunks(layer.len()).try_for_each(|chunk| Ok(channel.send(&ring.pack(&layer[chunk]))?))
    }
}

fn chunks(len: usize) -> impl Iterator<Item = Range<usize>> {
    (0..len).step_by(CHUNK).map(move |start| start..len.min(start + CHUNK))
}
