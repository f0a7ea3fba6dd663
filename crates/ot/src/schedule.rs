//! In which portions a demand is made: all lengths and the order of messages depend on the demand alone.

use crate::{Demand, Extension, OneHotCounts, Role, Shape, Width, one_hots};

/// OTs per message: large enough to amortise, small enough that a message's OTs stay in cache until they are hashed.
pub(crate) const RUN: usize = 1 << 16;

/// Tables per message: as many OTs, or three quarters.
const TABLES: usize = 1 << 14;

/// Messages that a party sends before it receives as many. This bounds what waits on the wire, and so memory.
pub(crate) const BATCH: usize = 32;

/// By how many batches a party of silent OT sends ahead, whose messages are short: a batch is on its way while another is made.
pub(crate) const AHEAD: usize = 1;

/// The OTs of one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Run {
    Bits(usize),
    Pairs(usize),
    Products(Width, usize),
    Tables(Shape, usize),
}

impl Run {
    /// How many OTs.
    pub(crate) fn count(self) -> usize {
        match self {
            Self::Bits(count) | Self::Pairs(count) | Self::Products(_, count) => count,
            Self::Tables(shape, count) => count * shape.choice_bits(),
        }
    }
}

/// A demand without one-hot vectors, and then what each portion of these grows over.
pub(crate) fn parts(demand: &Demand) -> Vec<Demand> {
    let plain = Demand { one_hots: OneHotCounts::NONE, ..*demand };
    [plain].into_iter().chain(demand.one_hots.runs().into_iter().map(one_hots::Run::demand)).collect()
}

/// The messages of the direction in which `sender` sends: bit OTs, those of two bits, products, then tables.
pub(crate) fn runs(demand: &Demand, sender: Role) -> Vec<Run> {
    let bits = portions(demand.bit_ots(sender), RUN).map(Run::Bits);
    let pairs = portions(demand.paired_triples, RUN).map(Run::Pairs);
    let of = |(width, count)| portions(count, RUN).map(move |count| Run::Products(width, count));
    let products = demand.products(sender).all().flat_map(of).collect::<Vec<_>>();
    let tables = demand.tables(sender);
    let of = |shape| portions(tables.count(shape), TABLES).map(move |count| Run::Tables(shape, count));
    bits.chain(pairs).chain(products).chain(Shape::ALL.into_iter().flat_map(of)).collect()
}

/// Batches of the two directions side by side, until both are through; those of `outgoing` come `behind` so many of `incoming`.
pub(crate) fn batches<'a>(
    outgoing: &'a [Run],
    incoming: &'a [Run],
    behind: usize,
) -> impl Iterator<Item = (&'a [Run], &'a [Run])> {
    let [outgoing_count, incoming_count] = [outgoing, incoming].map(|runs| runs.len().div_ceil(BATCH));
    let count = if outgoing_count == 0 { incoming_count } else { incoming_count.max(outgoing_count + behind) };
    let batch = |runs: &'a [Run], index: usize| runs.chunks(BATCH).nth(index).unwrap_or_default();
    (0..count).map(move |index| {
        let received = index.checked_sub(behind).map(|index| batch(outgoing, index));
        (received.unwrap_or_default(), batch(incoming, index))
    })
}

/// In how many slots of [`crate::Stock::generate_beside`] either party may send what the other answers.
pub fn slots(demand: &Demand, extension: Extension) -> usize {
    if !matches!(extension, Extension::Silent(_)) {
        return 0;
    }
    let plain = &parts(demand)[0];
    let [server, client] = [Role::Server, Role::Client].map(|sender| runs(plain, sender));
    let counts =
        [(&server, &client), (&client, &server)].map(|(outgoing, incoming)| batches(outgoing, incoming, AHEAD).count());
    counts[0].min(counts[1]).saturating_sub(2)
}

fn portions(total: usize, most: usize) -> impl Iterator<Item = usize> {
    (0..total.div_ceil(most)).map(move |index| most.min(total - index * most))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ProductCounts, TableCounts};

    #[test]
    fn portions_add_up() {
        for total in [0, 1, RUN - 1, RUN, RUN + 1, 5 * RUN + 7] {
            assert_eq!(portions(total, RUN).sum::<usize>(), total);
            assert!(portions(total, RUN).all(|count| (1..=RUN).contains(&count)));
        }
    }

    #[test]
    fn batches_cover_both_directions_in_order() {
        let demand = Demand {
            private_ands: 30 * RUN,
            triples: 20 * RUN,
            paired_triples: 20 * RUN,
            products_sent_by_server: ProductCounts::of(9, 2) + ProductCounts::of(40, 1),
            products_sent_by_client: ProductCounts::of(64, RUN + 1),
            tables_sent_by_server: TableCounts { eights: TABLES + 1, sixteens: 7 },
            ..Demand::NONE
        };
        let (outgoing, incoming) = (runs(&demand, Role::Server), runs(&demand, Role::Client));
        assert_eq!((outgoing.len(), incoming.len()), (75, 42));
        assert!(outgoing.iter().all(|run| run.count() <= RUN));
        for (behind, count) in [(0, 3), (1, 4)] {
            let (out, into): (Vec<_>, Vec<_>) = batches(&outgoing, &incoming, behind).unzip();
            assert_eq!((out.len(), into.len()), (count, count));
            assert!(out[..behind].iter().all(|batch| batch.is_empty()));
            assert_eq!((&out.concat(), &into.concat()), (&outgoing, &incoming));
        }
        assert_eq!(batches(&[], &incoming, 1).count(), 2);
    }
}
