//! A party to a run: its half of the material, its link, and the transcript of what was opened.

use privet_channel::{Channel, Cost};
use privet_fss::{Role, Source};
use privet_prg::{Seed, TreeHashes};
use privet_ring::{Bits, Modulus};

use crate::check::{OneByOne, Turns};
use crate::dealer::FLIP_BYTES;
use crate::streams::Streams;
use crate::transcript::Transcript;
use crate::values::pull_shares;
use crate::{Error, Key, Masked, PeerMisbehaved, TaggedBits, Values, check, compare};

/// One party's side of a run, from its first step to [`Party::reveal`].
pub struct Party<'a> {
    key: Key,
    channel: &'a mut Channel,
    streams: Streams,
    body: &'a mut dyn Source,
    session: Vec<u8>,
    transcript: Transcript,
    turns: &'a dyn Turns,
    /// Whether a step has failed.
    failed: bool,
}

impl<'a> Party<'a> {
    /// `key`: of the setup with this peer. `seed`, `body`: this party's half of fresh material. `session`: a name that is
    /// the same at both parties and never used again, such as that of the material.
    pub fn new(key: &Key, channel: &'a mut Channel, seed: &Seed, body: &'a mut dyn Source, session: &[u8]) -> Self {
        let streams = Streams::new(key.role(), seed);
        let transcript = Transcript::new(session);
        let (session, turns) = (session.to_vec(), &OneByOne);
        Self { key: key.clone(), channel, streams, body, session, transcript, turns, failed: false }
    }

    /// The same party, which has other runs on this setup under way and checks when it is its turn.
    #[must_use]
    pub fn in_turn(self, turns: &'a dyn Turns) -> Self {
        Self { turns, ..self }
    }

    /// Client or server.
    pub fn role(&self) -> Role {
        self.key.role()
    }

    /// This party's keys.
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// What this party's link has carried so far.
    pub fn cost(&self) -> Cost {
        self.channel.cost()
    }

    /// Has the next check compare `statement` as well: what both parties must agree on, such as the hash of the program.
    pub fn state(&mut self, statement: &[u8]) {
        self.transcript.state(b"statement", statement);
    }

    /// The next masks that neither party knows.
    ///
    /// # Errors
    /// What the body fails with; so for all functions that read it.
    pub fn masks(&mut self, count: usize) -> Result<Values, Error> {
        let shares = self.streams.shares(count);
        self.with_codes(shares)
    }

    /// The next masks that the client knows: its shares are the masks.
    pub fn input_masks(&mut self, count: usize) -> Result<Values, Error> {
        let shares = match self.role() {
            Role::Client => self.streams.shares(count),
            Role::Server => vec![0; count],
        };
        self.with_codes(shares)
    }

    /// The next masks of which the client knows the bits of `ring`: they are those of its shares.
    pub(crate) fn output_masks(&mut self, ring: Modulus, count: usize) -> Result<Values, Error> {
        let mut shares = self.streams.shares(count);
        if self.role() == Role::Server {
            shares.iter_mut().for_each(|share| *share <<= ring.bits());
        }
        self.with_codes(shares)
    }

    /// The next secrets of the dealer's choice.
    pub fn secrets(&mut self, count: usize) -> Result<Values, Error> {
        let mut secrets = Values::zeros(count);
        self.fill_secrets(secrets.view_mut(0..count))?;
        Ok(secrets)
    }

    /// As [`Party::secrets`], to `out`, as many as it holds.
    pub(crate) fn fill_secrets(&mut self, out: [&mut [u128]; 2]) -> Result<(), Error> {
        let [shares, codes] = out;
        match self.role() {
            Role::Client => {
                self.streams.fill_shares(shares);
                self.streams.fill_codes(codes);
            }
            Role::Server => {
                pull_shares(self.body, shares)?;
                pull_shares(self.body, codes)?;
            }
        }
        Ok(())
    }

    /// The next random bits that neither party knows.
    pub fn flips(&mut self, count: usize) -> Result<TaggedBits, Error> {
        let words = match self.role() {
            Role::Client => self.streams.flips(count),
            Role::Server => {
                let (words, _) = self.body.pull(count * FLIP_BYTES)?.as_chunks();
                words.iter().map(|word| u64::from_le_bytes(*word)).collect()
            }
        };
        Ok(TaggedBits::from_words(words))
    }

    /// The bits `[point <= x]` over `bits` bits, with the next points that the dealer chose.
    pub fn compare(&mut self, bits: u32, x: &[u64]) -> Result<TaggedBits, Error> {
        let roots = self.streams.roots(x.len());
        let mut seed = [0; compare::HASHES_BYTES];
        self.body.pull_into(&mut seed)?;
        let hashes = TreeHashes::new(&Seed::from_bytes(seed));
        let keys = self.body.region(x.len() * compare::key_bytes(bits))?;
        Ok(TaggedBits::from_words(compare::at_most(bits, &hashes, &roots, x, &keys, self.key.bits())?))
    }

    /// Opens `x` behind fresh masks, for use in `ring`. One round, 16 bytes for each value.
    pub fn mask(&mut self, x: &Values, ring: Modulus) -> Result<Masked, Error> {
        let mask = self.masks(x.len())?;
        self.mask_with(x, ring, mask)
    }

    /// As [`Party::mask`], of values that are needed no more.
    pub(crate) fn mask_owned(&mut self, mut x: Values, ring: Modulus) -> Result<Masked, Error> {
        let mask = self.masks(x.len())?;
        x.add_assign(&mask);
        Ok(Masked::new(ring, &self.open_owned(x)?, mask))
    }

    /// As [`Party::mask`], with masks that [`Party::masks`] gave when this material was made.
    ///
    /// # Errors
    /// If the link fails.
    pub fn mask_with(&mut self, x: &Values, ring: Modulus, mask: Values) -> Result<Masked, Error> {
        let opened = self.open_owned(x.add(&mask))?;
        Ok(Masked::new(ring, &opened, mask))
    }

    /// Opens values that nothing has to hide: those behind a mask. One round, 16 bytes for each.
    ///
    /// # Errors
    /// If the link fails or the message has another length.
    pub fn open(&mut self, masked: &Values) -> Result<Vec<u128>, Error> {
        self.open_owned(masked.clone())
    }

    /// As [`Party::open`], in place.
    pub(crate) fn open_owned(&mut self, mut masked: Values) -> Result<Vec<u128>, Error> {
        let [opened, codes] = &mut masked.parts;
        opened.iter_mut().for_each(|share| *share = share.to_le());
        let reply = self.exchange(bytemuck::must_cast_slice(opened))?;
        for (sum, reply) in opened.iter_mut().zip(reply.as_chunks().0) {
            *sum = u128::from_le(*sum).wrapping_add(u128::from_le_bytes(*reply));
        }
        self.transcript.values(&self.key, codes, opened);
        Ok(std::mem::take(opened))
    }

    /// Opens bits that are behind random ones. One round, a bit for each.
    ///
    /// # Errors
    /// If the link fails, or the message has another length or bits behind its end.
    pub fn open_bits(&mut self, masked: &TaggedBits) -> Result<Bits, Error> {
        let mut opened = masked.shares();
        let message = self.exchange(&opened.to_bytes())?;
        let reply = Bits::from_bytes(&message, masked.len())?;
        self.ensure_padding(reply.to_bytes() == message)?;
        opened.xor_assign(&reply);
        self.transcript.bits(&self.key, masked, &opened);
        Ok(opened)
    }

    /// Checks everything that was opened so far. One exchange and a message each way, [`check::CHECK_BYTES`] each.
    ///
    /// # Errors
    /// Any error that [`Error::spoils_setup`] tells apart, or [`Error::Failed`] if a step before has failed.
    pub fn check(&mut self) -> Result<(), Error> {
        if self.failed {
            return Err(Error::Failed);
        }
        let digest = self.transcript.digest();
        let agreed = check::agree(self.channel, self.turns, self.role(), &self.session, &digest);
        self.failed = agreed.is_err();
        self.transcript.state(b"checked", &digest);
        agreed
    }

    /// As [`Channel::exchange`], never again after a failure.
    fn exchange(&mut self, message: &[u8]) -> Result<Vec<u8>, Error> {
        if self.failed {
            return Err(Error::Failed);
        }
        let reply = self.channel.exchange(message);
        self.failed = reply.is_err();
        Ok(reply?)
    }

    /// Sends to the peer outside an exchange, without waiting for more to send.
    pub(crate) fn send_now(&mut self, message: &[u8]) -> Result<(), Error> {
        self.channel.send(message)?;
        Ok(self.channel.flush()?)
    }

    /// Receives from the peer outside an exchange.
    pub(crate) fn receive(&mut self, bytes: usize) -> Result<Vec<u8>, Error> {
        let message = self.channel.recv(bytes);
        self.failed |= message.is_err();
        Ok(message?)
    }

    /// Fails for good unless the unused bits of a message are zero.
    pub(crate) fn ensure_padding(&mut self, clear: bool) -> Result<(), Error> {
        self.failed |= !clear;
        if clear { Ok(()) } else { Err(PeerMisbehaved::Padding.into()) }
    }

    /// Authenticates shares of what the dealer knows.
    fn with_codes(&mut self, shares: Vec<u128>) -> Result<Values, Error> {
        let codes = match self.role() {
            Role::Client => self.streams.codes(shares.len()),
            Role::Server => self.pull(shares.len())?,
        };
        Ok(Values::from_parts(shares, codes))
    }

    /// The server's next shares.
    fn pull(&mut self, count: usize) -> Result<Vec<u128>, Error> {
        let mut shares = vec![0; count];
        pull_shares(self.body, &mut shares)?;
        Ok(shares)
    }
}
