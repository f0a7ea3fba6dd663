//! Secret comparison (SecONNds, Algorithm 1), in the form that additive shares need: does the sum of two private
//! values carry?
//!
//! The client's `x` exceeds the server's `y` exactly if `x + (2^k - 1 - y)` reaches `2^k`, so a comparison and a carry
//! are one thing, and the leaves and nodes of the comparison tree are a carry-lookahead adder's generate and propagate
//! bits. Every leaf is an AND of two privately held bits: one random OT and 2 bits on the wire, where the paper spends
//! a triple and 4 bits. Nodes combine in linear depth (k - 1 ANDs in as many rounds) or in a tree (as many nodes in
//! log2 k rounds, most of them of two ANDs with a common operand, for which it is opened once). Or the leaves are blocks of
//! three bits, which need more ANDs of privately held bits and two rounds fewer.

use privet_ring::{Bits, planes};

use crate::{Error, Party, and, and_with_pairs, private_and};

/// Depth of comparisons: linear suits a LAN, the others links with long round trips.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounds {
    /// Fewest bits: one AND per bit, one after the other.
    Linear,
    /// Few rounds: a balanced tree.
    Log,
    /// Fewest rounds: a balanced tree whose leaves are blocks of three bits.
    Blocks,
}

/// Bits of a leaf in [`Rounds::Blocks`].
pub(crate) const BLOCK_BITS: usize = 3;

/// Shares of `[x_client + x_server >= 2^bits]`; `values`: this party's private summands below `2^bits`, `[n]`.
///
/// # Errors
/// If the link fails or the stock lacks [`crate::cost::carry`]'s correlations.
pub fn carry(party: &mut Party<'_>, values: &[u64], bits: u32) -> Result<Bits, Error> {
    carry_out(party, planes::from_values(values, bits))
}

/// [`carry`] of summands given by their bit planes, the lowest first: at least one.
pub(crate) fn carry_out(party: &mut Party<'_>, propagate: Vec<Bits>) -> Result<Bits, Error> {
    let n = propagate[0].len();
    if party.rounds == Rounds::Blocks {
        let (generate, propagate) = blocks(party, &propagate)?;
        return tree(party, generate, propagate);
    }
    let generate = private_and(party, &join(&propagate))?;
    let generate = (0..propagate.len()).map(|j| generate.slice(j * n, n)).collect();
    match party.rounds {
        Rounds::Linear => ripple(party, generate, &propagate),
        Rounds::Log | Rounds::Blocks => tree(party, generate, propagate),
    }
}

/// Generate and propagate bits of blocks of [`BLOCK_BITS`] bits, the lowest first, in one round.
///
/// Both are sums of products of a monomial of the client's bits with one of the server's: expanding
/// `p = prod (x_i ^ y_i)` and `g = sum over k of x_k y_k prod over i > k of (x_i ^ y_i)` gives every set `S` of client's
/// bits once each, in `p` with the server's bits outside of `S`, in `g` with its lowest bit and those above it outside of
/// `S`. Each is one AND of privately held bits. The terms of `p` in which one party has no bit are local.
fn blocks(party: &mut Party<'_>, planes: &[Bits]) -> Result<(Vec<Bits>, Vec<Bits>), Error> {
    let n = planes[0].len();
    let is_server = party.is_server();
    let mut operands = Bits::default();
    for (index, block) in planes.chunks(BLOCK_BITS).enumerate() {
        let full = (1 << block.len()) - 1;
        for set in 1..=full {
            let lowest = set & !(set - 1);
            // All bits above the lowest one.
            let above = full & !(lowest | (lowest - 1));
            operands.extend(&monomial(block, if is_server { lowest | above & !set } else { set }));
        }
        // Nothing enters below the lowest block, so its propagate bit is never needed.
        for set in (1..full).take_while(|_| index > 0) {
            operands.extend(&monomial(block, if is_server { full & !set } else { set }));
        }
    }
    let products = private_and(party, &operands)?;

    let mut at = 0;
    let mut sum = |count: usize, mut sum: Bits| {
        for _ in 0..count {
            sum.xor_assign(&products.slice(at, n));
            at += n;
        }
        sum
    };
    let (mut generate, mut propagate) = (Vec::new(), Vec::new());
    for (index, block) in planes.chunks(BLOCK_BITS).enumerate() {
        let full = (1 << block.len()) - 1;
        generate.push(sum(full, Bits::zeros(n)));
        // The sets of all bits and of none: a product of one party's bits alone.
        let cross = if index > 0 { full - 1 } else { 0 };
        propagate.push(sum(cross, monomial(block, full)));
    }
    Ok((generate, propagate))
}

/// The AND of the planes in `set`, a bit for each plane; at least one.
fn monomial(planes: &[Bits], set: usize) -> Bits {
    let mut chosen = planes.iter().enumerate().filter(|(i, _)| set >> i & 1 == 1).map(|(_, plane)| plane);
    let first = chosen.next().expect("a monomial has a factor").clone();
    chosen.fold(first, |product, plane| product.and(plane))
}

/// From the lowest bit up: `carry = generate ^ (propagate & carry)`.
fn ripple(party: &mut Party<'_>, generate: Vec<Bits>, propagate: &[Bits]) -> Result<Bits, Error> {
    let mut planes = generate.into_iter().zip(propagate);
    let (mut carry, _) = planes.next().expect("a comparison has at least one bit");
    for (generate, propagate) in planes {
        carry = and(party, propagate, &carry)?;
        carry.xor_assign(&generate);
    }
    Ok(carry)
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

fn join<'a>(parts: impl IntoIterator<Item = &'a Bits>) -> Bits {
    let mut joined = Bits::default();
    parts.into_iter().for_each(|part| joined.extend(part));
    joined
}
