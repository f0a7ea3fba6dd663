//! Secret comparison (SecONNds, Algorithm 1), in the form that additive shares need: does the sum of two private
//! values carry?
//!
//! The client's `x` exceeds the server's `y` exactly if `x + (2^k - 1 - y)` reaches `2^k`, so a comparison and a carry
//! are one thing. In linear depth it is a ripple-carry adder: an AND of privately held bits for the lowest bit, one random OT
//! and 2 bits on the wire, and for every other bit one AND of shared bits, where the paper spends a triple for the leaf and
//! another for the node. In logarithmic depth it is a carry-lookahead adder: leaves are generate and propagate bits, each leaf an
//! AND of privately held bits, and nodes combine in a tree (log2 k rounds, most nodes two ANDs with a common operand, for
//! which it is opened once). Or the leaves are blocks of three bits, which need more ANDs of privately held bits and two
//! rounds fewer.

use privet_ring::{Bits, planes};

use crate::{Error, Party, and, and_with_pairs, private_and};

/// Depth of comparisons: linear suits a LAN, the others links with long round trips.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rounds {
    /// Fewest bits: one AND per bit, one after the other.
    #[default]
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
pub(crate) fn carry_out(party: &mut Party<'_>, planes: Vec<Bits>) -> Result<Bits, Error> {
    let n = planes[0].len();
    match party.rounds {
        Rounds::Linear => ripple(party, &planes),
        Rounds::Log => {
            let generate = private_and(party, &join(&planes))?;
            tree(party, (0..planes.len()).map(|j| generate.slice(j * n, n)).collect(), planes)
        }
        Rounds::Blocks => {
            let (generate, propagate) = blocks(party, &planes)?;
            tree(party, generate, propagate)
        }
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

/// From the lowest bit up, one AND for each: the majority of both summands' bits and the carry so far is
/// `(x ^ carry)(y ^ carry) ^ carry`.
fn ripple(party: &mut Party<'_>, planes: &[Bits]) -> Result<Bits, Error> {
    let (lowest, above) = planes.split_first().expect("a comparison has at least one bit");
    let mut carry = private_and(party, lowest)?;
    for mine in above {
        // The client's bit goes to its share of the first factor, the server's to its share of the second.
        let with_mine = carry.xor(mine);
        let (x, y) = if party.is_server() { (&carry, &with_mine) } else { (&with_mine, &carry) };
        let product = and(party, x, y)?;
        carry.xor_assign(&product);
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
