//! Where the body of a key comes from: memory, or a file of which only a little is held.

use privet_seal::Stored;

use crate::Error;

/// A key's body, read once from front to back.
pub trait Source {
    /// The next `bytes` bytes. The number is the gate's, never the key's.
    ///
    /// # Errors
    /// [`Error::KeyTooShort`] if fewer are left, [`Error::Io`] if they cannot be read.
    fn pull(&mut self, bytes: usize) -> Result<&[u8], Error>;

    /// Fills `out` with the next bytes, without a copy between if they come from a file.
    ///
    /// # Errors
    /// As [`Source::pull`].
    fn pull_into(&mut self, out: &mut [u8]) -> Result<(), Error> {
        out.copy_from_slice(self.pull(out.len())?);
        Ok(())
    }

    /// The next `bytes` bytes as a region that several threads may read parts of.
    ///
    /// # Errors
    /// As [`Source::pull`], or when parts are read.
    fn region(&mut self, bytes: usize) -> Result<Region<'_>, Error> {
        self.pull(bytes).map(Region::Memory)
    }
}

/// A part of a key's body.
#[derive(Clone, Copy)]
pub enum Region<'a> {
    /// In memory.
    Memory(&'a [u8]),
    /// In a file.
    File {
        /// Which one.
        file: &'a Stored,
        /// Where the region begins.
        offset: u64,
    },
}

impl Region<'_> {
    /// What lies behind the first `bytes` bytes.
    ///
    /// # Panics
    /// If a region in memory is shorter.
    pub fn behind(self, bytes: usize) -> Self {
        match self {
            Self::Memory(region) => Self::Memory(&region[bytes..]),
            Self::File { file, offset } => Self::File { file, offset: offset + bytes as u64 },
        }
    }

    /// `bytes` bytes from `start` on; `buffer` is room for as many or more if they must be read.
    ///
    /// # Errors
    /// [`Error::KeyTooShort`] if they end too early, [`Error::Io`] if they cannot be read.
    ///
    /// # Panics
    /// If a region in memory is shorter, or `buffer` is.
    pub fn read<'b>(&'b self, start: usize, bytes: usize, buffer: &'b mut [u8]) -> Result<&'b [u8], Error> {
        match *self {
            Self::Memory(region) => Ok(&region[start..start + bytes]),
            Self::File { file, offset } => {
                let buffer = &mut buffer[..bytes];
                fill(file, offset + start as u64, buffer)?;
                Ok(buffer)
            }
        }
    }
}

/// A region that is read from front to back.
pub(crate) struct Within<'a> {
    region: Region<'a>,
    window: Vec<u8>,
}

impl<'a> Within<'a> {
    pub(crate) fn new(region: Region<'a>) -> Self {
        Self { region, window: Vec::new() }
    }
}

impl Source for Within<'_> {
    fn pull(&mut self, bytes: usize) -> Result<&[u8], Error> {
        let Self { region, window } = self;
        let start = *region;
        *region = start.behind(bytes);
        match start {
            Region::Memory(memory) => Ok(&memory[..bytes]),
            Region::File { file, offset } => {
                window.resize(bytes, 0);
                fill(file, offset, window)?;
                Ok(window)
            }
        }
    }

    fn region(&mut self, bytes: usize) -> Result<Region<'_>, Error> {
        let start = self.region;
        self.region = start.behind(bytes);
        Ok(start)
    }
}

impl Source for &[u8] {
    fn pull(&mut self, bytes: usize) -> Result<&[u8], Error> {
        let too_short = Error::KeyTooShort { expected: bytes, actual: self.len() };
        let (head, rest) = self.split_at_checked(bytes).ok_or(too_short)?;
        *self = rest;
        Ok(head)
    }
}

/// A body in a file, from its beginning. It holds as much as the largest entry that was pulled: one batch's corrections.
/// Regions are read by whoever evaluates them, a few hundred kilobytes at a time, which then are still in the cache.
pub struct KeyFile {
    file: Stored,
    offset: u64,
    window: Vec<u8>,
}

impl KeyFile {
    /// Reads the body from the beginning of `file`.
    pub fn new(file: Stored) -> Self {
        Self::behind(file, 0)
    }

    /// Reads the body behind the first `offset` bytes of `file`.
    pub fn behind(file: Stored, offset: u64) -> Self {
        Self { file, offset, window: Vec::new() }
    }
}

impl Source for KeyFile {
    fn pull(&mut self, bytes: usize) -> Result<&[u8], Error> {
        self.window.resize(bytes, 0);
        fill(&self.file, self.offset, &mut self.window)?;
        self.offset += bytes as u64;
        Ok(&self.window)
    }

    fn pull_into(&mut self, out: &mut [u8]) -> Result<(), Error> {
        fill(&self.file, self.offset, out)?;
        self.offset += out.len() as u64;
        Ok(())
    }

    fn region(&mut self, bytes: usize) -> Result<Region<'_>, Error> {
        let offset = self.offset;
        self.offset += bytes as u64;
        Ok(Region::File { file: &self.file, offset })
    }
}

/// Fills `out` with what `file` has from `offset` on.
fn fill(file: &Stored, offset: u64, out: &mut [u8]) -> Result<(), Error> {
    let mut filled = 0;
    while filled < out.len() {
        match file.read_at(&mut out[filled..], offset + filled as u64) {
            Ok(0) => return Err(Error::KeyTooShort { expected: out.len(), actual: filled }),
            Ok(count) => filled += count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn memory_and_files_give_the_same_bytes_and_end_alike() {
        let bytes: Vec<u8> = (0..200).collect();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&bytes).unwrap();
        let (mut memory, mut file) = (&bytes[..], KeyFile::new(Stored::plain(file)));
        for count in [0, 3, 50, 1, 40] {
            let expected = memory.pull(count).map(<[u8]>::to_vec).ok();
            assert_eq!(file.pull(count).map(<[u8]>::to_vec).ok(), expected);
            assert!(expected.is_some());
        }
        let mut placed = [[0; 9]; 2];
        memory.pull_into(&mut placed[0]).unwrap();
        file.pull_into(&mut placed[1]).unwrap();
        assert!(placed.iter().all(|placed| placed == &bytes[94..103]));
        let regions = [memory.region(91).unwrap(), file.region(91).unwrap()];
        for (start, count) in [(0, 91), (7, 0), (30, 20), (90, 1)] {
            for region in regions {
                let expected = &bytes[103 + start..][..count];
                assert_eq!(region.read(start, count, &mut [0; 91]).unwrap(), expected);
                assert_eq!(region.behind(start).read(0, count, &mut [0; 91]).unwrap(), expected);
            }
        }
        let ends = [memory.pull(7).map(<[u8]>::len), file.pull(7).map(<[u8]>::len)];
        for end in ends {
            assert!(matches!(end, Err(Error::KeyTooShort { expected: 7, actual: 6 })), "{end:?}");
        }
        let beyond = file.region(10).unwrap().read(0, 10, &mut [0; 10]).map(<[u8]>::len);
        assert!(matches!(beyond, Err(Error::KeyTooShort { .. })), "{beyond:?}");
    }
}
