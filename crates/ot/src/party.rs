//! A party of the two, ready to extend in both directions.

use privet_channel::Channel;
use privet_prg::Prg;
use zeroize::Zeroizing;

use crate::correlated::{CotReceiver, CotSender};
use crate::random::{self, BitsReceived, BitsSent, WordsReceived, WordsSent};
use crate::softspoken::{FieldBits, SoftSpokenReceiver, SoftSpokenSender};
use crate::{Error, Role, base, tree};

/// Version of the setup; both parties must speak the same.
const VERSION: u8 = 1;

/// Bytes of either party's first message: version, role, field, the sender's point, the receiver's points.
pub(crate) const FIRST_BYTES: usize = 3 + base::POINT_BYTES + base::RECEIVER_BYTES;

/// One party with an OT extension in each direction. Every OT it makes has its own index, so none is ever made twice.
pub struct OtParty {
    role: Role,
    sender: Box<dyn CotSender>,
    receiver: Box<dyn CotReceiver>,
    sent: u64,
    received: u64,
}

impl OtParty {
    /// Base OTs in both directions, then SoftSpokenOT seeds from them: two exchanges ([`crate::cost::setup`]). The peer
    /// must call it with the other role and the same field.
    ///
    /// # Errors
    /// [`Error::PeerMisbehaved`] if the peer has another version, the same role or another field, or sent bytes that
    /// are no points; [`Error::Channel`] if the link fails; [`Error::Io`] without entropy.
    pub fn setup(channel: &mut Channel, role: Role, field: FieldBits) -> Result<Self, Error> {
        let mut prg = Prg::from_os()?;
        let delta = Zeroizing::new(prg.block());
        let sender = base::Sender::new(role, &mut prg);
        let receiver = base::Receiver::new(role.peer(), *delta, &mut prg);

        let mut message = vec![VERSION, role.code(), field.k() as u8];
        message.extend_from_slice(sender.message());
        message.extend_from_slice(receiver.message());
        let theirs = channel.exchange(&message)?;
        let (point, points) = parse_first(&theirs, role, field)?;
        let both_keys = sender.keys(points)?;
        let chosen_keys = receiver.keys(point)?;

        let (seeds, message) = tree::plant(field.k(), &both_keys, &mut prg);
        let theirs = channel.exchange(&message)?;
        let known = tree::grow(field.k(), *delta, &chosen_keys, &theirs);
        let sender = SoftSpokenSender::new(field, *delta, &known);
        let receiver = SoftSpokenReceiver::new(field, &seeds);
        Ok(Self::new(role, Box::new(sender), Box::new(receiver)))
    }

    /// A party over any two extensions that match the peer's.
    pub fn new(role: Role, sender: Box<dyn CotSender>, receiver: Box<dyn CotReceiver>) -> Self {
        Self { role, sender, receiver, sent: 0, received: 0 }
    }

    /// Which party this is.
    pub fn role(&self) -> Role {
        self.role
    }

    /// `count` random bit OTs as sender; the peer must call [`Self::receive_bits`]. Receives one message.
    ///
    /// # Errors
    /// Those of [`CotSender::extend`].
    pub fn send_bits(&mut self, channel: &mut Channel, count: usize) -> Result<BitsSent, Error> {
        let q = self.sender.extend(channel, count)?;
        let first = advance(&mut self.sent, count);
        Ok(random::both_bits(q, self.sender.delta(), first))
    }

    /// `count` random bit OTs as receiver; the peer must call [`Self::send_bits`]. Sends one message.
    ///
    /// # Errors
    /// Those of [`CotReceiver::extend`].
    pub fn receive_bits(&mut self, channel: &mut Channel, count: usize) -> Result<BitsReceived, Error> {
        let (choice, t) = self.receiver.extend(channel, count)?;
        let first = advance(&mut self.received, count);
        Ok(BitsReceived { choice, received: random::bits(t, first) })
    }

    /// `count` random word OTs as sender; the peer must call [`Self::receive_words`]. Receives one message.
    ///
    /// # Errors
    /// Those of [`CotSender::extend`].
    pub fn send_words(&mut self, channel: &mut Channel, count: usize) -> Result<WordsSent, Error> {
        let q = self.sender.extend(channel, count)?;
        let first = advance(&mut self.sent, count);
        Ok(random::both_words(q, self.sender.delta(), first))
    }

    /// `count` random word OTs as receiver; the peer must call [`Self::send_words`]. Sends one message.
    ///
    /// # Errors
    /// Those of [`CotReceiver::extend`].
    pub fn receive_words(&mut self, channel: &mut Channel, count: usize) -> Result<WordsReceived, Error> {
        let (choice, t) = self.receiver.extend(channel, count)?;
        let first = advance(&mut self.received, count);
        Ok(WordsReceived { choice, received: random::words(t, first) })
    }
}

/// The index of the first of `count` OTs.
fn advance(next: &mut u64, count: usize) -> u64 {
    let first = *next;
    *next += count as u64;
    first
}

/// The peer's points as sender and as receiver of base OTs.
fn parse_first(message: &[u8], role: Role, field: FieldBits) -> Result<(&[u8; base::POINT_BYTES], &[u8]), Error> {
    let short = Error::PeerMisbehaved { what: "its first message is too short" };
    let Some((&[version, peer, k], rest)) = message.split_first_chunk() else { return Err(short) };
    let Some((point, points)) = rest.split_first_chunk() else { return Err(short) };
    if version != VERSION {
        return Err(Error::PeerMisbehaved { what: "it speaks another version of the oblivious transfer" });
    }
    if Role::from_code(peer) != Some(role.peer()) {
        return Err(Error::PeerMisbehaved { what: "it takes the same role as this party" });
    }
    if usize::from(k) != field.k() {
        return Err(Error::PeerMisbehaved {
            what: "it uses another field of SoftSpokenOT; both sides must set the same",
        });
    }
    Ok((point, points))
}

#[cfg(test)]
mod tests {
    use privet_channel::pair;

    use super::*;

    #[test]
    fn every_bit_of_delta_takes_both_values() -> Result<(), Error> {
        let (mut ones, mut zeros) = (0, 0);
        // 40 uniform blocks: a bit stays the same in all of them with probability 2^-39.
        for _ in 0..20 {
            let (mut client, mut server) = pair();
            let (client, server) = std::thread::scope(|scope| {
                let client = scope.spawn(move || OtParty::setup(&mut client, Role::Client, FieldBits::Four));
                let server = OtParty::setup(&mut server, Role::Server, FieldBits::Four);
                (client.join().expect("the client's thread"), server)
            });
            for delta in [client?.sender.delta(), server?.sender.delta()] {
                ones |= delta;
                zeros |= !delta;
            }
        }
        assert_eq!((ones, zeros), (u128::MAX, u128::MAX));
        Ok(())
    }
}
