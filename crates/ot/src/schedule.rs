//! In which portions a demand is made: all lengths and the order of messages depend on the demand alone.

/// OTs per message: large enough to amortise, small enough that a message's OTs stay in cache until they are hashed.
pub(crate) const RUN: usize = 1 << 16;

/// Messages that a party sends before it receives as many. This bounds what waits on the wire, and so memory.
pub(crate) const BATCH: usize = 32;

/// The OTs of one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Run {
    Bits(usize),
    Words(usize),
}

impl Run {
    /// How many OTs.
    pub(crate) fn count(self) -> usize {
        match self {
            Self::Bits(count) | Self::Words(count) => count,
        }
    }
}

/// The messages of one direction: bit OTs, then word OTs.
pub(crate) fn runs(bit_ots: usize, word_ots: usize) -> Vec<Run> {
    portions(bit_ots).map(Run::Bits).chain(portions(word_ots).map(Run::Words)).collect()
}

/// Batches of the two directions side by side, until both are through.
pub(crate) fn batches<'a>(outgoing: &'a [Run], incoming: &'a [Run]) -> impl Iterator<Item = (&'a [Run], &'a [Run])> {
    let count = outgoing.len().max(incoming.len()).div_ceil(BATCH);
    let batch = |runs: &'a [Run], index: usize| runs.chunks(BATCH).nth(index).unwrap_or_default();
    (0..count).map(move |index| (batch(outgoing, index), batch(incoming, index)))
}

fn portions(total: usize) -> impl Iterator<Item = usize> {
    (0..total.div_ceil(RUN)).map(move |index| RUN.min(total - index * RUN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn portions_add_up() {
        for total in [0, 1, RUN - 1, RUN, RUN + 1, 5 * RUN + 7] {
            assert_eq!(portions(total).sum::<usize>(), total);
            assert!(portions(total).all(|count| (1..=RUN).contains(&count)));
        }
    }

    #[test]
    fn batches_cover_both_directions_in_order() {
        let (outgoing, incoming) = (runs(70 * RUN, 3), runs(0, RUN + 1));
        let (out, into): (Vec<_>, Vec<_>) = batches(&outgoing, &incoming).unzip();
        assert_eq!(out.len(), 3);
        assert_eq!((&out.concat(), &into.concat()), (&outgoing, &incoming));
    }
}
