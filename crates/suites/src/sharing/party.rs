//! A party with what non-linear steps use up.

use privet_channel::Channel;
use privet_fss::Source;
use privet_gmw::Rounds;
use privet_ot::{Role, Stock};
use privet_prg::Prg;

use super::refill::Refills;
use super::{Correlated, Plan, Suite};
use crate::Error;

/// A party with what it uses up.
pub(super) struct Party<'a> {
    pub role: Role,
    pub channel: &'a mut Channel,
    pub supply: &'a mut Supply,
}

/// What non-linear steps use up.
pub(super) enum Supply {
    /// Suite `gmw`.
    Stock { stock: Box<Stock>, rounds: Rounds },
    /// Suite `fss`: a generator of seeds, and the bodies of keys.
    Keys { seeds: Box<Prg>, body: Box<dyn Source> },
}

impl Supply {
    /// What `correlated` has, and what is still to come from its file. Fails with [`Error::Misuse`] if the material is
    /// of another suite or is not in the store yet.
    pub(super) fn new(correlated: Correlated, role: Role, plan: &Plan) -> Result<(Self, Option<Refills>), Error> {
        match (correlated, plan.options().suite) {
            (Correlated::Stock(stock, file), Suite::Gmw { rounds }) => {
                let refills = match file {
                    Some(file) => Some(Refills::stored(file, role, plan)?),
                    None => {
                        let chunks = plan.stored_chunks();
                        if chunks.len() > 1 && stock.has_left(&chunks[0].demand) {
                            return Err(Error::Misuse("the material's later chunks are in the store: read it".into()));
                        }
                        None
                    }
                };
                Ok((Self::Stock { stock, rounds }, refills))
            }
            (Correlated::Keys(keys), Suite::Fss) => {
                let (seeds, body) = keys.open()?;
                Ok((Self::Keys { seeds: Box::new(seeds), body: Box::new(body) }, None))
            }
            _ => Err(Error::Misuse("the material was made for another suite".into())),
        }
    }

    /// Fills the buffer of suite `gmw`: `next` makes a stock of what the one before leaves.
    ///
    /// # Errors
    /// What `next` fails with.
    pub(super) fn refill(&mut self, next: impl FnOnce(Stock) -> Result<Stock, Error>) -> Result<(), Error> {
        if let Self::Stock { stock, .. } = self {
            let empty = Stock::empty(stock.role());
            let used = std::mem::replace(&mut **stock, empty);
            **stock = next(used)?;
        }
        Ok(())
    }
}

impl Party<'_> {
    /// The party as its suite's protocols take it.
    pub(super) fn engine(&mut self) -> Engine<'_> {
        let Self { role, channel, .. } = self;
        match self.supply {
            Supply::Stock { stock, rounds, .. } => {
                Engine::Gmw(privet_gmw::Party { role: *role, channel, stock, rounds: *rounds })
            }
            Supply::Keys { seeds, body } => {
                Engine::Fss(privet_fss::Party { role: *role, channel }, seeds, body.as_mut())
            }
        }
    }
}

/// A suite's own view of a party.
pub(super) enum Engine<'a> {
    Gmw(privet_gmw::Party<'a>),
    Fss(privet_fss::Party<'a>, &'a mut Prg, &'a mut dyn Source),
}
