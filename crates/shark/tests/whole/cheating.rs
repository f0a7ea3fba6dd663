//! Parties that deviate on purpose: they alter a share and guess its code, or wait for what the other one says.

use privet_channel::record::{self, Direction};
use privet_channel::{Channel, pair};
use privet_fss::Role;
use privet_ring::Modulus;
use privet_shark::{CHECK_BYTES, Error, Party, PeerMisbehaved, TaggedBits, Values};

use crate::support::{Material, deal, prg};

const RING: Modulus = Modulus::new(64);

/// Material for opening three masks.
fn masks() -> Material {
    deal(7, |dealer, _| {
        dealer.masks(3).expect("a vector takes everything");
    })
}

fn misbehaved(result: &Result<(), Error>, how: PeerMisbehaved) -> bool {
    matches!(result, Err(Error::PeerMisbehaved(fault)) if *fault == how)
}

/// Opens masks, where `cheater` adds `error` to a value and `error` times its guess of `Delta` to the code. Returns whether
/// the honest party accepted, and what it opened.
fn forge(material: &Material, cheater: Role, error: u128, guess: u128) -> (bool, Vec<u128>) {
    let results = material.both(pair().into(), |mut party| {
        let mut masks = party.masks(3)?;
        if party.role() == cheater {
            let (mut shares, mut codes) = (masks.shares().to_vec(), masks.codes().to_vec());
            shares[1] = shares[1].wrapping_add(error);
            codes[1] = codes[1].wrapping_add(error.wrapping_mul(guess));
            masks = Values::from_parts(shares, codes);
        }
        let opened = party.open(&masks)?;
        Ok((party.check(), opened))
    });
    let honest = &results[usize::from(cheater == Role::Client)].0;
    let (check, opened) = honest.as_ref().expect("the opening itself shows nothing");
    assert!(check.as_ref().err().is_none_or(Error::spoils_setup), "{check:?}");
    (check.is_ok(), opened.clone())
}

#[test]
fn a_value_is_forged_only_with_the_key() {
    let material = masks();
    let delta = material.delta();
    for cheater in [Role::Client, Role::Server] {
        let (accepted, honest) = forge(&material, cheater, 0, 0);
        assert!(accepted);
        for bit in 0..64 {
            let error = 1 << bit;
            for guess in [0, 1, u128::MAX, prg(bit).block(), delta ^ 1, delta.wrapping_add(1 << 64)] {
                assert!(!forge(&material, cheater, error, guess).0, "2^{bit} by {cheater:?}");
            }
            // The test can fail: who knows the key forges.
            let (accepted, forged) = forge(&material, cheater, error, delta);
            assert!(accepted);
            assert_ne!(RING.reduce(forged[1] as u64), RING.reduce(honest[1] as u64));
        }
    }
}

#[test]
fn what_a_lucky_guess_of_few_bits_forges_is_no_part_of_the_value() {
    let material = masks();
    let (_, honest) = forge(&material, Role::Server, 0, 0);
    // The code modulo 2^128 of an error of 2^120 depends on eight bits of the key.
    let (accepted, forged) = forge(&material, Role::Server, 1 << 120, material.delta() & 0xff);
    assert!(accepted);
    assert_ne!(forged[1], honest[1]);
    assert_eq!(forged[1] as u64, honest[1] as u64);
}

/// As [`forge`], for a bit and a guess of `delta`.
fn forge_bit(material: &Material, cheater: Role, guess: u64) -> bool {
    let results = material.both(pair().into(), |mut party| {
        let mut flips = party.flips(3)?;
        if party.role() == cheater {
            let mut words = flips.words().to_vec();
            words[2] ^= guess;
            flips = TaggedBits::from_words(words);
        }
        party.open_bits(&flips)?;
        Ok(party.check())
    });
    let honest = results[usize::from(cheater == Role::Client)].0.as_ref().expect("the opening itself shows nothing");
    assert!(honest.as_ref().err().is_none_or(Error::spoils_setup), "{honest:?}");
    honest.is_ok()
}

#[test]
fn a_bit_is_forged_only_with_the_key() {
    let mut bits = Vec::new();
    let material = deal(8, |dealer, _| {
        bits = dealer.flips(3).expect("a vector takes everything").iter().collect();
    });
    let words = material.run(|mut party| party.flips(3)).map(|(flips, _)| flips.words().to_vec());
    // A bit that is 1 shows the key to who knows both words.
    let one = bits.iter().position(|bit| *bit).expect("one of three is set");
    let delta = words[0][one] ^ words[1][one];
    for cheater in [Role::Client, Role::Server] {
        for guess in [1, u64::MAX, prg(3).word() | 1].into_iter().chain((1..64).map(|bit| delta ^ 1 << bit)) {
            assert!(!forge_bit(&material, cheater, guess), "{guess:x} by {cheater:?}");
        }
        assert!(forge_bit(&material, cheater, 0));
        assert!(forge_bit(&material, cheater, delta));
    }
}

/// Plays an honest client against a server that does `rush` in place of a check, after an opening that it altered.
fn against_rushing_server(rush: impl Fn(&mut Channel) + Sync) -> Result<(), Error> {
    let (material, rush) = (&masks(), &rush);
    let open = |party: &mut Party<'_>, error: u128| {
        let masks = party.masks(3).expect("a key as long as it should be");
        let shares = masks.shares().iter().map(|share| share.wrapping_add(error)).collect();
        party.open(&Values::from_parts(shares, masks.codes().to_vec())).expect("an opening")
    };
    let (mut client, mut server) = pair();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            material.side(Role::Server, &mut server, |mut party| open(&mut party, 1));
            rush(&mut server);
            drop(server);
        });
        material.side(Role::Client, &mut client, |mut party| {
            open(&mut party, 0);
            party.check()
        })
    })
}

#[test]
fn a_server_that_waits_for_the_digest_cannot_repeat_it() {
    let [commitment, opening] = CHECK_BYTES;
    // It repeats both messages of the client.
    let echoed = against_rushing_server(|channel| {
        let message = channel.recv(commitment).expect("a commitment");
        channel.send(&message).expect("a link");
        let message = channel.recv(opening).expect("an opening");
        channel.send(&message).expect("a link");
    });
    assert!(misbehaved(&echoed, PeerMisbehaved::Commitment), "{echoed:?}");
    // It commits to something and repeats the digest with a salt of its own.
    let changed = against_rushing_server(|channel| {
        channel.send(&[7; CHECK_BYTES[0]]).expect("a link");
        channel.recv(commitment).expect("a commitment");
        let message = channel.recv(opening).expect("an opening");
        channel.send(&[&message[..32], &[9; 32]].concat()).expect("a link");
    });
    assert!(misbehaved(&changed, PeerMisbehaved::Commitment), "{changed:?}");
}

#[test]
fn a_server_that_leaves_after_the_digest_spoils_the_setup() {
    let left = against_rushing_server(|channel| {
        channel.send(&[7; CHECK_BYTES[0]]).expect("a link");
        channel.recv(CHECK_BYTES[0]).expect("a commitment");
        channel.recv(CHECK_BYTES[1]).expect("an opening");
    });
    assert!(matches!(left, Err(Error::CheckCut(_))) && left.is_err_and(|error| error.spoils_setup()));
}

#[test]
fn a_client_that_cheated_is_not_told_the_digest() {
    let material = masks();
    let (mut client, server) = pair();
    std::thread::scope(|scope| {
        let honest = scope.spawn(|| {
            let mut server = server;
            let result = material.side(Role::Server, &mut server, |mut party| {
                let masks = party.masks(3).expect("a key as long as it should be");
                party.open(&masks).expect("an opening");
                party.check()
            });
            drop(server);
            result
        });
        material.side(Role::Client, &mut client, |mut party| {
            let masks = party.masks(3).expect("a key as long as it should be").scale(3);
            party.open(&masks).expect("an opening");
            // Its own check is one of a transcript that nobody else has.
            assert!(matches!(party.check(), Err(Error::CheckCut(_))));
            // And there is no way on.
            assert!(matches!(party.check(), Err(Error::Failed)));
            assert!(matches!(party.open(&masks), Err(Error::Failed)));
        });
        assert!(misbehaved(&honest.join().expect("no panic"), PeerMisbehaved::Check));
    });
}

#[test]
fn a_client_that_cheated_gets_no_share_of_the_output() {
    let material = deal(9, |dealer, _| {
        dealer.masks(3).expect("a vector takes everything");
        dealer.secrets(&[1, 2, 3, 4, 5]).expect("a vector takes everything");
        dealer.output_masks(RING, 5).expect("a vector takes everything");
    });
    // The error, and the bytes of the messages that the server sends: an opening, a commitment, its digest, its shares of
    // the output, and another check.
    for (error, sent) in [(0, vec![48, 32, 64, 80, 32, 64]), (1, vec![48, 32])] {
        let (client, server, transcript) = record::pair();
        let results = material.both([client, server], |mut party| {
            let mut masks = party.masks(3)?;
            if party.role() == Role::Client {
                let shares = masks.shares().iter().map(|share| share.wrapping_add(error)).collect();
                masks = Values::from_parts(shares, masks.codes().to_vec());
            }
            party.open(&masks)?;
            let y = party.secrets(5)?;
            party.reveal(&y, RING)
        });
        assert_eq!(results.iter().all(|(result, _)| result.is_ok()), error == 0);
        let transcript = transcript.lock().expect("no panic");
        assert_eq!(transcript.payloads(Direction::SecondToFirst).map(<[u8]>::len).collect::<Vec<_>>(), sent);
    }
}

#[test]
fn errors_before_a_check_leave_the_setup_alone() {
    let cut: Error = privet_channel::Error::from(privet_channel::Io::Disconnected).into();
    let padding: Error = PeerMisbehaved::Padding.into();
    assert!(!cut.spoils_setup() && !padding.spoils_setup() && !Error::Failed.spoils_setup());
}
