//! Whether a certificate may stand as a trust anchor: only one that says it is an authority (RFC 5280, section 4.2.1).
//!
//! A library that verifies chains takes an anchor's name and key and asks no more of it. So if a client's own certificate were
//! taken as an anchor, the client could issue certificates for any name with its key, and they would be accepted.

use rustls::pki_types::CertificateDer;

use super::subject::{OBJECT_IDENTIFIER, SEQUENCE, element};

/// DER tags (ITU-T X.690).
const BOOLEAN: u8 = 0x01;
const BIT_STRING: u8 = 0x03;
const OCTET_STRING: u8 = 0x04;

/// The field of a certificate that holds its extensions (RFC 5280, section 4.1).
const EXTENSIONS: u8 = 0xa3;

/// `id-ce-basicConstraints`, 2.5.29.19, and `id-ce-keyUsage`, 2.5.29.15.
const BASIC_CONSTRAINTS: &[u8] = &[0x55, 0x1d, 0x13];
const KEY_USAGE: &[u8] = &[0x55, 0x1d, 0x0f];

/// The bit `keyCertSign` in the first byte of a key usage.
const SIGNS_CERTIFICATES: u8 = 0x04;

/// # Errors
/// Why the certificate cannot be an anchor.
pub(super) fn check(certificate: &CertificateDer<'_>) -> Result<(), &'static str> {
    const UNREADABLE: &str = "its extensions cannot be read";
    let extensions = extensions(certificate).ok_or(UNREADABLE)?;
    let find = |kind| extensions.iter().find(|(other, _)| *other == kind).map(|(_, value)| *value);
    let constraints =
        find(BASIC_CONSTRAINTS).ok_or("it is not a certificate authority (it has no BasicConstraints)")?;
    let (constraints, _) = element(constraints, Some(SEQUENCE)).ok_or(UNREADABLE)?;
    if !matches!(element(constraints, Some(BOOLEAN)), Some(([0xff], _))) {
        return Err("it is not a certificate authority (BasicConstraints say CA:FALSE)");
    }
    if let Some(usage) = find(KEY_USAGE) {
        let (bits, _) = element(usage, Some(BIT_STRING)).ok_or(UNREADABLE)?;
        if bits.get(1).is_none_or(|first| first & SIGNS_CERTIFICATES == 0) {
            return Err("its key may not sign certificates (KeyUsage lacks keyCertSign)");
        }
    }
    Ok(())
}

/// Identifiers and contents of a certificate's extensions; none of a certificate before version 3.
fn extensions<'a>(certificate: &'a CertificateDer<'_>) -> Option<Vec<(&'a [u8], &'a [u8])>> {
    let (whole, _) = element(certificate, Some(SEQUENCE))?;
    let (mut fields, _) = element(whole, Some(SEQUENCE))?;
    let mut parsed = Vec::new();
    while let Some(&tag) = fields.first() {
        let (field, rest) = element(fields, None)?;
        fields = rest;
        if tag != EXTENSIONS {
            continue;
        }
        let (mut list, _) = element(field, Some(SEQUENCE))?;
        while !list.is_empty() {
            let (extension, rest) = element(list, Some(SEQUENCE))?;
            list = rest;
            let (kind, value) = element(extension, Some(OBJECT_IDENTIFIER))?;
            // Whether it is critical may stand between the two.
            let value = element(value, Some(BOOLEAN)).map_or(value, |(_, value)| value);
            parsed.push((kind, element(value, Some(OCTET_STRING))?.0));
        }
    }
    Some(parsed)
}

#[cfg(test)]
mod tests {
    use rustls::pki_types::CertificateDer;

    use super::check;

    #[test]
    fn a_cut_certificate_is_no_authority() {
        // The skeleton of one: version, then extensions with CA:TRUE and without key usage.
        let constraints =
            [0x30, 0x0f, 0x06, 0x03, 0x55, 0x1d, 0x13, 0x01, 0x01, 0xff, 0x04, 0x05, 0x30, 0x03, 0x01, 0x01, 0xff];
        let extensions = [&[0xa3, 0x13, 0x30, 0x11][..], &constraints].concat();
        let fields = [&[0x30, 0x15][..], &extensions].concat();
        let whole = [&[0x30, 0x17][..], &fields].concat();
        assert_eq!(check(&CertificateDer::from(whole.clone())), Ok(()));
        for length in 0..whole.len() {
            assert!(check(&CertificateDer::from(whole[..length].to_vec())).is_err(), "{length}");
        }
        let mut no = whole;
        *no.last_mut().expect("bytes") = 0;
        assert!(check(&CertificateDer::from(no)).is_err());
    }
}
