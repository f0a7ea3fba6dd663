//! Who this side is, and whom it accepts.

use std::fmt;
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;

use super::authority;
use super::config::provider;
use super::subject::fingerprint;
use crate::error::{Error, Misuse};
use crate::peer::Fingerprint;

/// This side's certificate and private key. The key is never shown.
#[derive(Clone)]
pub struct Identity(pub(super) Arc<CertifiedKey>);

impl Identity {
    /// Reads a certificate chain (this side's certificate first) and its private key (PKCS#8, SEC1 or PKCS#1).
    ///
    /// # Errors
    /// [`Misuse::Pem`] if either cannot be read or the key is not that of the certificate.
    pub fn from_pem(certificate_chain_pem: &[u8], key_pem: &[u8]) -> Result<Self, Error> {
        let chain = certificates("certificate chain", certificate_chain_pem)?;
        let key = PrivateKeyDer::from_pem_slice(key_pem).map_err(|error| refused("private key", error))?;
        let certified = CertifiedKey::from_der(chain, key, &provider()).map_err(|error| match error {
            rustls::Error::InconsistentKeys(_) => {
                refused("private key", "it is not the key of the first certificate in the chain")
            }
            error => refused("certificate chain or private key", error),
        })?;
        Ok(Self(Arc::new(certified)))
    }

    /// SHA-256 of this side's certificate: what the peer sees as [`crate::Channel::peer`].
    pub fn fingerprint(&self) -> Fingerprint {
        // A chain is never empty: `certificates` refuses that.
        self.0.cert.first().map_or(Fingerprint([0; 32]), |certificate| fingerprint(certificate))
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Identity").field(&self.fingerprint()).finish()
    }
}

/// The authorities whose certificates this side accepts.
#[derive(Clone)]
pub struct Trust(pub(super) Arc<RootCertStore>);

impl Trust {
    /// Reads one or more CA certificates. A peer is accepted if its certificate was issued by one of them.
    ///
    /// # Errors
    /// [`Misuse::Pem`] if there is no certificate, one cannot be used, or one is not of an authority: whoever has its key
    /// could otherwise issue certificates for any name.
    pub fn from_pem(certificates_pem: &[u8]) -> Result<Self, Error> {
        let mut roots = RootCertStore::empty();
        for certificate in authorities(certificates_pem)? {
            roots.add(certificate).map_err(|error| refused("trusted certificate", error))?;
        }
        Ok(Self(Arc::new(roots)))
    }
}

impl fmt::Debug for Trust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trust").field("authorities", &self.0.len()).finish()
    }
}

/// The certificates of authorities in a PEM text, as what verifies chains may take them for anchors.
///
/// # Errors
/// As [`Trust::from_pem`].
pub fn authorities(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, Error> {
    let all = certificates("trusted certificate", pem)?;
    for (index, certificate) in all.iter().enumerate() {
        authority::check(certificate).map_err(|why| {
            refused(
                "trusted certificate",
                format!("certificate {}: {why}; give that of the authority that issued it", index + 1),
            )
        })?;
    }
    Ok(all)
}

/// All certificates of a PEM text, at least one.
fn certificates(what: &'static str, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, Error> {
    let all: Vec<_> =
        CertificateDer::pem_slice_iter(pem).collect::<Result<_, _>>().map_err(|error| refused(what, error))?;
    if all.is_empty() {
        return Err(refused(what, "the text holds no BEGIN CERTIFICATE section"));
    }
    Ok(all)
}

fn refused(what: &'static str, problem: impl ToString) -> Error {
    Misuse::Pem { what, problem: problem.to_string() }.into()
}
