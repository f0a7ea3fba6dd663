//! How often the client turns to waiting during a phase, as [`privet_channel::Cost`] counts its rounds.
//!
//! Flights that go the same way join: an opening to the server travels with the client's half of the next exchange. So
//! the rounds of a program are fewer than the sum over its steps, and follow from the order of the steps alone.

/// The client's rounds. A session starts an inference with the server's consent, so the client has received last.
#[derive(Default)]
pub(crate) struct Turns {
    rounds: u64,
    /// Whether the client has sent since it last received, so that its next receive starts a round.
    turned: bool,
}

impl Turns {
    /// Both send, then both receive, `count` times.
    pub(crate) fn exchange(&mut self, count: u64) {
        self.rounds += count;
        self.turned &= count == 0;
    }

    /// A message from the client.
    pub(crate) fn client_sends(&mut self) {
        self.turned = true;
    }

    /// A message from the server.
    pub(crate) fn server_sends(&mut self) {
        self.rounds += u64::from(self.turned);
        self.turned = false;
    }

    /// Rounds up to now.
    pub(crate) fn rounds(&self) -> u64 {
        self.rounds
    }
}
