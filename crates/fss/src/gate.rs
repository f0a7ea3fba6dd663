//! What a dealer has to know of every gate.

use std::io::Write;
use std::ops::Add;

use privet_prg::{Prg, Seed};

use crate::streams::Streams;
use crate::{Error, Role};

/// The seeds of one batch, one for each party.
#[derive(Clone, Debug)]
pub struct Seeds {
    /// The client's.
    pub client: Seed,
    /// The server's.
    pub server: Seed,
}

impl Seeds {
    /// Fresh seeds for a batch; a dealer may as well take each party's from a generator that the party has too.
    pub fn draw(prg: &mut Prg) -> Self {
        Self { client: prg.seed(), server: prg.seed() }
    }

    /// The streams of the client and of the server.
    pub(crate) fn streams(&self) -> [Streams; 2] {
        [Streams::new(Role::Client, &self.client), Streams::new(Role::Server, &self.server)]
    }
}

/// Length of the parts of a batch's key, without the two seeds of 16 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyBytes {
    /// Correction words: the same for both parties.
    pub words: usize,
    /// What the server alone has, behind the words.
    pub corrections: usize,
}

impl KeyBytes {
    /// Bytes of one party's body.
    pub fn of(self, role: Role) -> usize {
        match role {
            Role::Client => self.words,
            Role::Server => self.words + self.corrections,
        }
    }
}

impl Add for KeyBytes {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { words: self.words + other.words, corrections: self.corrections + other.corrections }
    }
}

/// A function of single elements that is evaluated in batches with a dealt key.
pub trait Gate {
    /// Exact length of the key of a batch of `count` elements.
    fn key_bytes(&self, count: usize) -> KeyBytes;

    /// Bytes of each message that either party sends for `count` elements, in order; one exchange each.
    fn message_bytes(&self, count: usize) -> Vec<usize>;

    /// Seeds that the key of `count` elements draws for its parts; none in most gates.
    fn parts(&self, _count: usize) -> usize {
        0
    }

    /// Makes the key of a batch of `count` elements: writes the words for both parties, entry by entry, and returns the
    /// server's corrections.
    ///
    /// # Errors
    /// [`Error::Io`] if `words` fails.
    fn deal(&self, count: usize, seeds: &Seeds, words: &mut dyn Write) -> Result<Vec<u8>, Error>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_differ() {
        let mut prg = Prg::from_seed(&Seed::from_block(1));
        let seeds = [Seeds::draw(&mut prg), Seeds::draw(&mut prg)];
        let mut bytes: Vec<_> =
            seeds.iter().flat_map(|seeds| [seeds.client.as_bytes(), seeds.server.as_bytes()]).collect();
        bytes.sort_unstable();
        bytes.dedup();
        assert_eq!(bytes.len(), 4);
    }
}
