//! Ciphertexts that a session refuses, and what the server does with the same ones twice.

use std::collections::HashSet;
use std::thread;

use privet_channel::{AbortReason, Channel, PeerMisbehaved as Link, pair};
use privet_paillier::{Ciphertexts, PeerMisbehaved, PublicKey};

use super::{Fixture, PAILLIER};
use crate::policy::{Guard, Policy};
use crate::stream::{DataProvider, Server as Served};
use crate::{Error, Silent};

/// A client that has this key and says what it likes. Returns how the server's session ended.
fn against_server(fixture: &Fixture, provider: &DataProvider, client: impl FnOnce(&mut Channel)) -> Result<(), Error> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/residual");
    let read = |file| std::fs::read(folder.join(file)).expect("a fixture");
    let server = Served::new(read("program.json"), &read("weights.safetensors")).expect("a server");
    let server = server.under(Guard::new(Policy::unrestricted(), "unused").expect("nothing is counted"));
    let (mut near, far) = pair();
    thread::scope(|scope| {
        let serving = scope.spawn(move || server.serve(None, None, far, &mut Silent, &mut |_| ()));
        crate::session::messages::greet(&mut near).expect("a greeting");
        let hash = fixture.plan.program().hash().to_string();
        let ask = format!(r#"{{"request":"encrypt","program":"{hash}","key_bits":2048,"samples":1}}"#);
        near.send(ask.as_bytes()).expect("a link");
        near.send(&provider.public_key().to_bytes()).expect("a link");
        near.flush().expect("a link");
        near.recv(1).expect("noise is ready");
        near.send(format!(r#"{{"request":"infer","program":"{hash}"}}"#).as_bytes()).expect("a link");
        client(&mut near);
        drop(near);
        serving.join().expect("the server does not panic")
    })
}

/// Honest encryptions of the input's length.
fn encrypted(provider: &DataProvider, fixture: &Fixture) -> Vec<u8> {
    let zeros = vec![0_i64.into(); fixture.inputs[0].len()];
    provider.key.encrypt(&zeros).expect("ciphertexts").to_bytes()
}

#[test]
fn ciphertexts_outside_the_group_end_the_session_and_get_no_answer() {
    let size = 512;
    // The number alone; its proof lies behind it.
    let n = move |provider: &DataProvider| provider.public_key().to_bytes()[..size / 2].to_vec();
    type Forge = Box<dyn Fn(&DataProvider) -> Vec<u8>>;
    let forgeries: [(Forge, PeerMisbehaved); 4] = [
        (Box::new(move |_| vec![0; size]), PeerMisbehaved::NotInvertible { index: 3 }),
        (Box::new(move |_| vec![0xff; size]), PeerMisbehaved::NotReduced { index: 3 }),
        (
            Box::new(move |provider| [n(provider), vec![0; size / 2]].concat()),
            PeerMisbehaved::NotInvertible { index: 3 },
        ),
        (
            Box::new(move |provider| [vec![0], n(provider), vec![0; size / 2 - 1]].concat()),
            PeerMisbehaved::NotInvertible { index: 3 },
        ),
    ];
    let fixture = Fixture::residual(PAILLIER);
    let provider = DataProvider::new(&fixture.plan).expect("a key");
    for (forge, expected) in forgeries {
        let ended = against_server(&fixture, &provider, |channel| {
            let mut bytes = encrypted(&provider, &fixture);
            bytes[3 * size..4 * size].copy_from_slice(&forge(&provider));
            for message in bytes.chunks(1024 * size) {
                channel.send(message).expect("a link");
            }
            channel.flush().expect("a link");
            // The next message is no ciphertext but why the server hangs up.
            let reply = channel.recv(256 * size);
            let Err(privet_channel::Error::PeerMisbehaved(Link::Aborted { reason, .. })) = reply else {
                panic!("an answer of {:?} bytes", reply.map(|bytes| bytes.len()));
            };
            assert_eq!(reason, AbortReason::Misbehaved);
        });
        match ended {
            Err(Error::Encryption(privet_paillier::Error::PeerMisbehaved(what))) => assert_eq!(what, expected),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn the_client_refuses_ciphertexts_outside_the_group() {
    let fixture = Fixture::residual(PAILLIER);
    let (mut near, mut far) = pair();
    thread::scope(|scope| {
        scope.spawn(move || {
            far.recv(512 * 512).expect("the input");
            far.send(&vec![0; 256 * 512]).expect("a link");
            far.flush().expect("a link");
        });
        let mut provider = DataProvider::new(&fixture.plan).expect("a key");
        provider.prepare(&fixture.plan).expect("noise");
        let ended = provider.infer(&mut near, &fixture.plan, &fixture.inputs, &mut Silent).map(drop);
        let Err(Error::Encryption(privet_paillier::Error::PeerMisbehaved(what))) = ended else {
            panic!("{ended:?}");
        };
        assert_eq!(what, PeerMisbehaved::NotInvertible { index: 0 });
    });
}

/// Without fresh noise the same ciphertexts in would give the same out, and their noise would tell of the weights.
#[test]
fn the_same_ciphertexts_come_back_as_others() {
    let fixture = Fixture::residual(PAILLIER);
    let provider = DataProvider::new(&fixture.plan).expect("a key");
    let bytes = encrypted(&provider, &fixture);
    let key = PublicKey::from_bytes(provider.public_key().size(), &provider.public_key().to_bytes()).expect("a key");
    let mut server = super::ModelProvider::new(key).expect("a table");
    let mut answers: Vec<HashSet<Vec<u8>>> = Vec::new();
    for _ in 0..2 {
        let (mut near, mut far) = pair();
        let answer = thread::scope(|scope| {
            scope.spawn(|| {
                server.prepare(&fixture.plan).expect("noise");
                // It waits for an answer that never comes.
                server.infer(&mut far, &fixture.plan, &fixture.weights, &mut Silent).expect_err("the client left");
            });
            near.send(&bytes).expect("a link");
            near.flush().expect("a link");
            let answer = near.recv(256 * 512).expect("an exchange");
            drop(near);
            answer
        });
        let read = Ciphertexts::from_bytes(provider.public_key(), 256, &answer).expect("ciphertexts");
        assert_eq!(provider.key.decrypt(&read).expect("plaintexts").len(), 256);
        answers.push(answer.chunks(512).map(<[u8]>::to_vec).collect());
    }
    assert_eq!(answers[0].len(), 256);
    assert!(answers[0].is_disjoint(&answers[1]));
}
