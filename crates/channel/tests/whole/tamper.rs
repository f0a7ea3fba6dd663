//! A peer that sends malformed or wrong frames gets a typed error, and no allocation by a length it made up.

use std::time::Duration;

use privet_channel::tamper::{self, Action};
use privet_channel::{AbortReason, Channel, Error, Io, PeerMisbehaved};

/// The first party sends these; the second one is tampered with.
const MESSAGES: [&[u8]; 4] = [b"first", b"other", b"third", b"fourth"];

/// Sends the messages with the second tampered with; returns the receiver, which has had the first.
fn receiver(action: Action) -> Channel {
    let (mut sender, mut receiver, witness) = tamper::pair(1, action);
    for message in MESSAGES {
        // A closed link fails the later ones.
        let _ = sender.send(message);
    }
    let _ = sender.flush();
    assert!(witness.happened());
    receiver.set_timeout(Duration::from_millis(100));
    assert_eq!(receiver.recv(5), Ok(MESSAGES[0].to_vec()));
    receiver
}

fn wrong_length(expected: usize, actual: usize) -> Error {
    PeerMisbehaved::WrongLength { expected, actual }.into()
}

#[test]
fn lengths_that_differ_are_refused() {
    assert_eq!(receiver(Action::Shorten { by: 1 }).recv(5), Err(wrong_length(5, 4)));
    assert_eq!(receiver(Action::Shorten { by: 9 }).recv(5), Err(wrong_length(5, 0)));
    assert_eq!(receiver(Action::Lengthen { by: 1 }).recv(5), Err(wrong_length(5, 6)));
}

#[test]
fn a_frame_cut_anywhere_is_a_disconnection() {
    for keep in 0..10 {
        assert_eq!(receiver(Action::Cut { keep }).recv(5), Err(Io::Disconnected.into()), "{keep}");
    }
    assert_eq!(receiver(Action::Close).recv(5), Err(Io::Disconnected.into()));
}

#[test]
fn altered_payloads_arrive_altered() {
    assert_eq!(receiver(Action::FlipBit { bit: 40 + 3 }).recv(5), Ok(b"gther".to_vec()));
    assert_eq!(receiver(Action::Zero).recv(5), Ok(vec![0; 5]));
    let random = receiver(Action::Randomise { seed: 1 }).recv(5).expect("random bytes");
    assert_ne!(random, MESSAGES[1]);
    assert_eq!(receiver(Action::Randomise { seed: 1 }).recv(5), Ok(random));
}

#[test]
fn messages_out_of_place_arrive_out_of_place() {
    let mut repeated = receiver(Action::Repeat);
    assert_eq!([(); 3].map(|()| repeated.recv(5)), [MESSAGES[1], MESSAGES[1], MESSAGES[2]].map(|m| Ok(m.to_vec())));
    let mut replayed = receiver(Action::ReplayPrevious);
    assert_eq!([(); 2].map(|()| replayed.recv(5)), [MESSAGES[0], MESSAGES[2]].map(|m| Ok(m.to_vec())));
    let mut swapped = receiver(Action::SwapWithNext);
    assert_eq!([(); 2].map(|()| swapped.recv(5)), [MESSAGES[2], MESSAGES[1]].map(|m| Ok(m.to_vec())));
    assert_eq!(swapped.recv(6), Ok(MESSAGES[3].to_vec()));
    let mut dropped = receiver(Action::Drop);
    assert_eq!(dropped.recv(5), Ok(MESSAGES[2].to_vec()));
    assert_eq!(dropped.recv(6), Ok(MESSAGES[3].to_vec()));
}

#[test]
fn a_message_that_never_comes_is_a_time_out() {
    let (mut sender, mut receiver, witness) = tamper::pair(0, Action::Drop);
    sender.send(b"lost").expect("sent");
    sender.flush().expect("flushed");
    assert!(witness.happened());
    receiver.set_timeout(Duration::from_millis(50));
    assert!(matches!(receiver.recv(4), Err(Error::Io(Io::TimedOut { .. }))));
}

#[test]
fn frames_of_unknown_kind_are_refused() {
    for kind in [0, 3, 0x15, 0xff] {
        let frame = Action::Replace(vec![kind, 5, 0, 0, 0, 1, 2, 3, 4, 5]);
        assert_eq!(receiver(frame).recv(5), Err(PeerMisbehaved::UnknownFrame { kind }.into()));
    }
}

#[test]
fn a_huge_announced_length_is_refused_before_anything_is_allocated() {
    let huge = || receiver(Action::Replace(vec![1, 0xff, 0xff, 0xff, 0xff]));
    assert_eq!(huge().recv(5), Err(wrong_length(5, u32::MAX as usize)));
    let too_long = PeerMisbehaved::TooLong { limit: 1000, actual: u32::MAX as usize };
    assert_eq!(huge().recv_at_most(1000), Err(too_long.into()));
}

#[test]
fn aborts_are_read_whatever_they_hold() {
    let aborted = |reason, text: &str| Error::from(PeerMisbehaved::Aborted { reason, text: text.to_owned() });
    let unknown = Action::Replace(vec![2, 1, 0, 0, 0, 99]);
    assert_eq!(receiver(unknown).recv(5), Err(aborted(AbortReason::Other(99), "")));
    let coloured = Action::Replace(b"\x02\x07\0\0\0\x06\x1b[31m!".to_vec());
    assert_eq!(receiver(coloured).recv(5), Err(aborted(AbortReason::Internal, "[31m!")));
    let empty = Action::Replace(vec![2, 0, 0, 0, 0]);
    assert_eq!(receiver(empty).recv(5), Err(PeerMisbehaved::MalformedAbort { length: 0 }.into()));
    let huge = Action::Replace(vec![2, 0xff, 0xff, 0xff, 0x7f]);
    assert_eq!(receiver(huge).recv(5), Err(PeerMisbehaved::MalformedAbort { length: 0x7fff_ffff }.into()));
}

#[test]
fn a_witness_denies_what_did_not_happen() {
    let (mut sender, mut receiver, witness) = tamper::pair(3, Action::Zero);
    for message in &MESSAGES[..3] {
        sender.send(message).expect("sent");
        sender.flush().expect("flushed");
        assert_eq!(receiver.recv(message.len()), Ok(message.to_vec()));
    }
    assert!(!witness.happened());
    let (mut sender, _receiver, witness) = tamper::pair(0, Action::Zero);
    sender.send(&[0; 8]).expect("sent");
    sender.flush().expect("flushed");
    assert!(!witness.happened(), "zeros in place of zeros change nothing");
}
