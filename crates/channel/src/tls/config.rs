//! The one TLS policy of both sides.

use std::sync::Arc;

use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::CryptoProvider;
use rustls::crypto::ring::{cipher_suite, default_provider};
use rustls::server::{NoServerSessionStorage, VerifierBuilderError, WebPkiClientVerifier};
use rustls::sign::SingleCertAndKey;
use rustls::version::TLS13;
use rustls::{ClientConfig, ServerConfig};

use super::credentials::{Identity, Trust};
use crate::error::{Error, Misuse};

/// The application protocol both sides must agree on; the number is that of the frame format.
pub(super) const PROTOCOL: &[u8] = b"privet/1";

/// Algorithms: the ring provider's for TLS 1.3, AES-128 first (the security level of the protocols above).
pub(super) fn provider() -> CryptoProvider {
    CryptoProvider {
        cipher_suites: vec![
            cipher_suite::TLS13_AES_128_GCM_SHA256,
            cipher_suite::TLS13_AES_256_GCM_SHA384,
            cipher_suite::TLS13_CHACHA20_POLY1305_SHA256,
        ],
        ..default_provider()
    }
}

pub(super) fn client(identity: &Identity, trust: &Trust) -> Result<Arc<ClientConfig>, Error> {
    let provider = Arc::new(provider());
    let verifier = WebPkiServerVerifier::builder_with_provider(trust.0.clone(), provider.clone()).build();
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])
        .map_err(|error| unusable(&error))?
        .with_webpki_verifier(verifier.map_err(|error| unverifiable(&error))?)
        .with_client_cert_resolver(Arc::new(SingleCertAndKey::from(identity.0.clone())));
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    config.resumption = Resumption::disabled();
    Ok(Arc::new(config))
}

pub(super) fn server(identity: &Identity, trust: &Trust) -> Result<Arc<ServerConfig>, Error> {
    let provider = Arc::new(provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(trust.0.clone(), provider.clone()).build();
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])
        .map_err(|error| unusable(&error))?
        .with_client_cert_verifier(verifier.map_err(|error| unverifiable(&error))?)
        .with_cert_resolver(Arc::new(SingleCertAndKey::from(identity.0.clone())));
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(Arc::new(config))
}

fn unusable(error: &rustls::Error) -> Error {
    Misuse::Pem { what: "identity", problem: error.to_string() }.into()
}

fn unverifiable(error: &VerifierBuilderError) -> Error {
    Misuse::Pem { what: "trusted certificate", problem: error.to_string() }.into()
}
