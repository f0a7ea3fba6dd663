//! Certificates made on the spot, and one test run over every kind of link.

#![allow(dead_code, reason = "each test file uses its own part")]

use std::thread;
use std::time::Duration;

use privet_channel::tls::{Identity, Listener, Trust, connect};
use privet_channel::{Channel, Error, Link, pair};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair,
};

/// Bounds connections in tests; far above what they take.
pub const SOON: Duration = Duration::from_secs(20);

/// An authority that issues certificates for tests.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub fn new(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::<String>::new()).expect("parameters");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name = named(name);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("an authority"))
    }

    pub fn pem(&self) -> String {
        self.0.pem()
    }

    pub fn trust(&self) -> Trust {
        Trust::from_pem(self.pem().as_bytes()).expect("a trusted authority")
    }

    /// A certificate for `localhost` with this common name.
    pub fn identity(&self, name: &str) -> Identity {
        self.identity_with(name, |_| {})
    }

    /// As [`Authority::identity`], with changed parameters.
    pub fn identity_with(&self, name: &str, change: impl FnOnce(&mut CertificateParams)) -> Identity {
        let (certificate, key) = self.issue(name, change);
        Identity::from_pem(certificate.as_bytes(), key.as_bytes()).expect("an identity")
    }

    /// The certificate and its key in PEM.
    pub fn issue(&self, name: &str, change: impl FnOnce(&mut CertificateParams)) -> (String, String) {
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).expect("parameters");
        params.distinguished_name = named(name);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth, ExtendedKeyUsagePurpose::ServerAuth];
        change(&mut params);
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.0).expect("a certificate");
        (certificate.pem(), key.serialize_pem())
    }
}

fn named(name: &str) -> DistinguishedName {
    let mut distinguished = DistinguishedName::new();
    distinguished.push(DnType::OrganizationName, "Privet tests");
    distinguished.push(DnType::CommonName, name);
    distinguished
}

/// What both sides get when a client with one identity and trust meets a server with another.
pub fn meet(
    client: (&Identity, &Trust),
    server: (&Identity, &Trust),
) -> (Result<Channel, Error>, Result<Channel, Error>) {
    let listener = Listener::bind("127.0.0.1:0", server.0, server.1).expect("a free port");
    let port = listener.local_addr().port();
    thread::scope(|scope| {
        let serving = scope.spawn(|| listener.accept(SOON)?.handshake(SOON));
        let client = connect("127.0.0.1", port, client.0, client.1, "localhost", SOON);
        (client, serving.join().expect("the server's thread"))
    })
}

/// Two channels over TLS on the loopback interface.
pub fn tls_pair() -> (Channel, Channel) {
    let authority = Authority::new("authority");
    let trust = authority.trust();
    let (client, server) = meet((&authority.identity("client"), &trust), (&authority.identity("server"), &trust));
    (client.expect("the client's channel"), server.expect("the server's channel"))
}

/// A link that tests have time for.
pub fn quick() -> Link {
    Link::new(Duration::from_millis(2), 8e9).expect("a link")
}

/// Runs a test over memory, over TLS, and over TLS on a shaped link.
pub fn on_every_link(test: impl Fn(Channel, Channel)) {
    for make in [pair, tls_pair] {
        let (a, b) = make();
        test(a, b);
    }
    let (a, b) = tls_pair();
    test(a.shaped(quick()).expect("shaped"), b);
}

/// Runs both parties at once, each on its own thread, and returns what they return.
pub fn together<A: Send, B: Send>(
    a: Channel,
    b: Channel,
    first: impl FnOnce(Channel) -> A + Send,
    second: impl FnOnce(Channel) -> B + Send,
) -> (A, B) {
    thread::scope(|scope| {
        let second = scope.spawn(|| second(b));
        (first(a), second.join().expect("the second party"))
    })
}

/// Bytes that differ from place to place.
pub fn pattern(length: usize, salt: u8) -> Vec<u8> {
    const PERIOD: usize = 100_003;
    let byte = |i: usize| (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()[0] ^ salt;
    let mut bytes = (0..length.min(PERIOD)).map(byte).collect::<Vec<_>>().repeat(length.div_ceil(PERIOD));
    bytes.truncate(length);
    bytes
}
