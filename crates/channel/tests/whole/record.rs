//! A recorded link behaves like any other and writes down exactly what passes.

use privet_channel::AbortReason;
use privet_channel::record::{self, Direction, Message};

#[test]
fn a_transcript_holds_every_message_of_both_sides() {
    let (mut first, mut second, transcript) = record::pair();
    first.send(b"to second").expect("sent");
    first.send(&[9; 200_000]).expect("sent");
    first.flush().expect("flushed");
    second.recv(9).expect("received");
    second.recv(200_000).expect("received");
    second.send(b"").expect("sent");
    second.send(b"to first").expect("sent");
    second.flush().expect("flushed");
    first.recv(0).expect("received");
    first.recv(8).expect("received");
    second.abort(AbortReason::ShuttingDown);

    let transcript = transcript.lock().expect("nobody panicked");
    let sent = |payload: &[u8]| Message { direction: Direction::FirstToSecond, payload: payload.to_vec() };
    let returned = |payload: &[u8]| Message { direction: Direction::SecondToFirst, payload: payload.to_vec() };
    assert_eq!(transcript.messages, [sent(b"to second"), sent(&[9; 200_000]), returned(b""), returned(b"to first")]);
    assert_eq!(transcript.bytes(Direction::SecondToFirst), b"to first");
    assert_eq!(transcript.payloads(Direction::FirstToSecond).count(), 2);
}
