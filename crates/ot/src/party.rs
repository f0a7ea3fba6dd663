//! A party of the two, ready to extend in both directions.

use privet_channel::{Channel, Link};
use privet_prg::hash::Keys;
use privet_prg::{Prg, Seed};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::correlated::{CotReceiver, CotSender};
use crate::kept::{BaseOts, Keys as BaseKeys, Leaving};
use crate::random::{self, BitsReceived, BitsSent, PairsReceived, PairsSent};
use crate::silent::{SilentReceiver, SilentSender};
use crate::softspoken::{SoftSpokenReceiver, SoftSpokenSender};
use crate::tables::{self, Shape, TablesReceived, TablesSent};
use crate::{Demand, Error, Extension, ProductsReceived, ProductsSent, Role, base, tree};

/// Version of the setup; both parties must speak the same.
const VERSION: u8 = 6;

/// Bytes of either party's first message: version, role, extension, the sender's point, the receiver's points.
pub(crate) const FIRST_BYTES: usize = 3 + base::POINT_BYTES + base::RECEIVER_BYTES;

/// One party with an OT extension in each direction. Every OT or table it makes has its own index, so none is ever made twice.
/// What makes them fails as [`CotSender::extend`] and [`CotReceiver::extend`] do.
pub struct OtParty {
    role: Role,
    sender: Box<dyn CotSender>,
    receiver: Box<dyn CotReceiver>,
    /// The keys that OTs are hashed under, as sender and as receiver.
    keys: [Keys; 2],
    sent: u64,
    received: u64,
}

impl OtParty {
    /// Base OTs in both directions, then SoftSpokenOT seeds from them: two exchanges ([`crate::cost::setup`]). The peer
    /// must call it with the other role and the same extension.
    ///
    /// # Errors
    /// [`Error::PeerMisbehaved`] if the peer has another version, the same role or another extension, or sent bytes that
    /// are no points; [`Error::Channel`] if the link fails; [`Error::Io`] without entropy.
    pub fn setup(channel: &mut Channel, role: Role, extension: impl Into<Extension>) -> Result<Self, Error> {
        Self::setup_from(channel, role, extension, &mut BaseOts::default())
    }

    /// As [`Self::setup`], from what an earlier session left in place of base OTs if `base` has that, which saves the first
    /// exchange. What it leaves itself travels with the seeds.
    ///
    /// # Errors
    /// As [`Self::setup`].
    pub fn setup_from(
        channel: &mut Channel,
        role: Role,
        extension: impl Into<Extension>,
        base: &mut BaseOts,
    ) -> Result<Self, Error> {
        let extension = extension.into();
        let field = extension.field();
        let mut prg = Prg::from_os()?;
        let session_keys = base.keys(role);
        // Without a message of base OTs before, this one says who speaks, and shows that both hold the same keys.
        let opening = session_keys.as_ref().map(|(keys, _)| [&header(role, extension)[..], &keys.tags(role)].concat());
        let (keys, age) = match session_keys {
            Some(session_keys) => session_keys,
            None => (base_ots(channel, role, extension, &mut prg)?, 0),
        };

        let (seeds, trees) = tree::plant(field.k(), &keys.both, &mut prg);
        let mut message = [opening.as_deref().unwrap_or_default(), &trees].concat();
        let mut receiver = SoftSpokenReceiver::new(field, &seeds);
        let leaving = base.leaves().then(|| Leaving::new(&mut receiver));
        let leaving = leaving.map(|(leaving, rest)| {
            message.extend_from_slice(&rest);
            leaving
        });
        let reply = channel.exchange(&message)?;
        let (first, reply) = reply.split_at(opening.map_or(0, |opening| opening.len()));
        if !first.is_empty() {
            keys.check(role, parse_header(first, role, extension)?)?;
        }
        let (trees, rest) = reply.split_at(tree::MESSAGE_BYTES);
        let BaseKeys { chosen, delta, session, .. } = keys;
        let punctured_seeds = tree::grow(field.k(), *delta, &chosen, trees);
        let mut sender = SoftSpokenSender::new(field, *delta, &punctured_seeds);
        if let Some(leaving) = leaving {
            base.leave(leaving.finish(&mut sender, rest, (role, &session, age))?);
        }
        Ok(match extension {
            Extension::SoftSpoken(_) => Self::new(role, &session, Box::new(sender), Box::new(receiver)),
            Extension::Silent(size) => {
                let sender = SilentSender::new(size, sender, prg);
                Self::new(role, &session, Box::new(sender), Box::new(SilentReceiver::new(size, receiver)))
            }
        })
    }

    /// [`Self::setup`] with the extension that suits `demand` and `link`, in which the peer must agree.
    ///
    /// # Errors
    /// Those of [`Self::setup`].
    pub fn for_demand(channel: &mut Channel, role: Role, demand: &Demand, link: &Link) -> Result<Self, Error> {
        Self::setup(channel, role, Extension::for_demand(demand, link))
    }

    /// A party over any two extensions that match the peer's; `session`: what both parties know of this setup and no other has.
    pub fn new(role: Role, session: &[u8; 32], sender: Box<dyn CotSender>, receiver: Box<dyn CotReceiver>) -> Self {
        let keys = [role, role.peer()].map(|sender| {
            let digest = Sha256::new_with_prefix(b"privet ot hash").chain_update([sender.code()]).chain_update(session);
            let seed = *digest.finalize().first_chunk().expect("32 bytes");
            Keys::new(&Seed::from_bytes(seed))
        });
        Self { role, sender, receiver, keys, sent: 0, received: 0 }
    }

    /// Which party this is.
    pub fn role(&self) -> Role {
        self.role
    }

    /// Whether making OTs as sender sends messages, and as receiver receives them, rather than the other way round.
    pub(crate) fn speaks_as_sender(&self) -> bool {
        self.sender.speaks()
    }

    /// Sends what the peer must have before its first OT as sender, if that is still to be sent.
    pub(crate) fn begin(&mut self, channel: &mut Channel) -> Result<(), Error> {
        self.receiver.begin(channel)
    }

    /// `count` random bit OTs as sender; the peer must call [`Self::receive_bits`].
    pub fn send_bits(&mut self, channel: &mut Channel, count: usize) -> Result<BitsSent, Error> {
        let delta = self.sender.delta();
        let q = self.sender.extend(channel, count)?;
        let first = advance(&mut self.sent, count);
        let [[r0], [r1]] = random::both_bits(&self.keys[0], q, delta, first);
        Ok(BitsSent { r0, r1 })
    }

    /// `count` random bit OTs as receiver; the peer must call [`Self::send_bits`].
    pub fn receive_bits(&mut self, channel: &mut Channel, count: usize) -> Result<BitsReceived, Error> {
        let (choice, t) = self.receiver.extend(channel, count)?;
        let first = advance(&mut self.received, count);
        let [received] = random::bits(&self.keys[1], t, 0, first);
        Ok(BitsReceived { choice, received })
    }

    /// `count` random OTs of two bits as sender; the peer must call [`Self::receive_pairs`].
    pub fn send_pairs(&mut self, channel: &mut Channel, count: usize) -> Result<PairsSent, Error> {
        let delta = self.sender.delta();
        let q = self.sender.extend(channel, count)?;
        let first = advance(&mut self.sent, count);
        let [r0, r1] = random::both_bits(&self.keys[0], q, delta, first);
        Ok(PairsSent { r0, r1 })
    }

    /// `count` random OTs of two bits as receiver; the peer must call [`Self::send_pairs`].
    pub fn receive_pairs(&mut self, channel: &mut Channel, count: usize) -> Result<PairsReceived, Error> {
        let (choice, t) = self.receiver.extend(channel, count)?;
        let first = advance(&mut self.received, count);
        Ok(PairsReceived { choice, received: random::bits(&self.keys[1], t, 0, first) })
    }

    /// `count` products of which this party holds the ring element, appended to `out`; the peer must call [`Self::receive_products`].
    pub fn send_products(&mut self, channel: &mut Channel, count: usize, out: &mut ProductsSent) -> Result<(), Error> {
        let delta = self.sender.delta();
        let q = self.sender.extend(channel, count)?;
        let first = advance(&mut self.sent, count);
        random::products_sent(&self.keys[0], q, delta, first, out);
        Ok(())
    }

    /// `count` products of which this party holds the bit, appended to `out`; the peer must call [`Self::send_products`].
    pub fn receive_products(
        &mut self,
        channel: &mut Channel,
        count: usize,
        out: &mut ProductsReceived,
    ) -> Result<(), Error> {
        let (choice, t) = self.receiver.extend(channel, count)?;
        let choice = Zeroizing::new(choice);
        let first = advance(&mut self.received, count);
        random::products_received(&self.keys[1], &choice, t, first, out);
        Ok(())
    }

    /// `count` tables as sender; the peer must call [`Self::receive_tables`].
    pub fn send_tables(&mut self, channel: &mut Channel, shape: Shape, count: usize) -> Result<TablesSent, Error> {
        let delta = self.sender.delta();
        let q = self.sender.extend(channel, count * shape.choice_bits())?;
        let first = advance(&mut self.sent, count);
        Ok(tables::sent(&self.keys[0], shape, q, delta, first))
    }

    /// `count` tables as receiver; the peer must call [`Self::send_tables`].
    pub fn receive_tables(
        &mut self,
        channel: &mut Channel,
        shape: Shape,
        count: usize,
    ) -> Result<TablesReceived, Error> {
        let (choice, t) = self.receiver.extend(channel, count * shape.choice_bits())?;
        let choice = Zeroizing::new(choice);
        let first = advance(&mut self.received, count);
        Ok(tables::received(&self.keys[1], shape, &choice, t, first))
    }
}

/// The index of the first of `count` OTs.
fn advance(counter: &mut u64, count: usize) -> u64 {
    let first = *counter;
    *counter += count as u64;
    first
}

/// Base OTs in both directions, in one exchange.
fn base_ots(channel: &mut Channel, role: Role, extension: Extension, prg: &mut Prg) -> Result<BaseKeys, Error> {
    // The lowest bit of blocks carries the choice bit in silent OT, which takes an odd `delta`.
    let delta = Zeroizing::new(prg.block() | 1);
    let sender = base::Sender::new(role, prg);
    let receiver = base::Receiver::new(role.peer(), *delta, prg);

    let mut message = header(role, extension).to_vec();
    message.extend_from_slice(sender.message());
    message.extend_from_slice(receiver.message());
    let reply = channel.exchange(&message)?;
    let session = session_of(role, [&message, &reply]);
    let points = parse_header(&reply, role, extension)?.split_first_chunk::<{ base::POINT_BYTES }>();
    let (point, points) = points.ok_or(SHORT)?;
    Ok(BaseKeys { both: sender.keys(points)?, chosen: receiver.keys(point)?, delta, session })
}

/// A digest of both parties' first messages.
fn session_of(role: Role, [message, reply]: [&[u8]; 2]) -> [u8; 32] {
    let [client, server] = match role {
        Role::Client => [message, reply],
        Role::Server => [reply, message],
    };
    Sha256::new_with_prefix(b"privet ot session").chain_update(client).chain_update(server).finalize().into()
}

const SHORT: Error = Error::PeerMisbehaved { what: "its first message is too short" };

/// How either party's first message begins.
fn header(role: Role, extension: Extension) -> [u8; 3] {
    [VERSION, role.code(), extension.code()]
}

/// What follows the header of the peer's first message.
fn parse_header(message: &[u8], role: Role, extension: Extension) -> Result<&[u8], Error> {
    let (&[version, peer, code], rest) = message.split_first_chunk().ok_or(SHORT)?;
    if version != VERSION {
        return Err(Error::PeerMisbehaved { what: "it speaks another version of the oblivious transfer" });
    }
    if Role::from_code(peer) != Some(role.peer()) {
        return Err(Error::PeerMisbehaved { what: "it takes the same role as this party" });
    }
    if code != extension.code() {
        return Err(Error::PeerMisbehaved { what: "it uses another OT extension; both sides must set the same" });
    }
    Ok(rest)
}

#[cfg(test)]
mod tests {
    use privet_channel::pair;
    use privet_prg::Block;

    use super::*;
    use crate::{FieldBits, Size};

    #[test]
    fn every_bit_of_delta_takes_both_values() -> Result<(), Error> {
        for extension in [FieldBits::Four.into(), Size::Small.into()] {
            // The lowest bit stays one.
            assert_eq!(bits_of_delta(extension)?, (u128::MAX, u128::MAX - 1));
        }
        Ok(())
    }

    /// The bits that are one in some `delta`, and those that are zero in some.
    fn bits_of_delta(extension: Extension) -> Result<(Block, Block), Error> {
        let (mut ones, mut zeros) = (0, 0);
        // 40 uniform blocks: a bit stays the same in all of them with probability 2^-39.
        for _ in 0..20 {
            let (mut client, mut server) = pair();
            let (client, server) = std::thread::scope(|scope| {
                let client = scope.spawn(move || OtParty::setup(&mut client, Role::Client, extension));
                let server = OtParty::setup(&mut server, Role::Server, extension);
                (client.join().expect("the client's thread"), server)
            });
            for delta in [client?.sender.delta(), server?.sender.delta()] {
                ones |= delta;
                zeros |= !delta;
            }
        }
        Ok((ones, zeros))
    }
}
