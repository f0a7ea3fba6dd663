//! Sign and ReLU (SecONNds, Algorithm 2).

use std::collections::VecDeque;

use privet_ot::{Role, Stock};
use privet_ring::{Bits, Modulus, planes};

use crate::compare::{carry_out, carry_out_then};
use crate::lanes::{Carries, LastExchange};
use crate::mux::{Choice, Opening};
use crate::{Error, Party};

/// Shares of `[x >= 0]`; `x`: this party's share in Z_2^k, `[n]`.
///
/// The sign of `x` is the sum of both shares' top bits and of the carry out of the other `k - 1`.
pub fn is_non_negative(party: &mut Party<'_>, x: &[u64], ring: Modulus) -> Result<Bits, Error> {
    let mut planes = planes::from_values(x, ring.bits());
    let tops = planes.pop().expect("a ring has at least one bit");
    let carries = carry_out(party, planes)?;
    Ok(signs(party.role, &tops, carries))
}

/// Shares of `max(x, 0)`; `x`: this party's share in Z_2^k, `[n]`.
pub fn relu(party: &mut Party<'_>, x: &[u64], ring: Modulus) -> Result<Vec<u64>, Error> {
    let mut planes = planes::from_values(x, ring.bits());
    let tops = planes.pop().expect("a ring has at least one bit");
    let mut multiplexer = Multiplexer { x, ring, tops, opened: VecDeque::new(), results: vec![0; x.len()] };
    carry_out_then(party, planes, &mut multiplexer)?;
    Ok(multiplexer.results)
}

/// Shares of whether values are not negative, by the top bits of this party's shares and what the others carry.
fn signs(role: Role, tops: &Bits, mut carries: Bits) -> Bits {
    carries.xor_assign(tops);
    if role == Role::Server { carries.not() } else { carries }
}

/// [`crate::mux`] of values by their signs.
struct Multiplexer<'a> {
    x: &'a [u64],
    ring: Modulus,
    tops: Bits,
    /// Signs by place of what waits for the other party.
    opened: VecDeque<(Carries, Opening)>,
    results: Vec<u64>,
}

impl<'a> Multiplexer<'a> {
    fn choices<'b>(&self, signs: &'b Carries) -> [Choice<'b>; 2]
    where
        'a: 'b,
    {
        let (x, ring) = (self.x, self.ring);
        signs.each_ref().map(|(place, bits)| Choice { bits, values: &x[place.clone()], ring })
    }
}

impl LastExchange for Multiplexer<'_> {
    fn speak(&mut self, stock: &mut Stock, carries: Carries) -> Result<Vec<u8>, Error> {
        let signs = carries.map(|(place, carries)| {
            let signs = signs(stock.role(), &self.tops.slice(place.start, place.len()), carries);
            (place, signs)
        });
        let (opening, message) = Opening::of(stock, &self.choices(&signs))?;
        self.opened.push_back((signs, opening));
        Ok(message)
    }

    fn expects(&self) -> usize {
        self.opened.front().map_or(0, |(_, opening)| opening.expects())
    }

    fn listen(&mut self, stock: &Stock, reply: Vec<u8>) -> Result<(), Error> {
        let (signs, opening) = self.opened.pop_front().expect("a message that was answered");
        let opened = opening.opened(reply)?;
        for (at, choice) in self.choices(&signs).iter().enumerate() {
            opened.multiply(stock, choice, at, &mut self.results[signs[at].0.clone()]);
        }
        Ok(())
    }
}
