//! What the peer sent while this side was still sending.

use std::collections::VecDeque;

use crate::error::{Error, PeerMisbehaved};

/// The most bytes held for later reads unless fewer are set: 1 GiB.
pub(crate) const LIMIT: usize = 1 << 30;

/// Bytes per chunk: chunks are freed as they are read, so a large message is never held twice.
const CHUNK_BYTES: usize = 1 << 20;

/// A bounded queue of bytes.
pub(crate) struct Inbound {
    chunks: VecDeque<Vec<u8>>,
    /// Bytes of the first chunk that are read.
    position: usize,
    held: usize,
    limit: usize,
}

impl Default for Inbound {
    fn default() -> Self {
        Self { chunks: VecDeque::new(), position: 0, held: 0, limit: LIMIT }
    }
}

impl Inbound {
    /// Holds so many bytes at most from now on; more that are held already stay.
    pub fn set_limit(&mut self, bytes: usize) {
        self.limit = bytes;
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// [`PeerMisbehaved::Flooded`] beyond the limit.
    pub fn push(&mut self, mut bytes: &[u8]) -> Result<(), Error> {
        if bytes.len() > self.limit.saturating_sub(self.held) {
            return Err(PeerMisbehaved::Flooded { limit: self.limit }.into());
        }
        self.held += bytes.len();
        while !bytes.is_empty() {
            let room = self.chunks.back().map_or(0, |chunk| CHUNK_BYTES - chunk.len());
            if room == 0 {
                self.chunks.push_back(Vec::with_capacity(CHUNK_BYTES));
                continue;
            }
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            if let Some(chunk) = self.chunks.back_mut() {
                chunk.extend_from_slice(now);
            }
            bytes = later;
        }
        Ok(())
    }

    /// Moves the first bytes to `out`, as many as there are and fit; returns how many.
    pub fn pop(&mut self, out: &mut [u8]) -> usize {
        let mut filled = 0;
        while filled < out.len() {
            let Some(chunk) = self.chunks.front() else { break };
            let unread = &chunk[self.position..];
            let count = unread.len().min(out.len() - filled);
            out[filled..filled + count].copy_from_slice(&unread[..count]);
            filled += count;
            self.position += count;
            if self.position == chunk.len() {
                self.chunks.pop_front();
                self.position = 0;
            }
        }
        self.held -= filled;
        filled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_out_as_they_went_in_across_chunks() {
        let bytes: Vec<u8> = (0..3 * CHUNK_BYTES + 77).map(|i| (i % 251) as u8).collect();
        let mut inbound = Inbound::default();
        let mut out = Vec::new();
        let mut part = vec![0; 70_001];
        for chunk in bytes.chunks(100_003) {
            inbound.push(chunk).expect("within the limit");
            let count = inbound.pop(&mut part);
            out.extend_from_slice(&part[..count]);
        }
        loop {
            let count = inbound.pop(&mut part);
            if count == 0 {
                break;
            }
            out.extend_from_slice(&part[..count]);
        }
        assert!(out == bytes);
        assert_eq!(inbound.held, 0);
    }

    #[test]
    fn the_limit_holds() {
        let mut inbound = Inbound { held: LIMIT - 3, ..Inbound::default() };
        assert_eq!(inbound.push(&[0; 3]), Ok(()));
        assert_eq!(inbound.push(&[0; 1]), Err(PeerMisbehaved::Flooded { limit: LIMIT }.into()));
        // A limit below what is held takes nothing away, and lets nothing in.
        inbound.set_limit(5);
        assert_eq!(inbound.push(&[0; 1]), Err(PeerMisbehaved::Flooded { limit: 5 }.into()));
    }
}
