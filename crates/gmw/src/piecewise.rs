//! A public function made of lines, exactly, without a dealer: which line applies is a vector of shared bits.
//!
//! The low `k` bits of `x` are `i 2^f + d`: line `i` out of `2^n`, at distance `d < 2^f`, `f = k - n`. An adder gives shares of
//! these bits. A random one-hot vector, whose bit `q` is set ([`privet_ot::OneHots`]), becomes that of `i` where the parties open
//! `i ^ q` and move bit `j` to `j ^ i ^ q`. Sums over the table ([`privet_ring::Lines`]) are shares of the line up to a sign, and the
//! number of ones that each party has tells shares of the sign. A multiplexer removes it; another one multiplies the slope by each
//! bit of `d`.

use privet_ot::OneHots;
use privet_ring::{Bits, Lines, Modulus, Selected, planes};

use crate::compare::join;
use crate::mux::{Choice, mux_each};
use crate::{Error, Party, Rounds, and, and_with_pairs, mux_all, private_and};

/// Shares in `to` of the value of `lines` at the low `bits` bits of `x`; `x`: this party's shares in a ring of `bits` bits or more.
/// Cost: [`crate::cost::piecewise`].
///
/// # Errors
/// If the link fails or the stock runs dry.
///
/// # Panics
/// Unless there are `2^n` lines, `6 <= n <= 12` and `n < bits`, and `to` has more bits than distances, `bits - n`.
pub fn piecewise(party: &mut Party<'_>, x: &[u64], bits: u32, lines: &Lines, to: Modulus) -> Result<Vec<u64>, Error> {
    let (n, index_bits) = (x.len(), lines.count().ilog2());
    assert!(index_bits < bits, "each line is over some values");
    let sum = add(party, planes::from_values(x, bits))?;
    let (distance, index) = sum.split_at((bits - index_bits) as usize);
    let OneHots { number, entries } = party.stock.take_one_hots(index_bits, n)?;
    let hidden = join(&index.iter().zip(&number).map(|(index, number)| index.xor(number)).collect::<Vec<_>>());
    let opened = open_bits(party, &hidden)?;
    let moved: Vec<Bits> = (0..index.len()).map(|bit| opened.slice(bit * n, n)).collect();
    let [moved, entries] = [&moved, &entries].map(|planes| planes.iter().map(Bits::words).collect::<Vec<_>>());
    let Selected { slopes, offsets, counts } = lines.selected(&entries, &moved, n);

    // What this party's bits select less what the other's do is the line or its negative, as its count is one more or one less.
    let is_server = party.is_server();
    let share = |value: u64| to.reduce(if is_server { value.wrapping_neg() } else { value });
    let parts = [slopes, offsets].map(|part| part.into_iter().map(share).collect::<Vec<_>>());
    let [ones, twos] = counts;
    let negative = twos.into_iter().zip(ones).map(|(two, one)| if is_server { two ^ one } else { two }).collect();
    let negative = Bits::from_words(negative, n)?;
    let twice = mux_all(party, &negative, &[(&parts[0], to), (&parts[1], to)])?;
    let [slopes, mut values] = [0, 1].map(|i| {
        parts[i].iter().zip(&twice[i]).map(|(part, twice)| to.reduce(part.wrapping_sub(twice << 1))).collect::<Vec<_>>()
    });

    // Of the product with a bit of `d` no more bits count than above it.
    let narrow: Vec<Modulus> = (0..).zip(distance).map(|(bit, _)| Modulus::new(to.bits() - bit)).collect();
    let choices = distance.iter().zip(&narrow).map(|(bits, &ring)| Choice { bits, values: &slopes, ring });
    for (bit, products) in mux_each(party, &choices.collect::<Vec<_>>())?.into_iter().enumerate() {
        let sums = values.iter_mut().zip(products);
        sums.for_each(|(value, product)| *value = to.reduce(value.wrapping_add(product << bit)));
    }
    Ok(values)
}

/// The bits that both parties share.
fn open_bits(party: &mut Party<'_>, mine: &Bits) -> Result<Bits, Error> {
    let theirs = party.channel.exchange(&mine.to_bytes())?;
    Ok(mine.xor(&Bits::from_bytes(&theirs, mine.len())?))
}

/// Shares of the bits of the sum of both parties' values, of which each has bit planes, the lowest first; what is carried out of the
/// highest is lost.
fn add(party: &mut Party<'_>, mine: Vec<Bits>) -> Result<Vec<Bits>, Error> {
    let carries = match party.rounds {
        Rounds::Linear => ripple(party, &mine)?,
        Rounds::Log | Rounds::Blocks => prefixes(party, &mine)?,
    };
    let mut sum = mine;
    sum.iter_mut().skip(1).zip(&carries).for_each(|(sum, carry)| sum.xor_assign(carry));
    Ok(sum)
}

/// What is carried out of each plane but the last, one after the other.
fn ripple(party: &mut Party<'_>, planes: &[Bits]) -> Result<Vec<Bits>, Error> {
    let mut carries = vec![private_and(party, &planes[0])?];
    for mine in &planes[1..planes.len() - 1] {
        let carry = &carries[carries.len() - 1];
        let with_mine = carry.xor(mine);
        let (x, y) = if party.is_server() { (carry, &with_mine) } else { (&with_mine, carry) };
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
