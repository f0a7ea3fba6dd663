//! The little a channel reads from a certificate itself: its fingerprint and its common name.

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use sha2::{Digest, Sha256};

use crate::peer::{Fingerprint, Peer};

/// DER tags (ITU-T X.690).
pub(super) const OBJECT_IDENTIFIER: u8 = 0x06;
pub(super) const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;

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

/// The subject's first common name, without control characters.
fn common_name(certificate: &CertificateDer<'_>) -> Option<String> {
    // The store is only a parser here: it takes the subject out of any well formed certificate.
    let mut parsed = RootCertStore::empty();
    parsed.add(certificate.clone()).ok()?;
    let subject = &parsed.roots.first()?.subject;
    let name = name_in(subject.as_ref())?;
    let name: String = std::str::from_utf8(name).ok()?.chars().filter(|c| !c.is_control()).collect();
    (!name.is_empty()).then_some(name)
}

/// The value of the first common name in the contents of an X.501 `Name`: a list of sets of pairs (type, value).
fn name_in(mut subject: &[u8]) -> Option<&[u8]> {
    while !subject.is_empty() {
        let (set, rest) = element(subject, Some(SET))?;
        subject = rest;
        let mut attributes = set;
        while !attributes.is_empty() {
            let (attribute, rest) = element(attributes, Some(SEQUENCE))?;
            attributes = rest;
            let (kind, value) = element(attribute, Some(OBJECT_IDENTIFIER))?;
            if kind == COMMON_NAME {
                return Some(element(value, None)?.0);
            }
        }
    }
    None
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
        assert_eq!(name_in(&subject), Some(&b"bob"[..]));
        assert_eq!(name_in(&country), None);
        assert_eq!(name_in(&[]), None);
    }

    #[test]
    fn a_cut_subject_has_no_name() {
        let name = [0x31, 0x0c, 0x30, 0x0a, 0x06, 0x03, 0x55, 0x04, 0x03, 0x0c, 0x03, b'b', b'o', b'b'];
        for length in 0..name.len() {
            assert_eq!(name_in(&name[..length]), None);
        }
    }
}
