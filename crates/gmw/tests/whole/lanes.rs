//! A party whose messages of comparisons in lanes are others than are due.

use std::sync::Mutex;
use std::time::Duration;

use crate::pair::{part, prg, run_over, share};
use privet_channel::tamper::{self, Action};
use privet_channel::{Error as LinkError, Io, PeerMisbehaved};
use privet_gmw::{Error, Rounds, cost};
use privet_ot::Role;
use privet_ring::Modulus;

/// No two lanes of a half have one length.
const N: usize = 32_880;

/// What a server comes to whose client's `message`-th message is not sent as it is.
fn error(message: usize, action: Action, timeout: Duration) -> Option<LinkError> {
    let (ring, rounds, prg) = (Modulus::new(18), Rounds::Blocks, &mut prg(8));
    let (x, error) = (share(&vec![-3; N], ring, prg), Mutex::new(None));
    let (mut client, mut server, _) = tamper::pair(message, action);
    [&mut client, &mut server].into_iter().for_each(|channel| channel.set_timeout(timeout));
    let demand = cost::relu(N, ring.bits(), rounds).demand;
    // One of the two fails, or the server alone, which is asked for its error.
    let _ = run_over((client, server), &demand, rounds, prg, &|party| {
        let result = privet_gmw::relu(party, part(&x, party), ring);
        if let (Role::Server, Err(Error::Channel(link))) = (party.role, &result) {
            *error.lock().expect("no panic") = Some(link.clone());
        }
        result
    });
    error.into_inner().expect("no panic")
}

#[test]
fn a_lane_that_is_not_due_is_refused() {
    let messages = 2 * cost::relu(N, 18, Rounds::Blocks).rounds as usize;
    for message in 0..messages {
        for action in [Action::Shorten { by: 1 }, Action::Lengthen { by: 1 }, Action::ReplayPrevious] {
            let error = error(message, action.clone(), Duration::from_secs(60));
            let is_refused = matches!(error, Some(LinkError::PeerMisbehaved(PeerMisbehaved::WrongLength { .. })));
            assert!(is_refused, "{action:?} of {message}: {error:?}");
        }
        for action in [Action::Cut { keep: 1000 }, Action::Close] {
            let error = error(message, action.clone(), Duration::from_secs(60));
            assert_eq!(error, Some(Io::Disconnected.into()), "{action:?} of {message}");
        }
        // What follows is refused, or nothing does.
        for action in [Action::Drop, Action::SwapWithNext] {
            let error = error(message, action.clone(), Duration::from_millis(500));
            assert!(error.is_some(), "{action:?} of {message}");
        }
    }
    assert_eq!(error(messages, Action::Close, Duration::from_secs(60)), None, "the control: as it is, it is taken");
}
