//! Products of shared ring elements, bit by bit (Gilboa, CRYPTO 1999): before there is an input, triples of single elements.
//!
//! Of the four terms of `(x_C + x_S)(y_C + y_S)` each party computes one on its own. The others are `x_own` of one party times `y_other`
//! of the other: for each bit of the former one product correlation, and of the latter only the bits that count above it. A square
//! has one such term, twice; a product with a factor that the server knows has one.

use privet_ot::{PackedRef, Role, Room};
use privet_ring::{BLOCK, Bits, Modulus, planes, select};
use zeroize::Zeroizing;

use crate::compare::join;
use crate::{Error, Party, product};

/// Shares of `x y`; `x`, `y`: this party's shares in `ring`, `[n]` each. Exact.
///
/// One round; with `k` bits of the ring `n (k + k (k + 1) / 2)` bits each way and `n k` products in each direction
/// ([`crate::cost::multiply`]).
pub fn multiply(party: &mut Party<'_>, x: &[u64], y: &[u64], ring: Modulus) -> Result<Vec<u64>, Error> {
    let [chosen, offered] = cross(party, x, y, ring)?;
    let terms = chosen.iter().zip(&offered).zip(x.iter().zip(y));
    Ok(terms
        .map(|((chosen, offered), (x, y))| ring.reduce(x.wrapping_mul(*y).wrapping_add(*chosen).wrapping_add(*offered)))
        .collect())
}

/// Shares of `x x`; `x`: this party's shares in `ring`, `[n]`. Exact.
///
/// `x_C x_S` counts twice, so that modulo half as much is enough. Of the first half of the elements the client's bits choose, and the
/// server's of the second. One round; what [`multiply`] takes for half as many elements of one bit less ([`crate::cost::square`]).
pub fn square(party: &mut Party<'_>, x: &[u64], ring: Modulus) -> Result<Vec<u64>, Error> {
    let half = x.len().div_ceil(2);
    let (first, second) = x.split_at(half);
    let mut second = second.to_vec();
    second.resize(half, 0);
    let (chooses, is_chosen) = if party.is_server() { (&*second, first) } else { (first, &*second) };
    let [chosen, offered] = match ring.bits() {
        1 => [vec![0; half], vec![0; half]],
        bits => cross(party, chooses, is_chosen, Modulus::new(bits - 1))?,
    };
    let [first, second] = if party.is_server() { [offered, chosen] } else { [chosen, offered] };
    let terms = x.iter().zip(first.iter().chain(&second));
    Ok(terms.map(|(x, term)| ring.reduce(x.wrapping_mul(*x).wrapping_add(term << 1))).collect())
}

/// Shares of `x_own y_other` and of `x_other y_own`.
fn cross(party: &mut Party<'_>, x: &[u64], y: &[u64], ring: Modulus) -> Result<[Vec<u64>; 2], Error> {
    let (n, width) = (x.len(), ring.bits());
    assert_eq!(n, y.len(), "pairs of values");
    let products = n * width as usize;
    let claim = party.stock.claim_products(width, products)?;
    let stock = &*party.stock;
    let ([rho, sent], choice, received) = (stock.sent(&claim), stock.choice(&claim), stock.received(&claim));
    // Bit `i` of element `j` is at `i n + j`.
    let flips = join(&planes::from_values(x, width)).xor(&choice);
    let mut message = flips.to_bytes();
    for bit in 0..width {
        let rho = rho.slice(bit as usize * n..(bit as usize + 1) * n);
        product::mask(&mut message, rho, Modulus::new(width - bit), |block, out| out.copy_from_slice(&y[block]));
    }
    let reply = party.channel.exchange(&message)?;

    let (peer_flips, mut rest) = reply.split_at(products.div_ceil(8));
    let peer_flips = Bits::from_bytes(peer_flips, products)?;
    let (mut chosen, mut offered) = (vec![0_u64; n], vec![0_u64; n]);
    for bit in 0..width {
        let at = bit as usize * n..(bit as usize + 1) * n;
        let [flips, peer_flips, choice] =
            [&flips, &peer_flips, &*choice].map(|bits| Zeroizing::new(bits.slice(at.start, n)));
        rest = add_chosen(&mut chosen, [bit, width], [&flips, &choice], received.slice(at.clone()), rest);
        add_offered(&mut offered, bit, &peer_flips, y, sent.slice(at));
    }
    Ok([chosen, offered])
}

/// Shares in `ring` of `f x` for factors of the server and values of the client, `[n]` each; `input`: at the server the factors, signed
/// numbers of `factor_bits` bits, at the client the values. Exact.
///
/// One round; with `k` bits of the ring and `b <= k` of a factor `n b` bits from the server, `n (b k - b (b - 1) / 2)` bits from the
/// client and `n b` products sent by the client ([`crate::cost::scale`]).
pub fn scale(party: &mut Party<'_>, input: &[u64], factor_bits: u32, ring: Modulus) -> Result<Vec<u64>, Error> {
    let (n, bits, width) = (input.len(), factor_bits.min(ring.bits()), ring.bits());
    let products = n * bits as usize;
    // Half the range on top makes factors non-negative, and the client takes its value as often off.
    let half = 1_u64 << (factor_bits - 1);
    let mut shares = vec![0_u64; n];
    if party.is_server() {
        let raised: Vec<u64> = input.iter().map(|factor| factor.wrapping_add(half)).collect();
        let raised = Zeroizing::new(join(&planes::from_values(&raised, bits)));
        let claim = party.stock.claim_products_from(Role::Client, width, products)?;
        let (choice, received) = (party.stock.choice(&claim), party.stock.received(&claim));
        let flips = raised.xor(&choice);
        party.channel.send(&flips.to_bytes())?;
        let reply = party.channel.recv(crate::cost::bit_by_bit(n, width - bits + 1..=width))?;
        let mut rest = reply.as_slice();
        for bit in 0..bits {
            let at = bit as usize * n..(bit as usize + 1) * n;
            let [flips, choice] = [&flips, &choice].map(|bits| Zeroizing::new(bits.slice(at.start, n)));
            rest = add_chosen(&mut shares, [bit, width], [&flips, &choice], received.slice(at), rest);
        }
    } else {
        let claim = party.stock.claim_products_from(Role::Client, width, products)?;
        let [rho, sent] = party.stock.sent(&claim);
        let mut hidden = Vec::new();
        for bit in 0..bits {
            let rho = rho.slice(bit as usize * n..(bit as usize + 1) * n);
            product::mask(&mut hidden, rho, Modulus::new(width - bit), |block, out| out.copy_from_slice(&input[block]));
        }
        party.channel.send(&hidden)?;
        let flips = Bits::from_bytes(&party.channel.recv(products.div_ceil(8))?, products)?;
        for bit in 0..bits {
            let at = bit as usize * n..(bit as usize + 1) * n;
            add_offered(&mut shares, bit, &flips.slice(at.start, n), input, sent.slice(at));
        }
        shares.iter_mut().zip(input).for_each(|(share, x)| *share = share.wrapping_sub(half.wrapping_mul(*x)));
    }
    ring.reduce_all(&mut shares);
    Ok(shares)
}

/// Adds this party's shares of its bits' products with the other's values, times `2^bit`, and leaves the rest of the reply; `width`: bits of the
/// ring.
fn add_chosen<'a>(
    sums: &mut [u64],
    [bit, width]: [u32; 2],
    [flips, choice]: [&Bits; 2],
    received: PackedRef<'_>,
    reply: &'a [u8],
) -> &'a [u8] {
    let part = Modulus::new(width - bit);
    let (masked, rest) = reply.split_at(part.packed_bytes(sums.len()));
    product::in_blocks(sums, |block, sums, masks| {
        let chosen = &mut [0; BLOCK][..block.len()];
        let [flips, choice] = [flips, choice].map(|bits| product::words(bits, &block));
        part.unpack_into(masks, &masked[part.packed_bytes(block.start)..part.packed_bytes(block.end)]);
        let mut room = Room::new();
        let received = received.widen(block, &mut room);
        select::add_products(chosen, choice, masks, &[0; BLOCK / 64][..choice.len()], received);
        select::signed(masks, flips, chosen);
        sums.iter_mut().zip(masks).for_each(|(sum, term)| *sum = sum.wrapping_add(*term << bit));
    });
    rest
}

/// Adds its shares of the other's bits' products with its values `y`, times `2^bit`; `flips`: the other's flips.
fn add_offered(sums: &mut [u64], bit: u32, flips: &Bits, y: &[u64], sent: PackedRef<'_>) {
    product::in_blocks(sums, |block, sums, terms| {
        let flips = product::words(flips, &block);
        let mut room = Room::new();
        select::add_products(terms, flips, &y[block.clone()], flips, sent.widen(block, &mut room));
        sums.iter_mut().zip(terms).for_each(|(sum, term)| *sum = sum.wrapping_add(*term << bit));
    });
}

/// All ones where a bit is set.
pub(crate) fn mask_of(bits: &Bits, at: usize) -> u64 {
    (bits.words()[at / 64] >> (at % 64) & 1).wrapping_neg()
}
