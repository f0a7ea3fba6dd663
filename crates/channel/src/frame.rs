//! The form of a message on the wire: kind (1 byte), payload length (4 bytes, little-endian), payload.

use crate::abort::AbortReason;
use crate::error::{Error, PeerMisbehaved};

/// Bytes before the payload of each message.
pub const HEADER_BYTES: usize = 5;

/// The most free text an abort frame carries, in bytes.
pub(crate) const ABORT_TEXT_BYTES: usize = 512;

/// What a frame is. Zero is no kind, so that a run of zeros is noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Data,
    Abort,
}

/// The header of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    pub kind: Kind,
    pub length: u32,
}

impl Header {
    pub fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let kind = match self.kind {
            Kind::Data => 1,
            Kind::Abort => 2,
        };
        let [a, b, c, d] = self.length.to_le_bytes();
        [kind, a, b, c, d]
    }

    pub fn from_bytes(bytes: [u8; HEADER_BYTES]) -> Result<Self, Error> {
        let [kind, length @ ..] = bytes;
        let kind = match kind {
            1 => Kind::Data,
            2 => Kind::Abort,
            _ => return Err(PeerMisbehaved::UnknownFrame { kind }.into()),
        };
        Ok(Self { kind, length: u32::from_le_bytes(length) })
    }
}

/// A whole abort frame: the payload is the code of the reason and at most [`ABORT_TEXT_BYTES`] of UTF-8 text.
pub(crate) fn encode_abort(reason: AbortReason, text: &str) -> Vec<u8> {
    let text = &text[..text.floor_char_boundary(ABORT_TEXT_BYTES)];
    let header = Header { kind: Kind::Abort, length: 1 + text.len() as u32 };
    let mut frame = header.to_bytes().to_vec();
    frame.push(reason.code());
    frame.extend_from_slice(text.as_bytes());
    frame
}

/// The payload of an abort frame as an error. Control characters are taken out of the text: it ends in logs and
/// terminals.
pub(crate) fn decode_abort(payload: &[u8]) -> Error {
    match payload.split_first() {
        Some((code, text)) if text.len() <= ABORT_TEXT_BYTES => {
            let text = String::from_utf8_lossy(text).chars().filter(|c| !c.is_control()).collect();
            PeerMisbehaved::Aborted { reason: AbortReason::from_code(*code), text }.into()
        }
        _ => PeerMisbehaved::MalformedAbort { length: payload.len() }.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_come_back_and_unknown_kinds_do_not() {
        let header = Header { kind: Kind::Data, length: 0x0102_0304 };
        assert_eq!(header.to_bytes(), [1, 4, 3, 2, 1]);
        assert_eq!(Header::from_bytes(header.to_bytes()), Ok(header));
        for kind in (0..=u8::MAX).filter(|kind| ![1, 2].contains(kind)) {
            let error = Header::from_bytes([kind, 0, 0, 0, 0]);
            assert_eq!(error, Err(PeerMisbehaved::UnknownFrame { kind }.into()));
        }
    }

    #[test]
    fn abort_text_is_cut_at_a_character_and_cleaned() {
        let frame = encode_abort(AbortReason::Busy, &"é".repeat(400));
        assert_eq!(frame.len(), HEADER_BYTES + 1 + ABORT_TEXT_BYTES);
        let error = decode_abort(&frame[HEADER_BYTES..]);
        assert_eq!(error, PeerMisbehaved::Aborted { reason: AbortReason::Busy, text: "é".repeat(256) }.into());

        let error = decode_abort(b"\x63no\x1b[31m\n\xffway");
        let text = "no[31m\u{fffd}way".to_owned();
        assert_eq!(error, PeerMisbehaved::Aborted { reason: AbortReason::Other(0x63), text }.into());
    }

    #[test]
    fn aborts_of_impossible_length_are_named() {
        assert_eq!(decode_abort(&[]), PeerMisbehaved::MalformedAbort { length: 0 }.into());
        assert_eq!(decode_abort(&[1; 514]), PeerMisbehaved::MalformedAbort { length: 514 }.into());
    }
}
