//! Every message of a run, in both directions, altered in every way: the client never has an output.

use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use privet_channel::Channel;
use privet_channel::record::{self, Direction};
use privet_channel::tamper::{self, Action};

use crate::network::{Network, expected};

/// How long the parties wait for a message that was dropped.
const WAIT: Duration = Duration::from_millis(300);

/// Runs at the same time; some of them wait.
const WORKERS: usize = 8;

/// Bytes of each message of an honest run that a side sends: the client's, then the server's.
fn lengths(network: &Network, run: Run) -> [Vec<usize>; 2] {
    let (client, server, transcript) = record::pair();
    let [client, _] = run(network, [client, server]);
    assert_eq!(client.expect("an honest run"), Some(expected()));
    let transcript = transcript.lock().expect("no thread panicked");
    [Direction::FirstToSecond, Direction::SecondToFirst]
        .map(|sender| transcript.payloads(sender).map(<[u8]>::len).collect())
}

type Run = fn(&Network, [Channel; 2]) -> [Result<Option<Vec<u64>>, privet_shark::Error>; 2];

/// One alteration of a run.
struct Alteration {
    by_client: bool,
    message: usize,
    action: Action,
}

impl Alteration {
    /// The client's output, if there is one in spite of it. `None` as well if nothing was altered.
    fn output(&self, network: &Network, run: Run) -> Option<Vec<u64>> {
        let (mut first, mut second, witness) = tamper::pair(self.message, self.action.clone());
        [&mut first, &mut second].into_iter().for_each(|channel| channel.set_timeout(WAIT));
        let channels = if self.by_client { [first, second] } else { [second, first] };
        let [client, _] = run(network, channels);
        client.ok().flatten().filter(|_| witness.happened())
    }
}

/// All outputs that there are in spite of alterations, with the message.
fn outputs(network: &Network, run: Run, alterations: Vec<Alteration>) -> Vec<(bool, usize, Action, Vec<u64>)> {
    let (left, outputs) = (Mutex::new(alterations), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                loop {
                    let Some(next) = left.lock().expect("no thread panicked").pop() else { break };
                    if let Some(output) = next.output(network, run) {
                        let Alteration { by_client, message, action } = next;
                        outputs.lock().expect("no thread panicked").push((by_client, message, action, output));
                    }
                }
            });
        }
    });
    outputs.into_inner().expect("no thread panicked")
}

/// Every single bit of every message.
fn flips(lengths: &[Vec<usize>; 2]) -> Vec<Alteration> {
    let mut alterations = Vec::new();
    for (side, lengths) in lengths.iter().enumerate() {
        for (message, bytes) in lengths.iter().enumerate() {
            let flip = |bit| Alteration { by_client: side == 0, message, action: Action::FlipBit { bit } };
            alterations.extend((0..8 * bytes).map(flip));
        }
    }
    alterations
}

#[test]
fn no_bit_of_any_message_can_be_flipped() {
    let network = Network::new();
    let lengths = lengths(&network, Network::run);
    // The input, five openings of values, two of bits, two checks; the server sends no input.
    assert_eq!(lengths.each_ref().map(Vec::len), [11, 10]);
    let survivors = outputs(&network, Network::run, flips(&lengths));
    assert!(survivors.is_empty(), "{survivors:?}");
}

#[test]
fn no_message_can_be_altered() {
    let network = Network::new();
    let lengths = lengths(&network, Network::run);
    let actions = [
        Action::Shorten { by: 1 },
        Action::Shorten { by: usize::MAX },
        Action::Lengthen { by: 1 },
        Action::Cut { keep: 6 },
        Action::Randomise { seed: 1 },
        Action::Zero,
        Action::ReplayPrevious,
        Action::Repeat,
        Action::SwapWithNext,
        Action::Drop,
        Action::Close,
        Action::Replace(b"\x02\x06\0\0\0\x06never".to_vec()),
    ];
    let mut alterations = Vec::new();
    for (side, lengths) in lengths.iter().enumerate() {
        for message in 0..lengths.len() {
            for action in &actions {
                // Nobody reads what comes after the last message.
                if message + 1 < lengths.len() || *action != Action::Repeat {
                    alterations.push(Alteration { by_client: side == 0, message, action: action.clone() });
                }
            }
        }
    }
    let survivors = outputs(&network, Network::run, alterations);
    assert!(survivors.is_empty(), "{survivors:?}");
}

#[test]
fn without_checks_messages_decide_the_output() {
    let network = Network::new();
    let lengths = lengths(&network, Network::run_unchecked);
    let wrong = outputs(&network, Network::run_unchecked, flips(&lengths));
    let expected = expected();
    for (side, lengths) in lengths.iter().enumerate() {
        for message in 0..lengths.len() {
            // Only the server's share decides what the client opens last; and the client's shares of weights are zero, so
            // that what it opens for the last layer goes into codes alone.
            let is_indifferent = [(0, lengths.len() - 1), (1, 4)].contains(&(side, message));
            let is_decisive = |(by_client, at, _, output): &&(bool, usize, Action, Vec<u64>)| {
                (*by_client, *at) == (side == 0, message) && *output != expected
            };
            assert_eq!(wrong.iter().any(|run| is_decisive(&run)), !is_indifferent, "side {side}, message {message}");
        }
    }
}
