//! What the TLS library reports, in words that say what to do.

use rustls::{AlertDescription, CertificateError};

use crate::error::{Error, Io, PeerMisbehaved};

/// The error of this crate for one of the TLS library.
pub(super) fn translate(error: rustls::Error) -> Error {
    use rustls::Error as Tls;
    let problem = match &error {
        Tls::AlertReceived(AlertDescription::CloseNotify) => return Io::Disconnected.into(),
        Tls::AlertReceived(alert) => {
            return PeerMisbehaved::Refused { alert: format!("{alert:?}"), hint: hint(*alert) }.into();
        }
        Tls::InvalidCertificate(problem) => {
            return PeerMisbehaved::Certificate { problem: certificate(problem, &error.to_string()) }.into();
        }
        Tls::NoCertificatesPresented => {
            let problem = "it presented none; both sides need one issued by an authority that the other trusts";
            return PeerMisbehaved::Certificate { problem: problem.into() }.into();
        }
        Tls::FailedToGetCurrentTime => return system("reading the clock", &error),
        Tls::FailedToGetRandomBytes => return system("getting random bytes", &error),
        Tls::InvalidMessage(_) | Tls::PeerSentOversizedRecord => {
            "the other end does not speak TLS: is it a Privet peer, and is the port right?"
        }
        Tls::PeerIncompatible(_) => "the other end does not offer TLS 1.3 as Privet requires it",
        Tls::NoApplicationProtocol => ANOTHER_PROTOCOL,
        Tls::DecryptError => "a TLS record was altered on its way",
        _ => "the other end broke the TLS protocol",
    };
    PeerMisbehaved::Tls { problem, detail: error.to_string() }.into()
}

/// What is said of a peer that speaks TLS but not the protocol of this crate.
pub(super) const ANOTHER_PROTOCOL: &str = "the other end speaks TLS but not this version of Privet's protocol";

fn system(doing: &'static str, error: &rustls::Error) -> Error {
    Io::System { doing, problem: error.to_string() }.into()
}

/// What is wrong with the peer's certificate and what to do.
fn certificate(problem: &CertificateError, detail: &str) -> String {
    use CertificateError as C;
    let advice = match problem {
        C::UnknownIssuer | C::BadSignature => "it was not issued by an authority that this side trusts",
        C::Expired | C::ExpiredContext { .. } => "it has expired: renew it (and check this machine's clock)",
        C::NotValidYet | C::NotValidYetContext { .. } => "it is not valid yet: check the clocks of both machines",
        C::NotValidForName | C::NotValidForNameContext { .. } => {
            "it is for another name: give the server name that is in the certificate"
        }
        C::InvalidPurpose | C::InvalidPurposeContext { .. } => {
            "it may not be used for this side of a connection: check its extended key usage"
        }
        _ => "it cannot be verified",
    };
    format!("{advice} ({detail})")
}

/// What an alert from the peer most likely means.
fn hint(alert: AlertDescription) -> &'static str {
    use AlertDescription as A;
    match alert {
        A::UnknownCA | A::BadCertificate | A::DecryptError => {
            "this side's certificate was not issued by an authority that the peer trusts"
        }
        A::CertificateExpired => "this side's certificate has expired, or a clock is wrong",
        A::CertificateRequired => "the peer requires a certificate from this side",
        A::UnsupportedCertificate | A::CertificateUnknown | A::AccessDenied => {
            "the peer does not accept this side's certificate for this purpose"
        }
        A::ProtocolVersion => "the peer does not speak TLS 1.3",
        A::NoApplicationProtocol => "the peer is no Privet peer of this version",
        A::HandshakeFailure => "the two sides have no TLS algorithm in common",
        _ => "the peer's log may say why",
    }
}
