//! Where the body of a key comes from: memory, or a reader of which only a window is held.

use std::io::{ErrorKind, Read};

use crate::Error;

/// A key's body, read once from front to back.
pub trait Source {
    /// The next `bytes` bytes. The number is the gate's, never the key's.
    ///
    /// # Errors
    /// [`Error::KeyTooShort`] if fewer are left, [`Error::Io`] if they cannot be read.
    fn pull(&mut self, bytes: usize) -> Result<&[u8], Error>;
}

impl Source for &[u8] {
    fn pull(&mut self, bytes: usize) -> Result<&[u8], Error> {
        let too_short = Error::KeyTooShort { expected: bytes, actual: self.len() };
        let (taken, rest) = self.split_at_checked(bytes).ok_or(too_short)?;
        *self = rest;
        Ok(taken)
    }
}

/// A body behind a reader. It holds as much as the largest piece that was pulled: a few megabytes of words, or one batch's
/// corrections.
pub struct Stream<R> {
    reader: R,
    window: Vec<u8>,
}

impl<R: Read> Stream<R> {
    /// Reads the body from `reader`, which needs no buffer of its own.
    pub fn new(reader: R) -> Self {
        Self { reader, window: Vec::new() }
    }
}

impl<R: Read> Source for Stream<R> {
    fn pull(&mut self, bytes: usize) -> Result<&[u8], Error> {
        self.window.resize(bytes, 0);
        let mut filled = 0;
        while filled < bytes {
            match self.reader.read(&mut self.window[filled..]) {
                Ok(0) => return Err(Error::KeyTooShort { expected: bytes, actual: filled }),
                Ok(count) => filled += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(&self.window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_and_readers_give_the_same_bytes_and_end_alike() {
        let bytes: Vec<u8> = (0..100).collect();
        let mut memory = &bytes[..];
        let mut stream = Stream::new(&bytes[..]);
        for count in [0, 3, 50, 1, 40] {
            let expected = memory.pull(count).map(<[u8]>::to_vec).ok();
            assert_eq!(stream.pull(count).map(<[u8]>::to_vec).ok(), expected);
            assert!(expected.is_some());
        }
        let ends = [memory.pull(7).map(<[u8]>::len), stream.pull(7).map(<[u8]>::len)];
        for end in ends {
            assert!(matches!(end, Err(Error::KeyTooShort { expected: 7, actual: 6 })), "{end:?}");
        }
    }
}
