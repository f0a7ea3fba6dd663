//! What a conversation has cost so far, as the two parties count it.

use std::ops::{Add, AddAssign, Sub};

/// Bytes, messages and rounds of one side of a channel.
///
/// A message of `n` bytes counts as `n + 5` bytes (its frame header included); TLS records and TCP headers are not
/// counted, so the figures are the same over memory and over TLS. Abort frames are not counted.
///
/// A round is counted each time this party turns to receiving: at its first receive, and at every receive that comes
/// after at least one send since the previous receive, but for messages that travel beside another
/// ([`Channel::recv_beside`](crate::Channel::recv_beside)). An exchange is one round on both sides.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Cost {
    /// Bytes sent, frame headers included.
    pub bytes_sent: u64,
    /// Bytes received, frame headers included.
    pub bytes_received: u64,
    /// Messages sent.
    pub messages_sent: u64,
    /// Messages received.
    pub messages_received: u64,
    /// Times this party turned from sending to receiving.
    pub rounds: u64,
}

impl Add for Cost {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            bytes_sent: self.bytes_sent + other.bytes_sent,
            bytes_received: self.bytes_received + other.bytes_received,
            messages_sent: self.messages_sent + other.messages_sent,
            messages_received: self.messages_received + other.messages_received,
            rounds: self.rounds + other.rounds,
        }
    }
}

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Cost {
    type Output = Self;

    /// The cost between two readings of the same channel: `later - earlier`. A field that would be negative is zero.
    fn sub(self, earlier: Self) -> Self {
        Self {
            bytes_sent: self.bytes_sent.saturating_sub(earlier.bytes_sent),
            bytes_received: self.bytes_received.saturating_sub(earlier.bytes_received),
            messages_sent: self.messages_sent.saturating_sub(earlier.messages_sent),
            messages_received: self.messages_received.saturating_sub(earlier.messages_received),
            rounds: self.rounds.saturating_sub(earlier.rounds),
        }
    }
}
