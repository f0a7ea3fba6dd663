//! A public function made of lines, exactly, without a dealer: which line applies is a vector of shared bits.
//!
//! The low `k` bits of `x` are `i 2^f + d`: line `i` out of `2^n`, at distance `d < 2^f`, `f = k - n`. An adder gives shares of
//! these bits. Products of the vectors of few bits give the vector of all `n`, in which bit `j` says whether `i = j`: by ANDs for
//! the low bits, as many as vectors of them are words of the ring, and for the high ones; then each bit of the latter selects the
//! word as a whole ([`crate::select`]). Sums over the table ([`privet_ring::Lines`]) are shares of the line up to a sign, and the
//! number of ones that each party has tells shares of the sign. A multiplexer removes it; another one multiplies the slope by each
//! bit of `d`.

use privet_ring::{Bits, Lines, Modulus, Selected, planes};

use crate::compare::join;
use crate::select::select;
use crate::{Error, Party, Rounds, and, and_with_pairs, mux, mux_all, private_and};

/// Shares in `to` of the value of `lines` at the low `bits` bits of `x`; `x`: this party's shares in a ring of `bits` bits or more.
/// Cost: [`crate::cost::piecewise`].
///
/// # Errors
/// If the link fails or the stock runs dry.
///
/// # Panics
/// Unless there are `2^n` lines, `n < bits`.
pub fn piecewise(party: &mut Party<'_>, x: &[u64], bits: u32, lines: &Lines, to: Modulus) -> Result<Vec<u64>, Error> {
    let (n, index_bits) = (x.len(), lines.count().ilog2());
    assert!(index_bits < bits, "each line is over some values");
    let sum = add(party, planes::from_values(x, bits))?;
    let (distance, index) = sum.split_at((bits - index_bits) as usize);
    let one_hot = one_hot_of(party, index, to)?;
    let one_hot: Vec<&[u64]> = one_hot.iter().map(Bits::words).collect();
    let Selected { slopes, offsets, counts } = lines.selected(&one_hot, n);

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

    let raised: Vec<u64> =
        (0..distance.len()).flat_map(|bit| slopes.iter().map(move |slope| to.reduce(slope << bit))).collect();
    let products = mux(party, &join(distance), &raised, to)?;
    for products in products.chunks_exact(n.max(1)) {
        values.iter_mut().zip(products).for_each(|(value, product)| *value = to.reduce(value.wrapping_add(*product)));
    }
    Ok(values)
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

/// Of planes of `m` bits, the lowest first, the `2^m` planes of which the one with their number is set.
fn one_hot_of(party: &mut Party<'_>, bits: &[Bits], ring: Modulus) -> Result<Vec<Bits>, Error> {
    let one = if party.is_server() { Bits::zeros(bits[0].len()).not() } else { Bits::zeros(bits[0].len()) };
    let vectors: Vec<Vec<Bits>> = bits.iter().map(|bit| vec![bit.xor(&one), bit.clone()]).collect();
    let [low, _] = halves(bits.len() as u32, ring.bits());
    let (low, high) = vectors.split_at(low as usize);
    let mut halves = [low.to_vec(), high.to_vec()];
    while halves.iter().any(|vectors| vectors.len() > 1) {
        halves = outer_products(party, &halves)?;
    }
    let [mut low, mut high] = halves;
    match high.pop() {
        Some(high) => selected(party, &low.swap_remove(0), &high),
        None => Ok(low.swap_remove(0)),
    }
}

/// The product of two vectors of planes, by selecting the first as a whole by each entry of the second but its first one.
fn selected(party: &mut Party<'_>, low: &[Bits], high: &[Bits]) -> Result<Vec<Bits>, Error> {
    let (n, width) = (low[0].len(), low.len() as u32);
    let words = planes::to_values(low);
    let products = select(party, &join(&high[1..]), &words.repeat(high.len() - 1), width)?;
    let (mut first, mut rest) = (words, Vec::with_capacity(low.len() * high.len()));
    for row in 0..high.len() - 1 {
        let row = &products[row * n..][..n];
        first.iter_mut().zip(row).for_each(|(first, word)| *first ^= word);
        rest.extend(planes::from_values(row, width));
    }
    let mut product = planes::from_values(&first, width);
    product.append(&mut rest);
    Ok(product)
}

/// How many of `bits` bits are low ones, whose vector is a word of a ring of `ring` bits, and how many high.
pub(crate) fn halves(bits: u32, ring: u32) -> [u32; 2] {
    let low = ring.ilog2().min(bits);
    [low, bits - low]
}

/// Vectors of neighbours in each of two rows, multiplied in one round; the last one is left if their number is odd. Of each vector all
/// but one entry are multiplied: the others follow from sums of rows and columns.
fn outer_products(party: &mut Party<'_>, vectors: &[Vec<Vec<Bits>>; 2]) -> Result<[Vec<Vec<Bits>>; 2], Error> {
    let n = vectors[0][0][0].len();
    let pairs = || vectors.iter().flat_map(|row| row.chunks_exact(2)).map(|pair| (&pair[0], &pair[1]));
    let (mut singles, mut shared, mut others) =
        ([Bits::default(), Bits::default()], Bits::default(), [Bits::default(), Bits::default()]);
    for (low, high) in pairs() {
        for high in &high[1..] {
            let (doubles, rest) = low[1..].as_chunks::<2>();
            for [first, second] in doubles {
                shared.extend(high);
                others[0].extend(first);
                others[1].extend(second);
            }
            for low in rest {
                singles[0].extend(high);
                singles[1].extend(low);
            }
        }
    }
    let (single, double) = and_with_pairs(party, &singles[0], &singles[1], &shared, others.each_ref())?;
    let (mut singles_taken, mut doubles_taken) = (0, 0);
    let mut product = |[low, high]: [&Vec<Bits>; 2]| {
        let mut product = vec![Bits::default(); low.len() * high.len()];
        let mut first_row = low.clone();
        for (row, high) in high.iter().enumerate().skip(1) {
            let mut first = high.clone();
            for column in 1..low.len() {
                // Columns 1 and 2, 3 and 4, .. come in pairs; the last of an odd number is alone.
                let entry = if column == low.len() - 1 {
                    single.slice(singles_taken, n)
                } else {
                    double[(column - 1) % 2].slice(doubles_taken + (column - 1) / 2 * n, n)
                };
                first.xor_assign(&entry);
                first_row[column].xor_assign(&entry);
                product[row * low.len() + column] = entry;
            }
            singles_taken += n;
            doubles_taken += (low.len() - 2) / 2 * n;
            first_row[0].xor_assign(&first);
            product[row * low.len()] = first;
        }
        product.splice(..low.len(), first_row);
        product
    };
    Ok(vectors.each_ref().map(|row| {
        let pairs = row.chunks_exact(2);
        let rest = pairs.remainder().to_vec();
        pairs.map(|pair| product([&pair[0], &pair[1]])).chain(rest).collect()
    }))
}

/// Numbers of single and of paired products in each round of [`one_hot_of`], before words are selected.
pub(crate) fn one_hot_products(bits: u32, ring: u32) -> Vec<[usize; 2]> {
    let mut widths = halves(bits, ring).map(|count| vec![1_u32; count as usize]);
    let mut rounds = Vec::new();
    while widths.iter().any(|row| row.len() > 1) {
        let pairs = widths.iter().flat_map(|row| row.chunks_exact(2));
        let products = pairs.map(|pair| {
            let (low, high) = ((1_usize << pair[0]) - 1, (1_usize << pair[1]) - 1);
            [high, high * (low / 2)]
        });
        rounds.push(products.fold([0, 0], |sum, of| [sum[0] + of[0], sum[1] + of[1]]));
        widths = widths.map(|row| row.chunks(2).map(|pair| pair.iter().sum()).collect());
    }
    rounds
}
