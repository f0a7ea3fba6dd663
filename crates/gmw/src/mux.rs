//! Multiplexer: a shared bit times a shared ring element.
//!
//! With `b = b_C ^ b_S`, `b x` is the sum over the two parties of `b_own (x_own)` and cross terms in which one party
//! holds a bit and the other a ring element: `b_C ^ b_S = b_S + b_C (1 - 2 b_S)`, so the server contributes
//! `(1 - 2 b_S) x_S` to the client's bit and the other way round. Each cross term takes one product correlation
//! (bit `c` and element `rho` with shares of `c rho`), and both are opened in one exchange, where the usual pair of
//! correlated OTs takes two flights.

use std::ops::Range;

use privet_ot::{Claim, Stock};
use privet_ring::{BLOCK, Bits, Modulus, select};

use crate::{Error, Party, product};

/// Shares of `b * x` in Z_2^k; `bits`, `x`: this party's shares, `[n]` each.
///
/// One round, `n (1 + k)` bits each way and `n` products in each direction ([`crate::cost::mux`]).
pub fn mux(party: &mut Party<'_>, bits: &Bits, x: &[u64], ring: Modulus) -> Result<Vec<u64>, Error> {
    let [product] = mux_all(party, bits, [(x, ring)])?;
    Ok(product)
}

/// [`mux`] of several vectors by the same bits, each in its own ring, in the same round.
pub fn mux_all<const N: usize>(
    party: &mut Party<'_>,
    bits: &Bits,
    values: [(&[u64], Modulus); N],
) -> Result<[Vec<u64>; N], Error> {
    let choices = values.map(|(values, ring)| Choice { bits, values, ring });
    Ok(mux_each(party, &choices)?.try_into().expect("a product of each vector"))
}

/// Values and the bits that choose among them, of which this party has shares.
pub(crate) struct Choice<'a> {
    pub bits: &'a Bits,
    /// As many as bits.
    pub values: &'a [u64],
    /// The ring of the products, and of what is read of the values.
    pub ring: Modulus,
}

/// [`mux`] of several vectors, each by bits of its own, in the same round.
pub(crate) fn mux_each(party: &mut Party<'_>, choices: &[Choice<'_>]) -> Result<Vec<Vec<u64>>, Error> {
    let (opened, stock) = (Opened::exchange(party, choices)?, &*party.stock);
    let products = choices.iter().enumerate().map(|(at, choice)| {
        let mut products = vec![0; choice.values.len()];
        opened.multiply(stock, choice, at, &mut products);
        products
    });
    Ok(products.collect())
}

/// Adds to `sums`, shares in `ring`, the products of each choice `j` times `2^j`, in the same round; all have as many values.
pub(crate) fn add_scaled(
    party: &mut Party<'_>,
    choices: &[Choice<'_>],
    sums: &mut [u64],
    ring: Modulus,
) -> Result<(), Error> {
    let (opened, stock) = (Opened::exchange(party, choices)?, &*party.stock);
    product::in_blocks(sums, |block, sums, spare| {
        let products = &mut [0; BLOCK][..sums.len()];
        for (at, choice) in choices.iter().enumerate() {
            products.fill(0);
            opened.add_products(stock, choice, at, block.clone(), [&mut *products, &mut *spare]);
            sums.iter_mut().zip(&*products).for_each(|(sum, product)| *sum = sum.wrapping_add(product << at));
        }
        ring.reduce_all(sums);
    });
    Ok(())
}

/// What this party has opened of some choices: for each its correlations and flips, and bytes of bits and elements of either message.
pub(crate) struct Opening {
    terms: Vec<(Claim, Bits)>,
    sizes: Vec<[usize; 2]>,
}

impl Opening {
    /// Opens bits and elements of all choices behind correlations: also the message that does so.
    pub(crate) fn of(stock: &mut Stock, choices: &[Choice<'_>]) -> Result<(Self, Vec<u8>), Error> {
        let sizes = choices.iter().map(|choice| {
            assert_eq!(choice.values.len(), choice.bits.len(), "one bit for each value");
            [choice.bits.len().div_ceil(8), choice.ring.packed_bytes(choice.bits.len())]
        });
        let sizes: Vec<[usize; 2]> = sizes.collect();
        let mut message = Vec::with_capacity(sizes.as_flattened().iter().sum());
        let mut terms = Vec::with_capacity(choices.len());
        for &Choice { bits, values, ring } in choices {
            let claim = stock.claim_products(ring.bits(), bits.len())?;
            let ([rho, _], my_flips) = (stock.sent(&claim), bits.xor(&stock.choice(&claim)));
            message.extend_from_slice(&my_flips.to_bytes());
            product::mask(&mut message, rho, ring, |block, out| {
                select::signed(out, product::words(bits, &block), &values[block]);
            });
            terms.push((claim, my_flips));
        }
        Ok((Self { terms, sizes }, message))
    }

    /// Bytes of the other party's message.
    pub(crate) fn expects(&self) -> usize {
        self.sizes.as_flattened().iter().sum()
    }

    /// Goes on with the other party's message.
    pub(crate) fn opened(self, reply: Vec<u8>) -> Result<Opened, Error> {
        let (mut terms, mut at) = (Vec::with_capacity(self.terms.len()), 0);
        for ((claim, my_flips), [bits, elements]) in self.terms.into_iter().zip(self.sizes) {
            let flips = Bits::from_bytes(&reply[at..at + bits], my_flips.len())?;
            terms.push((claim, [my_flips, flips], at + bits));
            at += bits + elements;
        }
        Ok(Opened { terms, reply })
    }
}

/// What both parties have opened of some choices.
pub(crate) struct Opened {
    /// For each choice its correlations, this party's flips and the other's, and where in the reply its elements begin.
    terms: Vec<(Claim, [Bits; 2], usize)>,
    reply: Vec<u8>,
}

impl Opened {
    /// Opens bits and elements of all choices behind correlations.
    fn exchange(party: &mut Party<'_>, choices: &[Choice<'_>]) -> Result<Self, Error> {
        let (opening, message) = Opening::of(party.stock, choices)?;
        opening.opened(party.channel.exchange(&message)?)
    }

    /// Writes this party's shares of the products of choice `at` to `products`, which are zero.
    pub(crate) fn multiply(&self, stock: &Stock, choice: &Choice<'_>, at: usize, products: &mut [u64]) {
        product::in_blocks(products, |block, products, spare| {
            self.add_products(stock, choice, at, block, [&mut *products, spare]);
            choice.ring.reduce_all(products);
        });
    }

    /// Adds this party's shares of the products of a block of choice `at` to `sums`, modulo 2^64; `spare` is overwritten.
    fn add_products(
        &self,
        stock: &Stock,
        &Choice { bits, values, ring }: &Choice<'_>,
        at: usize,
        block: Range<usize>,
        [sums, spare]: [&mut [u64]; 2],
    ) {
        let (claim, [my_flips, flips], start) = &self.terms[at];
        let ([rho, sent], received) = (stock.sent(claim), stock.received(claim));
        let (flips, elements) = (product::words(flips, &block), &self.reply[*start..]);
        // Their bit, my element: c = flip ^ c', so c delta = flip rho + (1 - 2 flip) c' rho + c e, and they add c e.
        let [mut first, mut second] = product::rooms();
        let (rho, sent) = (rho.widen(block.clone(), &mut first), sent.widen(block.clone(), &mut second));
        select::add_products(sums, flips, rho, flips, sent);
        // My bit, their element; and my bit times my own.
        ring.unpack_into(spare, &elements[ring.packed_bytes(block.start)..ring.packed_bytes(block.end)]);
        spare.iter_mut().zip(&values[block.clone()]).for_each(|(spare, x)| *spare = spare.wrapping_add(*x));
        select::add_products(
            sums,
            product::words(bits, &block),
            spare,
            product::words(my_flips, &block),
            received.widen(block, &mut first),
        );
    }
}
