//! Links: in memory, and TLS over loopback.

use std::thread;
use std::time::Duration;

use privet_channel::tls::{Identity, Listener, Trust, connect};
use privet_channel::{Channel, pair};
use privet_kernels::{Bench, Limit, both};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

const BYTES: usize = 16 << 20;
const TIMEOUT: Duration = Duration::from_secs(30);

pub fn run(bench: &mut Bench) {
    let message = vec![7; BYTES];
    let mut received = vec![0; BYTES];
    for (name, (mut here, mut there), aes, copies, why) in [
        ("channel-memory-16MiB", pair(), 0.0, 2.0, "two copies of a byte"),
        (
            "channel-tls-16MiB",
            tls_pair(),
            2.0,
            4.0,
            "AES-128 at both ends; two copies through the kernel and two outside",
        ),
    ] {
        let limit =
            Limit { aes: aes * BYTES as f64 / 16.0, bytes: 2.0 * copies * BYTES as f64, why, ..Limit::default() };
        bench.run(name, limit, || {
            let (sent, got) =
                both(|| here.send(&message).and_then(|()| here.flush()), || there.recv_into(&mut received));
            sent.and(got).expect("a message");
        });
    }
}

fn tls_pair() -> (Channel, Channel) {
    let mut authority = CertificateParams::new(Vec::<String>::new()).expect("parameters");
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().expect("a key")).expect("an authority");
    let key = KeyPair::generate().expect("a key");
    let party = CertificateParams::new(vec!["localhost".to_owned()]).expect("parameters");
    let certificate = party.signed_by(&key, &authority).expect("a certificate");
    let identity = Identity::from_pem(certificate.pem().as_bytes(), key.serialize_pem().as_bytes()).expect("identity");
    let trust = Trust::from_pem(authority.pem().as_bytes()).expect("trust");
    let listener = Listener::bind("127.0.0.1:0", &identity, &trust).expect("a port");
    let port = listener.local_addr().port();
    let accepting =
        thread::spawn(move || listener.accept(TIMEOUT).and_then(|p| p.handshake(TIMEOUT)).expect("a client"));
    let client = connect("127.0.0.1", port, &identity, &trust, "localhost", TIMEOUT).expect("a server");
    (client, accepting.join().expect("the server"))
}
