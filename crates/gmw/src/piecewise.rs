//! A public function made of lines, exactly, without a dealer: which line applies is a vector of shared bits.
//!
//! An adder gives shares of the bits of `x`. The low `k` bits are `i 2^f + d`: line `i` out of `2^n`, at distance `d < 2^f`, `f = k - n`;
//! whether all bits above are clear tells whether `x` is in the table. A random one-hot vector, whose bit `q` is set
//! ([`privet_ot::OneHots`]), becomes that of `i` where the parties open `i ^ q` and move bit `j` to `j ^ i ^ q`. Sums over the table
//! ([`privet_ring::Lines`]) are shares of the line up to a sign, and the number of ones that each party has tells shares of the sign.
//! Multiplexers multiply the slope by each bit of `d`, then one removes the sign from the sum, and the last ones choose between that and
//! what is on either side of the table.

use privet_ot::OneHots;
use privet_ring::{Bits, Lines, Modulus, Selected, planes};

use crate::compare::join;
use crate::mux::{Choice, add_scaled, mux, mux_each};
use crate::{Error, Party, Rounds, Sign, and, and_with_pairs, extend, private_and, tables};

/// What is looked up: a function by lines, of signed values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piecewise {
    /// Width of the ring of the values: at least two bits more than the table's arguments have.
    pub ring: u32,
    /// Bits of the table's arguments.
    pub bits: u32,
    /// Bits of a line's number: 6 to 12, and fewer than those of an argument.
    pub index_bits: u32,
    /// Whether no value is negative.
    pub nonnegative: bool,
    /// Whether the function goes on above the table.
    pub rises: bool,
    /// Width of the ring of the result: more bits than distances have.
    pub to: u32,
    /// Width of the ring in which slopes and distances are multiplied ([`Piecewise::narrowed`]); as `to`, or it holds twice what a line
    /// [reaches](Lines::reach) without its top bit.
    pub products: u32,
    /// Whether the value above the table is a multiple of what it rises by.
    pub whole: bool,
}

impl Piecewise {
    /// One in whose rings all lines fit; its fields in their order.
    pub const fn new(ring: u32, [bits, index_bits]: [u32; 2], nonnegative: bool, rises: bool, to: u32) -> Self {
        Self { ring, bits, index_bits, nonnegative, rises, to, products: to, whole: false }
    }

    /// The same with rings as narrow as `lines` allow.
    #[must_use]
    pub fn narrowed(self, lines: &Lines) -> Self {
        let width = u64::BITS - lines.reach().saturating_mul(2).leading_zeros() + 1;
        let width = width.max(self.step_bits() + 1);
        // A product that is brought to the result's ring takes a round, and a bit.
        let products = if width + 1 < self.to { width } else { self.to };
        let [slope, at_zero] = lines.above();
        Self { products, whole: self.rises && at_zero.is_multiple_of(slope), ..self }
    }

    /// The ring of a value above the table as it is chosen, in units of what it rises by if it is a multiple.
    pub(crate) fn beyond(&self) -> u32 {
        if self.whole { self.to - self.step_bits() } else { self.to }
    }

    /// Bits of the value that are computed: all, or all but the sign.
    pub(crate) fn planes(&self) -> u32 {
        self.ring - u32::from(self.nonnegative)
    }

    /// Blocks of four bits above the table, but for the sign, of which a table of random OTs tells whether they are clear.
    pub(crate) fn blocks(&self, rounds: Rounds) -> usize {
        if rounds == Rounds::Linear { (self.ring - 1 - self.bits) as usize / 4 } else { 0 }
    }

    /// Bits of the value that an adder computes, or, of the highest one, only the carry into it.
    pub(crate) fn added(&self, rounds: Rounds) -> u32 {
        match self.blocks(rounds) as u32 {
            0 => self.planes(),
            blocks => self.ring - 4 * blocks,
        }
    }

    /// Bits of a distance.
    pub(crate) fn step_bits(&self) -> u32 {
        self.bits - self.index_bits
    }

    /// The ring that a value above the table is wanted in, as it counts `2^f` times, if that is wider than its own.
    pub(crate) fn widened(&self) -> Option<u32> {
        Some(self.to - self.step_bits()).filter(|&width| self.rises && width > self.ring)
    }
}

/// Shares of the value of `lines` at `x`, below the table that at 0; `x`: this party's shares. `lines` rise as `of` does.
/// Cost: [`crate::cost::piecewise`].
///
/// # Panics
/// Unless sizes are as [`Piecewise`] says.
pub fn piecewise(party: &mut Party<'_>, x: &[u64], of: &Piecewise, lines: &Lines) -> Result<Vec<u64>, Error> {
    let (to, is_server) = (Modulus::new(of.to), party.is_server());
    assert!(of.ring >= of.bits + 2 && of.index_bits < of.bits, "room on both sides, and lines over some values");
    let (argument, tops) = bits(party, planes::from_values(x, of.planes()), of)?;
    let (distance, index) = argument.split_at(of.step_bits() as usize);
    let inside = all_clear(party, tops.clone())?;
    let mut values = line(party, [distance, index], lines, of)?;

    // What the server adds is public.
    let public = |value: u64| if is_server { value } else { 0 };
    let [slope, at_zero] = lines.above();
    let above: Vec<u64> = x.iter().map(|x| to.reduce(slope.wrapping_mul(*x).wrapping_add(public(at_zero)))).collect();
    let below = public(lines.below());
    if of.nonnegative && of.widened().is_none() {
        let beyond = |above: &u64| above.wrapping_add(below);
        values.iter_mut().zip(&above).for_each(|(value, above)| *value = to.reduce(value.wrapping_sub(beyond(above))));
        let mut values = mux(party, &inside, &values, to)?;
        values.iter_mut().zip(&above).for_each(|(value, above)| *value = to.reduce(value.wrapping_add(beyond(above))));
        return Ok(values);
    }
    values.iter_mut().for_each(|value| *value = to.reduce(value.wrapping_sub(below)));
    // Above the table its top bits are not all clear, but the sign is.
    let mut over = inside.clone();
    if !of.nonnegative {
        over.xor_assign(&tops[tops.len() - 1]);
    }
    if is_server {
        over = over.not();
    }
    let within = Choice { bits: &inside, values: &values, ring: to };
    let mut values = match of.widened() {
        None => {
            let unit = if of.whole { of.step_bits() } else { 0 };
            let units = |x: &u64| (slope >> unit).wrapping_mul(*x).wrapping_add(public(at_zero >> unit));
            let units: Vec<u64> = x.iter().map(units).collect();
            let beyond = Choice { bits: &over, values: &units, ring: Modulus::new(of.beyond()) };
            let mut parts = mux_each(party, &[within, beyond])?;
            parts[1].iter_mut().for_each(|part| *part <<= unit);
            sum(parts, to)
        }
        Some(width) => {
            let (ring, top) = (Modulus::new(of.ring), (1 << of.bits) - 1);
            let more: Vec<u64> = x.iter().map(|x| ring.reduce(x.wrapping_sub(public(top)))).collect();
            let last = vec![to.reduce(public(slope.wrapping_mul(top).wrapping_add(at_zero))); x.len()];
            let [last, more] = [(&last, to), (&more, ring)].map(|(values, ring)| Choice { bits: &over, values, ring });
            let mut parts = mux_each(party, &[within, last, more])?;
            let more = parts.pop().expect("three parts");
            let mut more = extend(party, &more, ring, Modulus::new(width), Sign::NonNegative)?;
            more.iter_mut().for_each(|more| *more = slope.wrapping_mul(*more));
            parts.push(more);
            sum(parts, to)
        }
    };
    values.iter_mut().for_each(|value| *value = to.reduce(value.wrapping_add(below)));
    Ok(values)
}

/// The sum of several vectors.
fn sum(mut parts: Vec<Vec<u64>>, ring: Modulus) -> Vec<u64> {
    let mut sums = parts.swap_remove(0);
    for part in parts {
        sums.iter_mut().zip(part).for_each(|(sum, part)| *sum = ring.reduce(sum.wrapping_add(part)));
    }
    sums
}

/// Shares of the bits of the table's arguments, and of some that are all clear within the table, the sign last if any; of the planes of
/// this party's summands.
fn bits(party: &mut Party<'_>, planes: Vec<Bits>, of: &Piecewise) -> Result<(Vec<Bits>, Vec<Bits>), Error> {
    let blocks = of.blocks(party.rounds);
    if blocks == 0 {
        let mut sum = add(party, planes)?;
        let tops = sum.split_off(of.bits as usize);
        return Ok((sum, tops));
    }
    // Of the lowest plane of the blocks only what is carried into it counts.
    let added = of.added(party.rounds) as usize;
    let mut sum = add(party, planes[..added].to_vec())?;
    let carry = sum.pop().map_or_else(Bits::default, |bit| bit.xor(&planes[added - 1]));
    let mut tops = sum.split_off(of.bits as usize);
    let (occupied, carry) = tables::above(party, &planes[added - 1..][..4 * blocks], carry, !of.nonnegative)?;
    tops.extend(occupied);
    if !of.nonnegative {
        tops.push(planes[planes.len() - 1].xor(&carry));
    }
    Ok((sum, tops))
}

/// Shares of whether none of an element's bits is set; `bits`: this party's shares, a vector for each bit.
fn all_clear(party: &mut Party<'_>, mut bits: Vec<Bits>) -> Result<Bits, Error> {
    if party.is_server() {
        bits.iter_mut().for_each(|bits| *bits = bits.not());
    }
    while bits.len() > 1 {
        let (n, half) = (bits[0].len(), bits.len() / 2);
        let odd = bits.split_off(2 * half);
        let products = and(party, &join(&bits[..half]), &join(&bits[half..]))?;
        bits = (0..half).map(|i| products.slice(i * n, n)).chain(odd).collect();
    }
    Ok(bits.swap_remove(0))
}

/// Shares in the result's ring of what `lines` give at shared bits of distances and of lines' numbers, the lowest first.
fn line(
    party: &mut Party<'_>,
    [distance, index]: [&[Bits]; 2],
    lines: &Lines,
    of: &Piecewise,
) -> Result<Vec<u64>, Error> {
    let (n, to) = (index[0].len(), Modulus::new(of.to));
    let OneHots { number, entries } = &party.stock.take_one_hots(lines.count().ilog2(), n)?;
    let hidden = join(&index.iter().zip(number).map(|(index, number)| index.xor(number)).collect::<Vec<_>>());
    let opened = open_bits(party, &hidden)?;
    let shifts: Vec<Bits> = (0..index.len()).map(|bit| opened.slice(bit * n, n)).collect();
    let [shifts, entries] = [&shifts, entries].map(|planes| planes.iter().map(Bits::words).collect::<Vec<_>>());
    let Selected { mut slopes, offsets: mut values, counts } = lines.selected(&entries, &shifts, n);
    let reach = lines.reach();

    // What this party's bits select less what the other's do is the line or its negative, as its count is one more or one less.
    let is_server = party.is_server();
    let share = |value: &mut u64| *value = to.reduce(if is_server { value.wrapping_neg() } else { *value });
    [&mut slopes, &mut values].into_iter().flatten().for_each(share);
    let [ones, twos] = counts;
    let negative = twos.into_iter().zip(ones).map(|(two, one)| if is_server { two ^ one } else { two }).collect();
    let negative = Bits::from_words(negative, n)?;

    // Of the product with a bit of `d` no more bits count than above it. Whatever the argument is, the sum of these products stays within what
    // lines reach, so that a narrow ring holds it, raised by that much, as a number that is not negative.
    let choice = |(bit, bits)| Choice { bits, values: &slopes, ring: Modulus::new(of.products - bit) };
    let choices: Vec<Choice<'_>> = (0..).zip(distance).map(choice).collect();
    if of.products == of.to {
        add_scaled(party, &choices, &mut values, to)?;
    } else {
        let (narrow, raise) = (Modulus::new(of.products), if is_server { reach } else { 0 });
        let mut products = vec![raise; n];
        add_scaled(party, &choices, &mut products, narrow)?;
        let products = extend(party, &products, narrow, to, Sign::NonNegative)?;
        let sums = values.iter_mut().zip(products);
        sums.for_each(|(value, product)| *value = value.wrapping_add(product).wrapping_sub(raise));
    }
    // Of what is subtracted twice, the top bit does not count.
    let twice = mux(party, &negative, &values, Modulus::new(to.bits() - 1))?;
    values.iter_mut().zip(twice).for_each(|(value, twice)| *value = to.reduce(value.wrapping_sub(twice << 1)));
    Ok(values)
}

/// The bits that both parties share.
fn open_bits(party: &mut Party<'_>, share: &Bits) -> Result<Bits, Error> {
    let reply = party.channel.exchange(&share.to_bytes())?;
    Ok(share.xor(&Bits::from_bytes(&reply, share.len())?))
}

/// Shares of the bits of the sum of both parties' values, of which each has bit planes, the lowest first; what is carried out of the
/// highest is lost.
fn add(party: &mut Party<'_>, planes: Vec<Bits>) -> Result<Vec<Bits>, Error> {
    let carries = match party.rounds {
        Rounds::Linear => ripple(party, &planes)?,
        Rounds::Log | Rounds::Blocks => prefixes(party, &planes)?,
    };
    let mut sum = planes;
    sum.iter_mut().skip(1).zip(&carries).for_each(|(sum, carry)| sum.xor_assign(carry));
    Ok(sum)
}

/// What is carried out of each plane but the last, one after the other.
fn ripple(party: &mut Party<'_>, planes: &[Bits]) -> Result<Vec<Bits>, Error> {
    let mut carries = vec![private_and(party, &planes[0])?];
    for plane in &planes[1..planes.len() - 1] {
        let carry = &carries[carries.len() - 1];
        let with_plane = carry.xor(plane);
        let (x, y) = if party.is_server() { (carry, &with_plane) } else { (&with_plane, carry) };
        let product = and(party, x, y)?;
        carries.push(carry.xor(&product));
    }
    Ok(carries)
}

/// The same in few rounds: a parallel prefix sum (Sklansky).
fn prefixes(party: &mut Party<'_>, planes: &[Bits]) -> Result<Vec<Bits>, Error> {
    let (n, count) = (planes[0].len(), planes.len() - 1);
    let products = private_and(party, &join(&planes[..count]))?;
    let mut generate: Vec<Bits> = (0..count).map(|i| products.slice(i * n, n)).collect();
    let mut propagate = planes[..count].to_vec();
    for span in (0..).map(|level| 1_usize << level).take_while(|&span| span < count) {
        // Planes in the upper half of each double span take in the end of the lower half.
        let (first, later): (Vec<usize>, Vec<usize>) =
            (0..count).filter(|i| i & span != 0).partition(|&i| i < 2 * span);
        let end = |i: usize| (i & !(span - 1)) - 1;
        let gather = |of: &[Bits], at: &[usize]| join(at.iter().map(|&i| &of[i]));
        let ends: Vec<usize> = later.iter().map(|&i| end(i)).collect();
        let lowest: Vec<usize> = first.iter().map(|&i| end(i)).collect();
        let (singles, [carried, passed]) = and_with_pairs(
            party,
            &gather(&propagate, &first),
            &gather(&generate, &lowest),
            &gather(&propagate, &later),
            [&gather(&generate, &ends), &gather(&propagate, &ends)],
        )?;
        for (at, &i) in first.iter().enumerate() {
            generate[i].xor_assign(&singles.slice(at * n, n));
        }
        for (at, &i) in later.iter().enumerate() {
            generate[i].xor_assign(&carried.slice(at * n, n));
            propagate[i] = passed.slice(at * n, n);
        }
    }
    Ok(generate)
}
