//! Who gets in and who does not, and what both sides are told.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crate::support::{Authority, SOON, meet, together};
use privet_channel::tls::{Identity, Listener, Trust, connect};
use privet_channel::{Channel, Error, Io, MOST_UNREAD, Misuse, PeerMisbehaved};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose, date_time_ymd,
};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, ClientConnection, RootCertStore};

/// The text of a refused certificate.
fn certificate_problem(error: Error) -> String {
    match error {
        Error::PeerMisbehaved(PeerMisbehaved::Certificate { problem }) => problem,
        other => panic!("not about a certificate: {other:?}"),
    }
}

/// The alert and the hint of a refusal by the peer.
fn refusal(error: Error) -> (String, &'static str) {
    match error {
        Error::PeerMisbehaved(PeerMisbehaved::Refused { alert, hint }) => (alert, hint),
        other => panic!("not a refusal: {other:?}"),
    }
}

fn tls_problem(error: Error) -> &'static str {
    match error {
        Error::PeerMisbehaved(PeerMisbehaved::Tls { problem, .. }) => problem,
        other => panic!("not about TLS: {other:?}"),
    }
}

#[test]
fn each_side_learns_who_the_other_is() {
    let authority = Authority::new("authority");
    let trust = authority.trust();
    let (alice, bob) = (authority.identity("alice"), authority.identity("bob é"));
    let (client, server) = meet((&alice, &trust), (&bob, &trust));
    let (client, server) = (client.expect("a channel"), server.expect("a channel"));
    assert_eq!((client.peer(), client.peer_name()), (Some(bob.fingerprint()), Some("bob é")));
    assert_eq!((server.peer(), server.peer_name()), (Some(alice.fingerprint()), Some("alice")));
    assert_ne!(alice.fingerprint(), bob.fingerprint());
    assert_eq!(alice.fingerprint().to_string().len(), 64);
}

#[test]
fn a_peer_that_reads_nothing_makes_a_side_hold_no_more_than_it_allows() {
    const MIB: usize = 1 << 20;
    let (authority, messages) = (Authority::new("authority"), 64);
    let trust = authority.trust();
    // What a side comes to that sends as much as comes before either reads.
    let sends = |limit: usize| {
        let (client, server) = meet((&authority.identity("alice"), &trust), (&authority.identity("bob"), &trust));
        let (mut client, mut server) = (client.expect("a channel"), server.expect("a channel"));
        server.set_unread_limit(limit);
        let unread = thread::spawn(move || {
            // The link ends where this is too much.
            let _ = (0..messages).try_for_each(|_| client.send(&[7; MIB])).and_then(|()| client.flush());
            client.recv(messages * MIB).map(drop)
        });
        let sent = server.send(&vec![0; messages * MIB]).and_then(|()| server.flush());
        let read = sent.and_then(|()| (0..messages).try_for_each(|_| server.recv(MIB).map(drop)));
        drop(server);
        (read, unread.join().expect("no panic").is_ok())
    };
    assert_eq!(sends(MIB), (Err(PeerMisbehaved::Flooded { limit: MIB }.into()), false));
    // The control: as channels are by themselves, all of it waits in memory.
    assert_eq!(sends(MOST_UNREAD), (Ok(()), true));
}

#[test]
fn a_side_sees_without_waiting_that_the_other_has_spoken_or_left() {
    let authority = Authority::new("authority");
    let trust = authority.trust();
    let (alice, bob) = (authority.identity("alice"), authority.identity("bob"));
    let (client, server) = meet((&alice, &trust), (&bob, &trust));
    let (mut client, mut server) = (client.expect("a channel"), server.expect("a channel"));
    let await_news = |client: &Channel| {
        let limit = Instant::now() + SOON;
        while client.is_quiet() && Instant::now() < limit {
            thread::yield_now();
        }
        !client.is_quiet()
    };
    assert!(client.is_quiet());
    server.send(b"a word").and_then(|()| server.flush()).expect("sent");
    assert!(await_news(&client));
    assert_eq!(client.recv(6).expect("received"), b"a word");
    assert!(client.is_quiet());
    drop(server);
    assert!(await_news(&client));
    assert_eq!(client.recv(6), Err(Io::Disconnected.into()));
    assert!(!client.is_quiet());
}

#[test]
fn a_listener_shows_new_credentials_from_the_next_client_on_and_open_channels_go_on() {
    let (old, new) = (Authority::new("old"), Authority::new("new"));
    let listener = Listener::bind("127.0.0.1:0", &old.identity("before"), &old.trust()).expect("a port");
    let port = listener.local_addr().port();
    let ask = |identity: Identity, trust: Trust| {
        thread::scope(|scope| {
            let serving = scope.spawn(|| listener.accept(SOON)?.handshake(SOON));
            let client = connect("127.0.0.1", port, &identity, &trust, "localhost", SOON);
            (client, serving.join().expect("the server's thread"))
        })
    };
    let (client, server) = ask(old.identity("client"), old.trust());
    let (mut client, mut server) = (client.expect("a channel"), server.expect("a channel"));
    listener.renew(&new.identity("after"), &new.trust()).expect("renewed");
    let (renewed, _server) = ask(new.identity("client"), new.trust());
    assert_eq!(renewed.expect("a channel").peer_name(), Some("after"));
    let (refused, stranger) = ask(old.identity("client"), new.trust());
    assert_eq!(refusal(refused.expect_err("refused")).0, "UnknownCA");
    assert!(stranger.is_err());
    client.send(b"still here").expect("sent");
    client.flush().expect("sent");
    assert_eq!(server.recv(10).expect("received"), b"still here");
}

#[test]
fn a_client_of_another_authority_is_refused_on_both_sides() {
    let (ours, theirs) = (Authority::new("ours"), Authority::new("theirs"));
    let (client, server) =
        meet((&theirs.identity("stranger"), &ours.trust()), (&ours.identity("server"), &ours.trust()));
    let problem = certificate_problem(server.expect_err("refused"));
    assert!(problem.contains("not issued by an authority that this side trusts"), "{problem}");
    let (alert, hint) = refusal(client.expect_err("refused"));
    assert_eq!((alert.as_str(), hint.contains("that the peer trusts")), ("UnknownCA", true), "{hint}");
}

#[test]
fn a_server_of_another_authority_is_refused_on_both_sides() {
    let (ours, theirs) = (Authority::new("ours"), Authority::new("theirs"));
    let (client, server) =
        meet((&ours.identity("client"), &ours.trust()), (&theirs.identity("stranger"), &ours.trust()));
    let problem = certificate_problem(client.expect_err("refused"));
    assert!(problem.contains("not issued by an authority that this side trusts"), "{problem}");
    let (alert, hint) = refusal(server.expect_err("refused"));
    assert_eq!((alert.as_str(), hint.contains("that the peer trusts")), ("UnknownCA", true), "{hint}");
}

#[test]
fn certificates_that_are_expired_or_for_another_use_or_name_are_refused() {
    let authority = Authority::new("authority");
    let trust = authority.trust();
    let good = authority.identity("good");
    let expired = authority.identity_with("old", |params| {
        params.not_before = date_time_ymd(2001, 1, 1);
        params.not_after = date_time_ymd(2002, 1, 1);
    });
    let (client, server) = meet((&expired, &trust), (&good, &trust));
    assert!(certificate_problem(server.expect_err("refused")).contains("renew it"));
    assert_eq!(refusal(client.expect_err("refused")).0, "CertificateExpired");

    let for_servers = authority.identity_with("server", |params| {
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    });
    let (client, server) = meet((&for_servers, &trust), (&for_servers, &trust));
    assert!(certificate_problem(server.expect_err("refused")).contains("extended key usage"));
    assert!(client.is_err());

    let elsewhere = authority.identity_with("server", |params| {
        params.subject_alt_names = vec![rcgen::SanType::DnsName("elsewhere.example".try_into().expect("a name"))];
    });
    let (client, server) = meet((&good, &trust), (&elsewhere, &trust));
    let problem = certificate_problem(client.expect_err("refused"));
    assert!(problem.contains("for another name") && problem.contains("elsewhere.example"), "{problem}");
    assert!(server.is_err());
}

#[test]
fn a_certificate_that_is_no_authority_is_no_anchor_though_it_could_mint_others() {
    type Change = fn(&mut CertificateParams);
    let not_an_authority: [(Change, &str); 3] = [
        (|_| {}, "no BasicConstraints"),
        (|params| params.is_ca = IsCa::ExplicitNoCa, "CA:FALSE"),
        (
            |params| {
                params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
                params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
            },
            "keyCertSign",
        ),
    ];
    for (change, why) in not_an_authority {
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).expect("parameters");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        change(&mut params);
        let client = CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("a certificate");
        let problem = Trust::from_pem(client.pem().as_bytes()).expect_err("no authority").to_string();
        assert!(problem.contains(why) && problem.contains("authority that issued it"), "{problem}");

        // The control: rustls alone takes it for an anchor, and then whatever its key has signed.
        let mut roots = RootCertStore::empty();
        roots.add(client.der().clone()).expect("an anchor");
        let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), default_provider().into());
        let mut minted = CertificateParams::new(Vec::<String>::new()).expect("parameters");
        minted.distinguished_name.push(DnType::CommonName, "privet operator");
        minted.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let minted = minted.signed_by(&KeyPair::generate().expect("a key"), &client).expect("a certificate");
        let accepted = verifier.build().expect("a verifier").verify_client_cert(minted.der(), &[], UnixTime::now());
        assert!(accepted.is_ok(), "{accepted:?}");
    }
    // A text with an authority and another certificate is refused whole.
    let authority = Authority::new("authority");
    let both = authority.pem() + &authority.issue("client", |_| {}).0;
    let problem = Trust::from_pem(both.as_bytes()).expect_err("no authority").to_string();
    assert!(problem.contains("certificate 2"), "{problem}");
}

/// A TLS client made by hand, to do what this crate's own client never does.
fn foreign_client(config: ClientConfig, port: u16) -> std::io::Result<Vec<u8>> {
    let name = ServerName::try_from("localhost").expect("a name");
    let mut connection = ClientConnection::new(Arc::new(config), name).expect("a connection");
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(SOON))?;
    let mut tls = rustls::Stream::new(&mut connection, &mut stream);
    tls.write_all(b"hello")?;
    let mut answer = vec![0; 1];
    tls.read_exact(&mut answer)?;
    Ok(answer)
}

fn foreign_config(authority: &Authority) -> rustls::ConfigBuilder<ClientConfig, rustls::client::WantsClientCert> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(authority.pem().as_bytes()).expect("PEM")).expect("a root");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("TLS 1.3")
        .with_root_certificates(roots)
}

#[test]
fn a_client_without_a_certificate_is_refused() {
    let authority = Authority::new("authority");
    let listener = Listener::bind("127.0.0.1:0", &authority.identity("server"), &authority.trust()).expect("a port");
    let port = listener.local_addr().port();
    let mut config = foreign_config(&authority).with_no_client_auth();
    config.alpn_protocols = vec![b"privet/1".to_vec()];
    let client = thread::spawn(move || foreign_client(config, port));
    let server = listener.accept(SOON).expect("a client").handshake(SOON);
    let problem = certificate_problem(server.expect_err("refused"));
    assert!(problem.contains("presented none"), "{problem}");
    let refusal = client.join().expect("the client").expect_err("refused").to_string();
    assert!(refusal.contains("CertificateRequired"), "{refusal}");
}

#[test]
fn a_client_of_the_same_authority_but_another_protocol_is_refused() {
    let authority = Authority::new("authority");
    let listener = Listener::bind("127.0.0.1:0", &authority.identity("server"), &authority.trust()).expect("a port");
    let port = listener.local_addr().port();
    for protocols in [vec![b"privet/0".to_vec(), b"h2".to_vec()], vec![]] {
        let (certificate, key) = authority.issue("client", |_| {});
        let certificate = CertificateDer::from_pem_slice(certificate.as_bytes()).expect("PEM");
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).expect("PEM");
        let mut config = foreign_config(&authority).with_client_auth_cert(vec![certificate], key).expect("identity");
        config.alpn_protocols = protocols;
        let client = thread::spawn(move || foreign_client(config, port));
        let server = listener.accept(SOON).expect("a client").handshake(SOON);
        assert!(tls_problem(server.expect_err("refused")).contains("not this version of Privet's protocol"));
        assert!(client.join().expect("the client").is_err());
    }
}

/// The first message of a client that knows nothing newer than TLS 1.2: no `supported_versions` extension.
fn tls12_hello() -> Vec<u8> {
    let mut body = vec![0x03, 0x03];
    body.extend([0x42; 32]);
    body.push(0); // no session
    body.extend([0, 4, 0xc0, 0x2f, 0xc0, 0x2b]); // ECDHE with AES-128-GCM, RSA and ECDSA
    body.extend([1, 0]); // no compression
    let groups = [0, 10, 0, 4, 0, 2, 0, 29];
    let signatures = [0, 13, 0, 6, 0, 4, 4, 3, 8, 4];
    body.extend([0, (groups.len() + signatures.len()) as u8]);
    body.extend(groups);
    body.extend(signatures);
    let mut handshake = vec![1, 0, 0, body.len() as u8];
    handshake.extend(body);
    let mut record = vec![0x16, 0x03, 0x01, 0, handshake.len() as u8];
    record.extend(handshake);
    record
}

#[test]
fn what_is_not_tls13_is_refused_and_the_next_client_is_served() {
    let authority = Authority::new("authority");
    let (trust, server) = (authority.trust(), authority.identity("server"));
    let listener = Listener::bind("127.0.0.1:0", &server, &trust).expect("a port");
    let port = listener.local_addr().port();
    let garbage: [(&[u8], &str, &[u8]); 4] = [
        (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "does not speak TLS", &[0x15]),
        (&[0; 300], "does not speak TLS", &[0x15]),
        (&[0x16, 3, 1, 0xff, 0xff, 1], "does not speak TLS", &[0x15]),
        (&tls12_hello(), "does not offer TLS 1.3", &[0x15, 3, 3, 0, 2, 2, 70]),
    ];
    for (bytes, problem, answer) in garbage {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("connected");
        stream.write_all(bytes).expect("sent");
        let pending = listener.accept(SOON).expect("a client");
        assert_eq!(pending.address(), stream.local_addr().expect("an address"));
        let refusing = thread::spawn(move || pending.handshake(SOON));
        let mut alert = Vec::new();
        stream.read_to_end(&mut alert).expect("an alert");
        drop(stream);
        let found = tls_problem(refusing.join().expect("the server").expect_err("refused"));
        assert!(found.contains(problem), "{found}");
        assert!(alert.starts_with(answer), "{alert:?}");

        let (client, served) = thread::scope(|scope| {
            let serving = scope.spawn(|| listener.accept(SOON)?.handshake(SOON));
            let client = connect("127.0.0.1", port, &authority.identity("client"), &trust, "localhost", SOON);
            (client, serving.join().expect("the server"))
        });
        assert!(client.is_ok() && served.is_ok());
    }
}

#[test]
fn a_silent_client_is_given_up_in_time_and_delays_nobody() {
    let authority = Authority::new("authority");
    let (trust, server) = (authority.trust(), authority.identity("server"));
    let listener = Listener::bind("127.0.0.1:0", &server, &trust).expect("a port");
    let port = listener.local_addr().port();
    let silent = TcpStream::connect(("127.0.0.1", port)).expect("connected");
    let pending = listener.accept(SOON).expect("the silent client");
    let waiting = thread::spawn(move || {
        let start = Instant::now();
        let error = pending.handshake(Duration::from_millis(300)).expect_err("nobody speaks");
        (start.elapsed(), error)
    });
    thread::scope(|scope| {
        let serving = scope.spawn(|| listener.accept(SOON)?.handshake(SOON));
        connect("127.0.0.1", port, &authority.identity("client"), &trust, "localhost", SOON).expect("served");
        serving.join().expect("the server").expect("served");
    });
    let (waited, error) = waiting.join().expect("the waiting thread");
    assert!(matches!(error, Error::Io(Io::TimedOut { .. })), "{error:?}");
    assert!(waited < Duration::from_secs(15), "{waited:?}");
    drop(silent);
    let nobody = listener.accept(Duration::from_millis(50)).err();
    assert!(matches!(nobody, Some(Error::Io(Io::TimedOut { .. }))), "{nobody:?}");
}

#[test]
fn a_server_that_is_absent_or_silent_or_no_tls_is_named() {
    let authority = Authority::new("authority");
    let (trust, identity) = (authority.trust(), authority.identity("client"));
    let other = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = other.local_addr().expect("an address").port();
    let silent = connect("localhost", port, &identity, &trust, "localhost", Duration::from_millis(200));
    assert!(matches!(silent, Err(Error::Io(Io::TimedOut { .. }))), "{silent:?}");

    let answering = thread::spawn(move || {
        let (mut first, _) = other.accept().expect("the silent one's client");
        first.read_to_end(&mut Vec::new()).expect("its good-bye");
        let (mut stream, _) = other.accept().expect("a client");
        stream.write_all(b"220 mail.example ESMTP\r\n").expect("sent");
        stream.read_to_end(&mut Vec::new()).expect("its alert");
    });
    let foreign = connect("127.0.0.1", port, &identity, &trust, "localhost", SOON);
    assert!(tls_problem(foreign.expect_err("no TLS")).contains("does not speak TLS"));
    answering.join().expect("the server");

    let refused = connect("127.0.0.1", port, &identity, &trust, "localhost", SOON).expect_err("nothing listens");
    assert_eq!(refused, Io::ConnectionRefused { host: "127.0.0.1".to_owned(), port }.into());
    let text = refused.to_string();
    assert!(text.contains(&format!("127.0.0.1:{port}")) && text.contains("start the server"), "{text}");
    let unknown = connect("no such host", port, &identity, &trust, "localhost", SOON).expect_err("no host");
    assert!(matches!(unknown, Error::Io(Io::UnknownHost { ref host, .. }) if host == "no such host"), "{unknown:?}");
    let unnamed = connect("127.0.0.1", port, &identity, &trust, "no such name", SOON).expect_err("no name");
    assert_eq!(unnamed, Misuse::ServerName { name: "no such name".to_owned() }.into());
}

#[test]
fn texts_that_are_no_credentials_are_named() {
    let authority = Authority::new("authority");
    let (certificate, key) = authority.issue("one", |_| {});
    let (_, other_key) = authority.issue("two", |_| {});
    let problem = |result: Result<Identity, Error>| result.expect_err("unusable").to_string();
    let mismatch = problem(Identity::from_pem(certificate.as_bytes(), other_key.as_bytes()));
    assert!(mismatch.contains("not the key of the first certificate"), "{mismatch}");
    let swapped = problem(Identity::from_pem(key.as_bytes(), certificate.as_bytes()));
    assert!(swapped.contains("certificate chain") && swapped.contains("BEGIN CERTIFICATE"), "{swapped}");
    let keyless = problem(Identity::from_pem(certificate.as_bytes(), certificate.as_bytes()));
    assert!(keyless.contains("private key"), "{keyless}");
    for text in ["", "no PEM", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
        let error = Trust::from_pem(text.as_bytes()).expect_err("unusable");
        assert!(matches!(error, Error::Misuse(Misuse::Pem { what: "trusted certificate", .. })), "{error:?}");
    }
    let shown = format!("{:?}", Identity::from_pem(certificate.as_bytes(), key.as_bytes()).expect("an identity"));
    assert!(shown.starts_with("Identity(Fingerprint(") && !shown.contains("Key"), "{shown}");
}

#[test]
fn an_address_in_use_is_named() {
    let authority = Authority::new("authority");
    let (trust, identity) = (authority.trust(), authority.identity("server"));
    let first = Listener::bind("127.0.0.1:0", &identity, &trust).expect("a port");
    let address = first.local_addr().to_string();
    let error = Listener::bind(&address, &identity, &trust).err();
    assert!(matches!(error, Some(Error::Io(Io::Bind { address: ref named, .. })) if *named == address), "{error:?}");
}

/// Carries bytes between a client and a server; inverts one bit once `clean` bytes have gone to the server.
fn carry(mut client: TcpStream, mut server: TcpStream, clean: usize) {
    let (mut back_from, mut back_to) = (server.try_clone().expect("a copy"), client.try_clone().expect("a copy"));
    let back = thread::spawn(move || std::io::copy(&mut back_from, &mut back_to));
    let mut passed = 0;
    let mut buffer = [0; 1024];
    while let Ok(count @ 1..) = client.read(&mut buffer) {
        if (passed..passed + count).contains(&clean) {
            buffer[clean - passed] ^= 1;
        }
        passed += count;
        if server.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    // Either side may have closed its end already.
    let _ = server.shutdown(std::net::Shutdown::Write);
    let _ = back.join().expect("the way back");
}

#[test]
fn one_bit_altered_on_the_way_ends_the_conversation() {
    let authority = Authority::new("authority");
    let (trust, identity) = (authority.trust(), authority.identity("party"));
    let listener = Listener::bind("127.0.0.1:0", &identity, &trust).expect("a port");
    let between = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let (inner, outer) = (listener.local_addr(), between.local_addr().expect("an address").port());
    let carrying = thread::spawn(move || {
        let client = between.accept().expect("a client").0;
        carry(client, TcpStream::connect(inner).expect("the server"), 50_000);
    });
    let (client, server) = thread::scope(|scope| {
        let serving = scope.spawn(|| listener.accept(SOON)?.handshake(SOON));
        let client = connect("127.0.0.1", outer, &identity, &trust, "localhost", SOON);
        (client.expect("a channel"), serving.join().expect("the server").expect("a channel"))
    });
    let (client, server) = together(
        client,
        server,
        |mut client| {
            client.send(&[1; 10_000]).expect("sent");
            client.flush().expect("flushed");
            client.recv(1).expect("an answer");
            client.send(&[2; 60_000]).expect("sent");
            client.recv(1).expect_err("the server gives up")
        },
        |mut server| {
            server.recv(10_000).expect("untouched");
            server.send(&[0]).expect("sent");
            server.recv(60_000).expect_err("altered")
        },
    );
    assert!(tls_problem(server).contains("altered"));
    assert_eq!(refusal(client).0, "BadRecordMac");
    carrying.join().expect("the carrier");
}
