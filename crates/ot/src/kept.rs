//! Random OTs that one session leaves for the next of the same two parties, in place of base OTs.
//!
//! A session that keeps some extends by 128 OTs in each direction before anything else, in the messages that it sends anyway.
//! Each party puts its half away, and a later session takes it, once: that saves an exchange and the work on the curve.
//!
//! Nothing of the session that left them follows from them: keys are hashes of its blocks, and the next `delta` is made of
//! choices of its own. Nor do two sessions that take the same half, as after both parties went back to copies of their
//! state, have a key in common: the session's name, made of a nonce of each party, goes into all of them.

use privet_prg::Block;
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::base::COUNT;
use crate::correlated::CotSender;
use crate::security::SESSIONS;
use crate::softspoken::{SoftSpokenReceiver, SoftSpokenSender};
use crate::{Error, Role};

/// Bytes of [`Kept::to_bytes`].
const KEPT_BYTES: usize = 2 + 16 * (1 + 3 * COUNT);

/// Bytes of a key's tag: a party that holds another key notices, but for a chance of 2^-16.
const TAG_BYTES: usize = 2;

/// What an extension in each direction grows from.
pub(crate) struct Keys {
    /// Both keys of each OT that this party sends.
    pub both: Zeroizing<Vec<[Block; 2]>>,
    /// The key that each bit of `delta` chose in the OTs that it receives.
    pub chosen: Zeroizing<Vec<Block>>,
    /// Its choices; odd, as silent OT takes it.
    pub delta: Zeroizing<Block>,
    /// What both parties know of this session and no other has.
    pub session: [u8; 32],
}

impl Keys {
    /// Tags of both keys of each OT that this party sends, from which nothing of the keys follows.
    pub(crate) fn tags(&self, role: Role) -> Vec<u8> {
        let keys = self.both.iter().enumerate().flat_map(|(index, keys)| keys.map(|key| (index, key)));
        keys.flat_map(|(index, key)| self.tag(role, index, key)).collect()
    }

    /// Checks that the peer, of whom `tags` are, holds the keys that this party has chosen. Halves of which a bit has
    /// changed on a disk, or that are not of one session, would give wrong OTs without a word, and so would all that
    /// follow them. Fails with [`Error::PeerMisbehaved`] if it does not.
    pub(crate) fn check(&self, role: Role, tags: &[u8]) -> Result<(), Error> {
        let (tags, _) = tags.as_chunks::<TAG_BYTES>();
        let (tags, _) = tags.as_chunks::<2>();
        let mut difference = 0;
        for (index, ([zero, one], &key)) in tags.iter().zip(self.chosen.iter()).enumerate() {
            let is_one = 0_u8.wrapping_sub((*self.delta >> index & 1) as u8);
            for (place, byte) in self.tag(role.peer(), index, key).into_iter().enumerate() {
                difference |= byte ^ zero[place] ^ (is_one & (zero[place] ^ one[place]));
            }
        }
        if difference == 0 && tags.len() == COUNT {
            return Ok(());
        }
        Err(Error::PeerMisbehaved {
            what: "what it kept in place of base OTs is not what this party has; both are gone, prepare again",
        })
    }

    fn tag(&self, sender: Role, index: usize, key: Block) -> [u8; TAG_BYTES] {
        let tag = derive(b"privet ot tag of a key", &self.session, sender, index, key);
        *tag.to_le_bytes().first_chunk().expect("16 bytes")
    }
}

/// A party's half of the random OTs that a session left.
pub struct Kept {
    /// Sessions since there were base OTs.
    age: u16,
    both: Zeroizing<Vec<[Block; 2]>>,
    chosen: Zeroizing<Vec<Block>>,
    delta: Zeroizing<Block>,
}

impl Kept {
    /// The bytes that [`Kept::from_bytes`] reads; secret.
    pub fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        let mut bytes = Zeroizing::new(Vec::with_capacity(KEPT_BYTES));
        bytes.extend_from_slice(&self.age.to_le_bytes());
        let blocks = [&*self.delta].into_iter().chain(self.chosen.iter()).chain(self.both.as_flattened());
        for block in blocks {
            bytes.extend_from_slice(&block.to_le_bytes());
        }
        bytes
    }

    /// What [`Kept::to_bytes`] wrote; `None` if it is something else.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (age, blocks) = bytes.split_first_chunk()?;
        if bytes.len() != KEPT_BYTES {
            return None;
        }
        let (blocks, _) = blocks.as_chunks::<16>();
        let blocks: Zeroizing<Vec<Block>> =
            Zeroizing::new(blocks.iter().map(|bytes| Block::from_le_bytes(*bytes)).collect());
        let (&delta, keys) = blocks.split_first()?;
        let (chosen, both) = keys.split_at(COUNT);
        let (both, _) = both.as_chunks::<2>();
        Some(Self {
            age: u16::from_le_bytes(*age),
            both: Zeroizing::new(both.to_vec()),
            chosen: Zeroizing::new(chosen.to_vec()),
            delta: Zeroizing::new(delta),
        })
    }

    /// The keys of one session.
    fn keys(self, role: Role, name: &[u8; 16]) -> Keys {
        let session: [u8; 32] = Sha256::new_with_prefix(b"privet ot kept session").chain_update(name).finalize().into();
        let key = |sender, index, block| derive(b"privet ot key of a session", &session, sender, index, block);
        let both =
            self.both.iter().enumerate().map(|(index, keys)| keys.map(|block| key(role, index, block))).collect();
        let chosen = self.chosen.iter().enumerate().map(|(index, &block)| key(role.peer(), index, block)).collect();
        Keys { both: Zeroizing::new(both), chosen: Zeroizing::new(chosen), delta: self.delta, session }
    }
}

/// How a setup begins, and what it leaves.
#[derive(Default)]
pub struct BaseOts {
    half: Option<Kept>,
    /// The session's name, if something is to be left.
    session: Option<[u8; 16]>,
    next_half: Option<Kept>,
}

impl BaseOts {
    /// Takes what an earlier session left, or base OTs if that is `None`, and leaves as much. The peer must say the same.
    /// `session`: what both parties know, of which each made a part at random for this session.
    pub fn keeping(half: Option<Kept>, session: [u8; 16]) -> Self {
        Self { half, session: Some(session), next_half: None }
    }

    /// What the setup left for a later one, if it did.
    pub fn take_left(&mut self) -> Option<Kept> {
        self.next_half.take()
    }

    /// The keys of this session and the sessions since there were base OTs, if an earlier one left something.
    pub(crate) fn keys(&mut self, role: Role) -> Option<(Keys, u16)> {
        let (half, name) = (self.half.take()?, self.session.as_ref()?);
        let age = half.age;
        Some((half.keys(role, name), age + 1))
    }

    /// Whether something is to be left.
    pub(crate) fn leaves(&self) -> bool {
        self.session.is_some()
    }

    /// Keeps a half of a session of this age, unless it is time for base OTs.
    pub(crate) fn leave(&mut self, half: Kept) {
        self.next_half = Some(half).filter(|half| u64::from(half.age) + 1 < SESSIONS);
    }
}

/// The part of a half that its party received, before the peer's message has come.
pub(crate) struct Leaving {
    choices: Zeroizing<Block>,
    blocks: Zeroizing<Vec<Block>>,
}

impl Leaving {
    /// Extends by the OTs that this party will have received; also the message for the peer.
    pub(crate) fn new(receiver: &mut SoftSpokenReceiver) -> (Self, Vec<u8>) {
        let (choices, blocks, mut message) = receiver.correlate();
        // The next `delta` is odd: where the first choice is 0, the peer takes the first OT's keys the other way round.
        message.push((choices & 1) as u8 ^ 1);
        (Self { choices: Zeroizing::new(choices), blocks: Zeroizing::new(blocks) }, message)
    }

    /// The half, with the peer's message. Fails with [`Error::PeerMisbehaved`] if the message is none.
    pub(crate) fn finish(
        self,
        sender: &mut SoftSpokenSender,
        message: &[u8],
        (role, session, age): (Role, &[u8; 32], u16),
    ) -> Result<Kept, Error> {
        let wrong = Error::PeerMisbehaved { what: "what it leaves for a later session is no message of that kind" };
        let Some((&swap @ (0 | 1), message)) = message.split_last() else { return Err(wrong) };
        let key = |sender, index, block| derive(b"privet ot key to keep", session, sender, index, block);
        let q = Zeroizing::new(sender.correlate(message));
        let delta = sender.delta();
        let mut both: Vec<_> =
            q.iter().enumerate().map(|(index, &q)| [q, q ^ delta].map(|block| key(role, index, block))).collect();
        if swap == 1 {
            both[0].reverse();
        }
        let chosen = self.blocks.iter().enumerate().map(|(index, &t)| key(role.peer(), index, t)).collect();
        let delta = Zeroizing::new(*self.choices | 1);
        Ok(Kept { age, both: Zeroizing::new(both), chosen: Zeroizing::new(chosen), delta })
    }
}

/// A key that follows from a block and nothing from it.
fn derive(label: &[u8], session: &[u8; 32], sender: Role, index: usize, block: Block) -> Block {
    let hash = Sha256::new_with_prefix(label).chain_update(session).chain_update([sender.code()]);
    let hash = hash.chain_update((index as u64).to_le_bytes()).chain_update(block.to_le_bytes()).finalize();
    Block::from_le_bytes(*hash.first_chunk().expect("32 bytes"))
}

#[cfg(test)]
mod tests {
    use privet_channel::{Channel, pair};

    use super::*;
    use crate::{Extension, FieldBits, OtParty, ProductsReceived, ProductsSent, Size, Width};

    const EXTENSIONS: [Extension; 3] = [
        Extension::SoftSpoken(FieldBits::Two),
        Extension::SoftSpoken(FieldBits::Eight),
        Extension::Silent(Size::Small),
    ];

    type Halves = [Option<Kept>; 2];

    /// A session of both parties: 1,000 OTs that the client sends and as many that it receives, what is left, and the
    /// bytes that the client sent for the setup.
    fn session(extension: Extension, halves: Halves, name: u8) -> ([[Vec<u64>; 2]; 2], Halves, u64) {
        let [client, server] = halves;
        let (near, far) = pair();
        let party = move |mut channel: Channel, role, half| {
            let mut base = BaseOts::keeping(half, [name; 16]);
            let mut party = OtParty::setup_from(&mut channel, role, extension, &mut base).expect("a setup");
            let bytes = channel.cost().bytes_sent;
            let mut outputs = [Vec::new(), Vec::new()];
            for sender in [Role::Client, Role::Server] {
                if sender == role {
                    let mut sent = ProductsSent::none(Width::WORD);
                    party.send_products(&mut channel, 1000, &mut sent).expect("OTs");
                    channel.flush().expect("a flush");
                    let (rho, share) = (sent.rho.all().to_words(), sent.share.all().to_words());
                    let first = share.iter().map(|share| share.wrapping_neg());
                    let second = rho.iter().zip(&*share).map(|(rho, share)| rho.wrapping_sub(*share));
                    outputs[0] = first.chain(second).collect();
                } else {
                    party.begin(&mut channel).expect("the beginning");
                    channel.flush().expect("a flush");
                    let mut received = ProductsReceived::none(Width::WORD);
                    party.receive_products(&mut channel, 1000, &mut received).expect("OTs");
                    channel.flush().expect("a flush");
                    let share = received.share.all().to_words();
                    let chosen = share.iter().zip(received.choice.iter());
                    outputs[1] = chosen.flat_map(|(&word, bit)| [word, u64::from(bit)]).collect();
                }
            }
            (outputs, base.take_left(), bytes)
        };
        std::thread::scope(|scope| {
            let server = scope.spawn(move || party(far, Role::Server, server));
            let (client_outputs, client_half, bytes) = party(near, Role::Client, client);
            let (server_outputs, server_half, _) = server.join().expect("the server");
            ([client_outputs, server_outputs], [client_half, server_half], bytes)
        })
    }

    /// Panics unless every OT of both directions holds.
    fn check([client, server]: &[[Vec<u64>; 2]; 2]) {
        for ([sent, _], [_, received]) in [(client, server), (server, client)] {
            let (zeros, ones) = sent.split_at(1000);
            let (received, _) = received.as_chunks::<2>();
            for (index, [word, choice]) in received.iter().enumerate() {
                assert_eq!(*word, if *choice == 1 { ones[index] } else { zeros[index] });
                assert_ne!(zeros[index], ones[index]);
            }
        }
    }

    fn copy(halves: &Halves) -> Halves {
        halves.each_ref().map(|half| half.as_ref().and_then(|half| Kept::from_bytes(&half.to_bytes())))
    }

    #[test]
    fn sessions_follow_one_another_without_base_ots_whatever_their_extensions() {
        let mut halves = [None, None];
        let mut seen = Vec::new();
        for round in 0..6 {
            let is_first = round == 0;
            let (outputs, next_halves, bytes) = session(EXTENSIONS[round % 3], halves, round as u8);
            check(&outputs);
            assert_eq!(is_first, bytes > 12_000, "{bytes} bytes");
            halves = next_halves;
            for half in halves.iter().flatten() {
                assert_eq!((half.age, *half.delta & 1), (round as u16, 1));
            }
            let [client, server] = halves.each_ref().map(|half| half.as_ref().expect("a half"));
            for (sender, receiver) in [(client, server), (server, client)] {
                for (index, keys) in sender.both.iter().enumerate() {
                    assert_eq!(keys[(*receiver.delta >> index & 1) as usize], receiver.chosen[index]);
                }
                seen.extend(sender.both.as_flattened().iter().copied().chain([*receiver.delta]));
            }
            seen.extend(outputs.iter().flat_map(|[sent, _]| sent.iter().map(|&word| Block::from(word))));
        }
        let count = seen.len();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), count, "a key, a choice or an output came twice");
    }

    #[test]
    fn a_half_that_both_parties_take_twice_gives_other_keys_unless_the_session_has_the_same_name() {
        let (_, halves, _) = session(EXTENSIONS[0], [None, None], 0);
        let keys = |name: u8| {
            let [client, _] = copy(&halves);
            client.expect("a half").keys(Role::Client, &[name; 16])
        };
        let (first, second) = (keys(1), keys(2));
        assert_ne!(first.session, second.session);
        assert!(first.both.as_flattened().iter().all(|key| !second.both.as_flattened().contains(key)));
        // The control: it is the name that tells them apart.
        assert_eq!(*first.both, *keys(1).both);
        for name in [1, 2] {
            check(&session(EXTENSIONS[0], copy(&halves), name).0);
        }
    }

    #[test]
    fn keys_that_are_left_tell_nothing_of_delta() {
        let (_, halves, _) = session(EXTENSIONS[0], [None, None], 0);
        for half in halves.iter().flatten() {
            let mut differences: Vec<Block> = half.both.iter().map(|[zero, one]| zero ^ one).collect();
            differences.sort_unstable();
            differences.dedup();
            assert_eq!(differences.len(), COUNT, "unhashed, each pair would differ by the session's delta");
        }
    }

    #[test]
    fn base_ots_come_back_after_so_many_sessions() {
        let mut halves = [None, None];
        let begins: Vec<bool> = (0..2 * SESSIONS as u8)
            .map(|name| {
                let (_, next_halves, bytes) = session(EXTENSIONS[0], std::mem::take(&mut halves), name);
                halves = next_halves;
                bytes > 12_000
            })
            .collect();
        let expected: Vec<bool> = (0..2 * SESSIONS).map(|session| session % SESSIONS == 0).collect();
        assert_eq!(begins, expected);
    }

    #[test]
    fn halves_that_do_not_fit_are_noticed() {
        let (_, halves, _) = session(EXTENSIONS[0], [None, None], 0);
        let keys = |spoil: &dyn Fn(&mut Kept)| {
            let [client, server] = copy(&halves);
            let mut server = server.expect("a half");
            spoil(&mut server);
            (client.expect("a half").keys(Role::Client, &[1; 16]), server.keys(Role::Server, &[1; 16]))
        };
        let fit = |(client, server): (Keys, Keys)| {
            let sides = [(&client, Role::Client, &server), (&server, Role::Server, &client)];
            sides.iter().all(|(keys, role, peer)| keys.check(*role, &peer.tags(role.peer())).is_ok())
        };
        assert!(fit(keys(&|_| ())));
        for index in [0, 77, COUNT - 1] {
            assert!(!fit(keys(&|half| half.chosen[index] ^= 1 << 93)), "a key that was chosen");
            assert!(!fit(keys(&|half| *half.delta ^= 1 << index)), "a choice");
            // Of what this party sends, the peer has one key, and for the other any will do.
            let both = [0, 1].map(|key| fit(keys(&|half| half.both[index][key] ^= 1)));
            assert_eq!(both.iter().filter(|fit| **fit).count(), 1, "a key that is sent");
        }
        let (client, server) = keys(&|_| ());
        assert!(client.check(Role::Client, &server.tags(Role::Server)[2 * TAG_BYTES..]).is_err());
    }

    #[test]
    fn what_is_no_half_is_not_read() {
        let (_, [client, _], _) = session(EXTENSIONS[0], [None, None], 0);
        let bytes = client.expect("a half").to_bytes();
        assert_eq!(bytes.len(), KEPT_BYTES);
        assert!(Kept::from_bytes(&bytes[1..]).is_none() && Kept::from_bytes(&[]).is_none());
    }

    #[test]
    fn parties_of_which_one_has_no_half_notice() {
        let (_, [client, _], _) = session(EXTENSIONS[0], [None, None], 0);
        let (mut near, mut far) = pair();
        let party = |channel: &mut Channel, role, half| {
            let mut base = BaseOts::keeping(half, [1; 16]);
            OtParty::setup_from(channel, role, EXTENSIONS[0], &mut base).map(drop)
        };
        std::thread::scope(|scope| {
            let server = scope.spawn(move || party(&mut far, Role::Server, None));
            let result = party(&mut near, Role::Client, client);
            drop(near);
            assert!(result.is_err() && server.join().expect("the server").is_err());
        });
    }
}
