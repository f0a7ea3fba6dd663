//! What every link must do, over memory and over TLS.

use std::time::{Duration, Instant};

use crate::support::{on_every_link, pattern, together};
use privet_channel::{AbortReason, Cost, Error, Io, Misuse, PeerMisbehaved};

const SHORT: Duration = Duration::from_millis(200);

#[test]
fn messages_of_every_size_arrive_whole_and_in_order() {
    let sizes = [0, 1, 4, 5, 6, 1000, 16_379, 16_384, 65_530, 65_531, 65_532, 65_536, 131_072, 300_001, 3 << 20];
    on_every_link(|a, b| {
        together(
            a,
            b,
            |mut a| {
                for (i, size) in sizes.into_iter().chain(sizes).enumerate() {
                    a.send(&pattern(size, i as u8)).expect("sent");
                }
                a.flush().expect("flushed");
            },
            |mut b| {
                for (i, size) in sizes.into_iter().enumerate() {
                    assert!(b.recv(size).expect("received") == pattern(size, i as u8));
                }
                for (i, size) in sizes.into_iter().enumerate() {
                    let message = if size % 2 == 0 {
                        let mut message = vec![0; size];
                        b.recv_into(&mut message).expect("received");
                        message
                    } else {
                        b.recv_at_most(1 << 30).expect("received")
                    };
                    assert!(message == pattern(size, (i + sizes.len()) as u8));
                }
            },
        );
    });
}

#[test]
fn a_message_of_parts_is_the_message_of_all_of_them() {
    for lengths in [vec![], vec![0, 3], vec![70_000, 0, 70_000], vec![1, 200_000, 2]] {
        let parts: Vec<Vec<u8>> = lengths.iter().enumerate().map(|(i, &length)| vec![i as u8; length]).collect();
        let (mut one, mut other) = privet_channel::pair();
        one.send_parts(&parts).unwrap();
        one.flush().unwrap();
        let whole = parts.concat();
        assert_eq!(other.recv(whole.len()).unwrap(), whole);
        one.send(&whole).unwrap();
        assert_eq!((one.cost().bytes_sent, one.cost().messages_sent), (2 * (5 + whole.len() as u64), 2));
    }
}

#[test]
fn a_dropped_channel_still_delivers_what_was_sent() {
    on_every_link(|mut a, mut b| {
        a.send(b"last words").expect("sent");
        drop(a);
        assert_eq!(b.recv(10), Ok(b"last words".to_vec()));
        assert_eq!(b.recv(1), Err(Io::Disconnected.into()));
    });
}

#[test]
fn both_sides_may_exchange_64_megabytes_at_once() {
    const BYTES: usize = 64 << 20;
    on_every_link(|a, b| {
        let (from_b, from_a) = together(
            a,
            b,
            |mut a| a.exchange(&pattern(BYTES, 1)).expect("exchanged"),
            |mut b| b.exchange(&pattern(BYTES, 2)).expect("exchanged"),
        );
        assert!(from_a == pattern(BYTES, 1));
        assert!(from_b == pattern(BYTES, 2));
    });
}

#[test]
fn both_sides_may_send_many_messages_before_either_receives() {
    let each_way = |mut channel: privet_channel::Channel, mine: u8, theirs: u8| {
        for i in 0..40 {
            channel.send(&pattern(500_000 + i, mine)).expect("sent");
        }
        channel.flush().expect("flushed");
        for i in 0..40 {
            assert!(channel.recv(500_000 + i).expect("received") == pattern(500_000 + i, theirs));
        }
    };
    on_every_link(|a, b| {
        together(a, b, |a| each_way(a, 3, 4), |b| each_way(b, 4, 3));
    });
}

#[test]
fn cost_counts_payloads_headers_and_turns() {
    on_every_link(|a, b| {
        let (a, b) = together(
            a,
            b,
            |mut a| {
                a.send(&[0; 10]).expect("sent");
                a.send(&[0; 20]).expect("sent");
                a.recv(7).expect("received");
                a.recv(8).expect("received");
                let before = a.cost();
                a.exchange(&[1; 100_000]).expect("exchanged");
                let exchange = Cost {
                    bytes_sent: 100_005,
                    bytes_received: 100_005,
                    messages_sent: 1,
                    messages_received: 1,
                    rounds: 1,
                };
                assert_eq!(a.cost() - before, exchange);
                assert_eq!(before + exchange, a.cost());
                a.cost()
            },
            |mut b| {
                b.recv(10).expect("received");
                b.recv(20).expect("received");
                b.send(&[0; 7]).expect("sent");
                b.send(&[0; 8]).expect("sent");
                b.exchange(&[1; 100_000]).expect("exchanged");
                b.cost()
            },
        );
        let expected = Cost {
            bytes_sent: 15 + 25 + 100_005,
            bytes_received: 12 + 13 + 100_005,
            messages_sent: 3,
            messages_received: 3,
            rounds: 2,
        };
        assert_eq!(a, expected);
        assert_eq!((b.bytes_sent, b.bytes_received), (expected.bytes_received, expected.bytes_sent));
        assert_eq!((b.messages_sent, b.messages_received, b.rounds), (3, 3, 2));
    });
}

#[test]
fn a_message_of_another_length_is_refused_and_the_channel_stays_refused() {
    for (sent, expected) in [(11, 10), (9, 10), (0, 1), (1, 0)] {
        on_every_link(|mut a, mut b| {
            a.send(&vec![0; sent]).expect("sent");
            a.send(&[0; 10]).expect("sent");
            a.flush().expect("flushed");
            let error = Error::from(PeerMisbehaved::WrongLength { expected, actual: sent });
            assert_eq!(b.recv(expected), Err(error.clone()));
            assert_eq!(b.recv(10), Err(error.clone()));
            assert_eq!(b.send(&[1]), Err(error));
            assert_eq!(b.cost().messages_received, 0);
            // An abort waits for the peer to take notice.
            let (heard, ()) = together(a, b, |mut a| a.recv(1), |mut b| b.abort(AbortReason::Misbehaved));
            let aborted = PeerMisbehaved::Aborted { reason: AbortReason::Misbehaved, text: String::new() };
            assert_eq!(heard, Err(aborted.into()));
        });
    }
}

#[test]
fn a_control_message_above_its_limit_is_refused() {
    on_every_link(|mut a, mut b| {
        a.send(&[7; 100]).expect("sent");
        a.send(&[8; 101]).expect("sent");
        a.flush().expect("flushed");
        assert_eq!(b.recv_at_most(100), Ok(vec![7; 100]));
        assert_eq!(b.recv_at_most(100), Err(PeerMisbehaved::TooLong { limit: 100, actual: 101 }.into()));
    });
}

#[test]
fn an_abort_reaches_the_peer_after_what_was_sent_before() {
    on_every_link(|a, b| {
        let (closed, ()) = together(
            a,
            b,
            |mut a| {
                a.send(b"before").expect("sent");
                a.abort_with(AbortReason::StaleSession, "session 12 ended at the restart");
                [a.send(b"after"), a.recv(1).map(drop), a.flush()]
            },
            |mut b| {
                assert_eq!(b.recv(6), Ok(b"before".to_vec()));
                let text = "session 12 ended at the restart".to_owned();
                let aborted = Error::from(PeerMisbehaved::Aborted { reason: AbortReason::StaleSession, text });
                assert_eq!(b.recv(6), Err(aborted.clone()));
                assert_eq!(b.flush(), Err(aborted));
            },
        );
        assert_eq!(closed, [(); 3].map(|()| Err(Misuse::Closed.into())));
    });
}

#[test]
fn an_abort_is_found_by_a_peer_that_is_still_sending() {
    on_every_link(|a, b| {
        let (error, ()) = together(
            a,
            b,
            |mut a| {
                // Sending may fail or not, by how much the link holds; the reason must be found either way.
                let sent = (0..64).try_for_each(|_| a.send(&[5; 1 << 20]));
                sent.and_then(|()| a.recv(9)).and_then(|_| a.recv(1)).expect_err("the peer aborts")
            },
            |mut b| {
                b.recv(1 << 20).expect("the first message");
                b.send(b"on my way").expect("sent");
                b.abort(AbortReason::BadRequest);
            },
        );
        assert_eq!(error, PeerMisbehaved::Aborted { reason: AbortReason::BadRequest, text: String::new() }.into());
    });
}

#[test]
fn a_peer_that_leaves_is_noticed_by_a_receiver_and_by_a_sender() {
    on_every_link(|mut a, b| {
        drop(b);
        assert_eq!(a.recv(1), Err(Io::Disconnected.into()));
    });
    on_every_link(|mut a, b| {
        drop(b);
        let error = (0..1000).find_map(|_| a.send(&[0; 1 << 17]).err());
        assert_eq!(error, Some(Io::Disconnected.into()));
    });
}

#[test]
fn a_silent_peer_is_given_up_in_time() {
    on_every_link(|mut a, b| {
        a.set_timeout(SHORT);
        let start = Instant::now();
        let error = a.recv(1).expect_err("nobody speaks");
        assert!(start.elapsed() >= SHORT && start.elapsed() < 50 * SHORT, "{:?}", start.elapsed());
        assert!(
            matches!(error, Error::Io(Io::TimedOut { seconds, .. }) if (0.2..10.0).contains(&seconds)),
            "{error:?}"
        );
        assert_eq!(a.recv(1), Err(error));
        drop(b);
    });
}

#[test]
fn a_peer_that_stops_within_a_message_is_given_up_in_time() {
    on_every_link(|mut a, mut b| {
        a.set_timeout(SHORT);
        b.send(&[0; 10]).expect("sent");
        b.flush().expect("flushed");
        assert_eq!(a.recv(10), Ok(vec![0; 10]));
        let start = Instant::now();
        assert!(matches!(a.recv(10), Err(Error::Io(Io::TimedOut { .. }))));
        assert!(start.elapsed() < 50 * SHORT);
        drop(b);
    });
}

#[test]
fn a_peer_that_takes_nothing_is_given_up_in_time() {
    let (mut a, b) = crate::support::tls_pair();
    a.set_timeout(SHORT);
    let start = Instant::now();
    let error = (0..1000).find_map(|_| a.send(&[0; 1 << 20]).err()).expect("the network holds less than 1 GB");
    assert!(matches!(error, Error::Io(Io::TimedOut { .. })), "{error:?}");
    assert!(start.elapsed() < 100 * SHORT, "{:?}", start.elapsed());
    drop(b);
}

#[test]
fn a_message_is_too_long_by_the_sum_of_its_parts() {
    let (mut a, mut b) = privet_channel::pair();
    let part = vec![0; 1 << 20];
    let before = a.cost();
    let error = a.send_parts(&vec![&part; 1 << 12]).expect_err("4 GiB");
    assert_eq!(error, Misuse::MessageTooLong { bytes: 1 << 32, limit: u32::MAX as usize }.into());
    assert_eq!(a.cost(), before);
    a.send_parts(&[&part[..1], &[], &part[..2]]).and_then(|()| a.flush()).expect("the channel goes on");
    assert_eq!(b.recv(3).expect("a message"), [0; 3]);
}

#[test]
fn errors_say_what_to_do() {
    let wrong = Error::from(PeerMisbehaved::WrongLength { expected: 8, actual: 9 }).to_string();
    assert!(wrong.contains("8 bytes was due") && wrong.contains("same version"), "{wrong}");
    let aborted = PeerMisbehaved::Aborted { reason: AbortReason::MaterialUnavailable, text: "try at noon".to_owned() };
    let aborted = Error::from(aborted).to_string();
    assert!(aborted.contains("no preprocessed material is left: \"try at noon\""), "{aborted}");
    let timed_out = Error::from(Io::TimedOut { seconds: 2.5, waiting_for: "a message from the peer" }).to_string();
    assert!(timed_out.contains("waited 2.50 s for a message"), "{timed_out}");
}
