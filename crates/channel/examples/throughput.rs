//! Measures a channel over loopback TLS and in memory, as it is and shaped: one-way throughput and the latency of small
//! exchanges.
//!
//! `cargo run --release -p privet-channel --example throughput`
//!
//! The sender runs on the main thread and the receiver on another, so two cores are needed for honest figures.

use std::thread;
use std::time::{Duration, Instant};

use privet_channel::tls::{Identity, Listener, Trust, connect};
use privet_channel::{Channel, Link, pair};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

const TIMEOUT: Duration = Duration::from_secs(30);

fn main() {
    let (a, b) = pair();
    measure("memory", a, b);
    let (a, b) = tls_pair();
    measure("TLS over loopback", a, b);
    let fastest = Link::new(Duration::ZERO, 1e11).expect("a link");
    for (name, link) in [("as fast as can be", fastest), ("0.3 ms, 384 MB/s", Link::LAN)] {
        let (a, b) = tls_pair();
        measure(&format!("TLS over loopback, shaped: {name}"), a.shaped(link).expect("a link"), b);
    }
}

fn measure(link: &str, mut here: Channel, mut there: Channel) {
    println!("{link}");
    for (bytes, count) in [(64, 1_000_000), (16 << 10, 50_000), (1 << 20, 500), (64 << 20, 8)] {
        let seconds = one_way(&mut here, &mut there, bytes, count);
        println!("  {bytes:>9} bytes one way: {:.2} GB/s", (bytes * count) as f64 / seconds / 1e9);
    }
    let bytes = 64 << 20;
    let seconds = exchange(&mut here, &mut there, bytes);
    println!("  {bytes:>9} bytes exchanged: {:.2} GB/s each way", bytes as f64 / seconds / 1e9);
    println!("  there and back of 16 bytes: {:.1} us", ping_pong(&mut here, &mut there, 5_000) * 1e6);
}

/// Seconds to send `count` messages of `bytes` bytes.
fn one_way(sender: &mut Channel, receiver: &mut Channel, bytes: usize, count: usize) -> f64 {
    let message = vec![7; bytes];
    let mut received = vec![0; bytes];
    let start = Instant::now();
    thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..count {
                receiver.recv_into(&mut received).expect("a message");
            }
        });
        for _ in 0..count {
            sender.send(&message).expect("sending");
        }
        sender.flush().expect("sending");
    });
    start.elapsed().as_secs_f64()
}

/// Seconds for an exchange of `bytes` bytes in both directions at once, the best of three.
fn exchange(here: &mut Channel, there: &mut Channel, bytes: usize) -> f64 {
    let message = vec![7; bytes];
    let once = |_| {
        let start = Instant::now();
        thread::scope(|scope| {
            scope.spawn(|| there.exchange(&message).expect("the exchange"));
            here.exchange(&message).expect("the exchange");
        });
        start.elapsed().as_secs_f64()
    };
    (0..3).map(once).fold(f64::INFINITY, f64::min)
}

/// Seconds for 16 bytes there and back.
fn ping_pong(here: &mut Channel, there: &mut Channel, count: u32) -> f64 {
    let start = Instant::now();
    thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..count {
                let ball = there.recv(16).expect("the ball");
                there.send(&ball).expect("the return");
                there.flush().expect("the return");
            }
        });
        for _ in 0..count {
            here.send(&[1; 16]).expect("the ball");
            here.recv(16).expect("the return");
        }
    });
    start.elapsed().as_secs_f64() / f64::from(count)
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
