//! Who this client is, and whom it trusts.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use privet_channel::tls::{Identity, Trust, authorities};
use rustls::client::Resumption;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::version::TLS13;
use rustls::{ClientConfig, RootCertStore};

use crate::Error;

/// A client's certificate and key, and the authorities that it trusts. The certificate is the client's name: material
/// belongs to it.
#[derive(Clone)]
pub struct Credentials {
    pub(crate) identity: Identity,
    pub(crate) trust: Trust,
    /// For calls: TLS 1.3 alone.
    pub(crate) tls: Arc<ClientConfig>,
}

impl Credentials {
    /// From PEM texts: the certificate with its chain, its key, and the certificates of the authorities.
    ///
    /// # Errors
    /// [`Error::Misuse`] if a text cannot be used, the key is another's, or a trusted certificate is not of an authority.
    pub fn from_pem(certificate: &[u8], key: &[u8], trusted: &[u8]) -> Result<Self, Error> {
        let (identity, trust) = (Identity::from_pem(certificate, key)?, Trust::from_pem(trusted)?);
        Ok(Self { identity, trust, tls: Arc::new(tls(certificate, key, trusted)?) })
    }

    /// The files `client.pem`, `client.key` and `ca.pem` in `folder`, as `privet keys` writes them.
    ///
    /// # Errors
    /// As [`Credentials::from_pem`]; [`Error::Misuse`] if a file cannot be read.
    pub fn from_folder(folder: impl AsRef<Path>) -> Result<Self, Error> {
        let read = |name: &str| {
            let path = folder.as_ref().join(name);
            let refused = |error| {
                Error::Misuse(format!(
                    "{} cannot be read ({error}): `privet keys FOLDER` makes certificates for a first try",
                    path.display()
                ))
            };
            std::fs::read(&path).map_err(refused)
        };
        Self::from_pem(&read("client.pem")?, &read("client.key")?, &read("ca.pem")?)
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Credentials").field(&self.identity).finish()
    }
}

fn tls(certificate: &[u8], key: &[u8], trusted: &[u8]) -> Result<ClientConfig, Error> {
    let refused = |error: &dyn fmt::Display| Error::Misuse(format!("the certificates cannot be used: {error}"));
    let mut roots = RootCertStore::empty();
    for authority in authorities(trusted)? {
        roots.add(authority).map_err(|error| refused(&error))?;
    }
    let chain = CertificateDer::pem_slice_iter(certificate).collect::<Result<_, _>>();
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| refused(&error))?;
    let mut config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_protocol_versions(&[&TLS13])
        .map_err(|error| refused(&error))?
        .with_root_certificates(roots)
        .with_client_auth_cert(chain.map_err(|error| refused(&error))?, key)
        .map_err(|error| refused(&error))?;
    // A session that is taken up again shows no certificate, so nobody would see that it has expired.
    config.resumption = Resumption::disabled();
    Ok(config)
}
