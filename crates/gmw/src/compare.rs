//! Secret comparison (the millionaires' problem), in the form that additive shares need: does the sum of two private values carry?
//!
//! The client's `x` exceeds the server's `y` exactly if `x + (2^k - 1 - y)` reaches `2^k`, so a comparison and a carry
//! are one thing. In logarithmic depth it is the carry-lookahead adder of SecONNds, Algorithm 1: leaves are generate and propagate
//! bits, each leaf an AND of privately held bits, and nodes combine in a tree, most nodes two ANDs with a common operand, for
//! which it is opened once. The other depths are made of random tables ([`crate::tables`]): in linear depth a ripple-carry adder of
//! two bits a step, or else a tree whose leaves are blocks of four bits, as in CrypTFlow2 and Cheetah.

use privet_ring::{Bits, planes};

use crate::lanes::LastExchange;
use crate::{Error, Party, and_with_pairs, private_and, tables};

/// Depth of comparisons: linear suits a LAN, the others links with long round trips.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rounds {
    /// Fewest bits: a table for two bits, one after the other.
    #[default]
    Linear,
    /// Few rounds: a balanced tree.
    Log,
    /// Fewest rounds: a tree whose leaves are tables of four bits.
    Blocks,
}

/// Shares of `[x_client + x_server >= 2^bits]`; `values`: this party's private summands below `2^bits`, `[n]`.
pub fn carry(party: &mut Party<'_>, values: &[u64], bits: u32) -> Result<Bits, Error> {
    carry_out(party, planes::from_values(values, bits))
}

/// [`carry`] of summands given by their bit planes, the lowest first: at least one. A single bit's is an AND in every depth.
pub(crate) fn carry_out(party: &mut Party<'_>, planes: Vec<Bits>) -> Result<Bits, Error> {
    if party.rounds != Rounds::Log && planes.len() > 1 {
        return tables::carry_out(party, planes, None);
    }
    carry_out_by_ands(party, planes)
}

/// [`carry_out`], and an exchange that follows.
pub(crate) fn carry_out_then(
    party: &mut Party<'_>,
    planes: Vec<Bits>,
    exchange: &mut dyn LastExchange,
) -> Result<(), Error> {
    if party.rounds != Rounds::Log && planes.len() > 1 {
        return tables::carry_out(party, planes, Some(exchange)).map(drop);
    }
    let carries = carry_out_by_ands(party, planes)?;
    let n = carries.len();
    let message = exchange.speak(party.stock, [(0..n, carries), (n..n, Bits::default())])?;
    party.channel.send(&message)?;
    let reply = party.channel.recv(exchange.expects())?;
    exchange.listen(party.stock, reply)
}

fn carry_out_by_ands(party: &mut Party<'_>, planes: Vec<Bits>) -> Result<Bits, Error> {
    let n = planes[0].len();
    let generate = private_and(party, &join(&planes))?;
    tree(party, (0..planes.len()).map(|j| generate.slice(j * n, n)).collect(), planes)
}

/// Neighbouring spans of bits are joined level by level; the lowest span needs no propagate bit.
fn tree(party: &mut Party<'_>, mut generate: Vec<Bits>, mut propagate: Vec<Bits>) -> Result<Bits, Error> {
    let n = generate[0].len();
    while generate.len() > 1 {
        let pairs = generate.len() / 2;
        let high = join((1..pairs).map(|i| &propagate[2 * i + 1]));
        let low = [&generate, &propagate].map(|planes| join((1..pairs).map(|i| &planes[2 * i])));
        let (lowest, products) = and_with_pairs(party, &propagate[1], &generate[0], &high, low.each_ref())?;

        let node = |which: usize, i: usize| products[which].slice((i - 1) * n, n);
        let odd = (generate.len() % 2 == 1).then(|| (generate.pop(), propagate.pop()));
        let carries = std::iter::once(lowest).chain((1..pairs).map(|i| node(0, i)));
        generate = carries.enumerate().map(|(i, carry)| generate[2 * i + 1].xor(&carry)).collect();
        propagate = std::iter::once(Bits::zeros(n)).chain((1..pairs).map(|i| node(1, i))).collect();
        if let Some((g, p)) = odd {
            generate.extend(g);
            propagate.extend(p);
        }
    }
    Ok(generate.swap_remove(0))
}

/// One vector of all.
pub(crate) fn join<'a>(parts: impl IntoIterator<Item = &'a Bits>) -> Bits {
    let mut joined = Bits::default();
    parts.into_iter().for_each(|part| joined.extend(part));
    joined
}
