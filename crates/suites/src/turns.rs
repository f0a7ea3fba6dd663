//! How often the parties turn to waiting during the online phase, as [`privet_channel::Cost`] counts rounds.
//!
//! Flights that go the same way join: an opening to the server travels with the client's half of the next exchange. So
//! the rounds of a program are fewer than the sum over its steps, and follow from the order of the steps alone.

/// One party.
struct Side {
    rounds: u64,
    /// Whether it has sent since it last received, so that its next receive starts a round.
    turned: bool,
}

impl Side {
    fn receives(&mut self) {
        self.rounds += u64::from(self.turned);
        self.turned = false;
    }
}

/// Both parties. A session starts an inference with the server's consent, so the server has sent last.
pub(crate) struct Turns {
    client: Side,
    server: Side,
}

impl Turns {
    pub(crate) fn new() -> Self {
        Self { client: Side { rounds: 0, turned: false }, server: Side { rounds: 0, turned: true } }
    }

    /// Both send, then both receive, `count` times.
    pub(crate) fn exchange(&mut self, count: u64) {
        for side in [&mut self.client, &mut self.server] {
            side.rounds += count;
            side.turned &= count == 0;
        }
    }

    /// A message from the client.
    pub(crate) fn client_sends(&mut self) {
        self.client.turned = true;
        self.server.receives();
    }

    /// A message from the server.
    pub(crate) fn server_sends(&mut self) {
        self.server.turned = true;
        self.client.receives();
    }

    /// Rounds of the client.
    pub(crate) fn client_rounds(&self) -> u64 {
        self.client.rounds
    }

    /// Rounds of the party that counts more.
    pub(crate) fn rounds(&self) -> u64 {
        self.client.rounds.max(self.server.rounds)
    }
}
