//! The little a channel reads from a certificate itself: its fingerprint and its common name.

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use sha2::{Digest, Sha256};

use crate::peer::{Fingerprint, Peer};

/// DER tags (ITU-T X.690).
pub(super) const OBJECT_IDENTIFIER: u8 = 0x06;
pub(super) const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const UTF8_STRING: u8 = 0x0c;
const NUMERIC_STRING: u8 = 0x12;
const PRINTABLE_STRING: u8 = 0x13;
const TELETEX_STRING: u8 = 0x14;
const IA5_STRING: u8 = 0x16;
const VISIBLE_STRING: u8 = 0x1a;
const UNIVERSAL_STRING: u8 = 0x1c;
const BMP_STRING: u8 = 0x1e;

/// The attribute type `id-at-commonName`, 2.5.4.3 (RFC 5280, appendix A).
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];

/// Who the first certificate of a verified chain is for. `None` if there is no certificate.
pub(super) fn peer(chain: &[CertificateDer<'_>]) -> Option<Peer> {
    let certificate = chain.first()?;
    let chain = chain.iter().map(|each| each.to_vec()).collect();
    Some(Peer { fingerprint: fingerprint(certificate), name: common_name(certificate), chain })
}

pub(super) fn fingerprint(certificate: &CertificateDer<'_>) -> Fingerprint {
    Fingerprint(Sha256::digest(certificate).into())
}

/// The subject's first common name. None if it holds control characters: without them it would be somebody else's.
fn common_name(certificate: &CertificateDer<'_>) -> Option<String> {
    // The store is only a parser here: it takes the subject out of any well formed certificate.
    let mut parsed = RootCertStore::empty();
    parsed.add(certificate.clone()).ok()?;
    let subject = &parsed.roots.first()?.subject;
    name_in(subject.as_ref())
}

/// The first common name in the contents of an X.501 `Name`: a list of sets of pairs (type, value).
fn name_in(mut subject: &[u8]) -> Option<String> {
    while !subject.is_empty() {
        let (set, rest) = element(subject, Some(SET))?;
        subject = rest;
        let mut attributes = set;
        while !attributes.is_empty() {
            let (attribute, rest) = element(attributes, Some(SEQUENCE))?;
            attributes = rest;
            let (kind, value) = element(attribute, Some(OBJECT_IDENTIFIER))?;
            if kind == COMMON_NAME {
                return text(*value.first()?, element(value, None)?.0);
            }
        }
    }
    None
}

/// The text of a DER string of this tag, as OpenSSL and Go read it, so that no two parts of a service know a peer by two names.
fn text(tag: u8, value: &[u8]) -> Option<String> {
    let text = match tag {
        UTF8_STRING | NUMERIC_STRING | PRINTABLE_STRING | IA5_STRING | VISIBLE_STRING => {
            str::from_utf8(value).ok()?.to_owned()
        }
        // What other bytes mean there depends on who reads them.
        TELETEX_STRING => value.is_ascii().then(|| str::from_utf8(value).ok()).flatten()?.to_owned(),
        UNIVERSAL_STRING => {
            let (units, []) = value.as_chunks::<4>() else { return None };
            units.iter().map(|unit| char::from_u32(u32::from_be_bytes(*unit))).collect::<Option<_>>()?
        }
        BMP_STRING => {
            let (units, []) = value.as_chunks::<2>() else { return None };
            char::decode_utf16(units.iter().map(|unit| u16::from_be_bytes(*unit))).collect::<Result<_, _>>().ok()?
        }
        _ => return None,
    };
    (!text.is_empty() && !text.chars().any(char::is_control)).then_some(text)
}

/// The contents of the first DER element, and what follows it. `None` if it is cut, or not of this tag.
pub(super) fn element(der: &[u8], tag: Option<u8>) -> Option<(&[u8], &[u8])> {
    let (&[actual, first], rest) = der.split_first_chunk()?;
    if tag.is_some_and(|tag| tag != actual) {
        return None;
    }
    let (length, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        0x81 => rest.split_first().map(|(length, rest)| (usize::from(*length), rest))?,
        0x82 => rest.split_first_chunk().map(|(length, rest)| (usize::from(u16::from_be_bytes(*length)), rest))?,
        _ => return None,
    };
    rest.split_at_checked(length)
}

#[cfg(test)]
mod tests {
    use super::name_in;

    #[test]
    fn a_common_name_is_found_after_other_attributes() {
        let country = [0x31, 0x0b, 0x30, 0x09, 0x06, 0x03, 0x55, 0x04, 0x06, 0x13, 0x02, b'D', b'E'];
        let name = [0x31, 0x0c, 0x30, 0x0a, 0x06, 0x03, 0x55, 0x04, 0x03, 0x0c, 0x03, b'b', b'o', b'b'];
        let subject = [&country[..], &name[..]].concat();
        assert_eq!(name_in(&subject).as_deref(), Some("bob"));
        assert_eq!(name_in(&country), None);
        assert_eq!(name_in(&[]), None);
    }

    #[test]
    fn a_name_with_control_characters_is_not_the_one_without() {
        let named = |tag: u8, value: &[u8]| {
            let length = u8::try_from(value.len()).expect("short");
            let head = [0x31, 9 + length, 0x30, 7 + length, 0x06, 0x03, 0x55, 0x04, 0x03, tag, length];
            name_in(&[&head[..], value].concat())
        };
        for control in ["\0bob", "b\x01ob", "bob\n", "bob\x7f", "bob\u{85}"] {
            assert_eq!(named(0x0c, control.as_bytes()), None, "{control:?}");
            // The control: dropped, they leave the name of another.
            assert_eq!(control.replace(char::is_control, ""), "bob");
        }
        for tag in [0x0c, 0x13, 0x14, 0x16, 0x1a] {
            assert_eq!(named(tag, b"bob").as_deref(), Some("bob"));
        }
        assert_eq!(named(0x1e, b"\0b\0o\0b").as_deref(), Some("bob"));
        assert_eq!(named(0x1c, b"\0\0\0b\0\0\0o\0\0\0b").as_deref(), Some("bob"));
        assert_eq!(named(0x14, b"b\xf6b"), None);
        assert_eq!(named(0x1e, b"bo"), Some("\u{626f}".into()));
        assert_eq!(named(0x1e, b"\xd8\0"), None);
        assert_eq!(named(0x1e, b"bob"), None);
        assert_eq!(named(0x04, b"bob"), None);
    }

    #[test]
    fn a_cut_subject_has_no_name() {
        let name = [0x31, 0x0c, 0x30, 0x0a, 0x06, 0x03, 0x55, 0x04, 0x03, 0x0c, 0x03, b'b', b'o', b'b'];
        for length in 0..name.len() {
            assert_eq!(name_in(&name[..length]), None);
        }
    }
}
