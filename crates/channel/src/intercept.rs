//! A link in memory with someone in the middle who sees whole frames. For tests only.

use crate::deadline::Deadline;
use crate::error::Error;
use crate::frame::{HEADER_BYTES, Header, Kind};
use crate::memory::Memory;
use crate::transport::Transport;

/// Who stands in the middle of one direction of a link.
pub(crate) trait Middle: Send {
    /// Takes one data frame (its header included) and appends to `wire` what goes on in its place.
    fn pass(&mut self, frame: &[u8], wire: &mut Vec<u8>) -> Link;
}

/// What becomes of the link after a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Link {
    Open,
    Close,
}

/// One end of a link; `middle` handles what this end sends.
pub(crate) struct Intercepted<M> {
    link: Memory,
    middle: M,
    /// Bytes of a frame that is not whole yet.
    partial: Vec<u8>,
}

impl<M: Middle> Intercepted<M> {
    pub fn new(link: Memory, middle: M) -> Self {
        Self { link, middle, partial: Vec::new() }
    }

    /// Hands the frame `partial[..end]` on.
    fn pass(&mut self, kind: Kind, end: usize, deadline: &mut Deadline) -> Result<(), Error> {
        let frame: Vec<u8> = self.partial.drain(..end).collect();
        let mut wire = Vec::new();
        let link = match kind {
            Kind::Data => self.middle.pass(&frame, &mut wire),
            Kind::Abort => {
                wire = frame;
                Link::Open
            }
        };
        self.link.write(&wire, deadline)?;
        if link == Link::Close {
            self.link.close();
        }
        Ok(())
    }
}

impl<M: Middle> Transport for Intercepted<M> {
    fn write(&mut self, bytes: &[u8], deadline: &mut Deadline) -> Result<(), Error> {
        self.partial.extend_from_slice(bytes);
        while let Some(header) = self.partial.first_chunk::<HEADER_BYTES>() {
            let header = Header::from_bytes(*header)?;
            let end = HEADER_BYTES + header.length as usize;
            if self.partial.len() < end {
                break;
            }
            self.pass(header.kind, end, deadline)?;
        }
        Ok(())
    }

    fn flush(&mut self, deadline: &mut Deadline) -> Result<(), Error> {
        self.link.flush(deadline)
    }

    fn read(&mut self, out: &mut [u8], deadline: &mut Deadline) -> Result<(), Error> {
        self.link.read(out, deadline)
    }

    fn close(&mut self) {
        self.link.close();
    }
}
