//! Random one-hot vectors, of which neither party knows what is set: `2^m` shared bits, bit `q` of which is one, for a uniform shared
//! number `q` of `m` bits.
//!
//! A vector grows bit by bit of `q`. With the vector `v` for the bits so far and the next bit `b`, the longer one is `v ^ b v` and then
//! `b v`. Of the four terms of `(b_C ^ b_S)(v_C ^ v_S)` each party computes one on its own; for a cross term the holder of `v`, who has
//! the words `m0` and `m1` of a random OT, sends `v ^ m0 ^ m1` and keeps `m0`, and the other party's bit is its choice `c`: from `m_c` it
//! has `m0 ^ c v`. So a share of `q` is choices of OTs. A vector of more than 64 bits takes several OTs; of each but the first the
//! choice is brought to the bit by a flip, which is sent and tells which word its sender keeps.

use std::ops::{Add, RangeInclusive};

use privet_channel::Channel;
use privet_prg::Prg;
use privet_ring::{Bits, Modulus, planes};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use crate::columns::columns;
use crate::{Demand, Error, ProductCounts, Role, Stock};

/// Bits of the numbers that vectors are for.
pub(crate) const SIZES: RangeInclusive<u32> = 6..=12;

/// How many [`SIZES`] there are.
pub(crate) const COUNT: usize = 7;

/// Bits of an OT's word.
const WORD: usize = 64;

/// OTs of vectors that grow at once, which bounds what they take.
const AT_ONCE: usize = 1 << 20;

/// How many one-hot vectors of each length.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct OneHotCounts([usize; COUNT]);

impl OneHotCounts {
    /// None.
    pub const NONE: Self = Self([0; COUNT]);

    /// `count` of `2^bits` bits each.
    ///
    /// # Panics
    /// Unless `6 <= bits <= 12`.
    pub fn of(bits: u32, count: usize) -> Self {
        let mut counts = Self::NONE;
        counts.0[index(bits)] = count;
        counts
    }

    /// How many of `2^bits` bits.
    ///
    /// # Panics
    /// Unless `6 <= bits <= 12`.
    pub fn count(&self, bits: u32) -> usize {
        self.0[index(bits)]
    }

    /// All counts, with the bits of each.
    pub fn all(&self) -> impl Iterator<Item = (u32, usize)> {
        SIZES.zip(self.0)
    }

    /// OTs of words in either direction.
    pub(crate) fn ots(&self) -> usize {
        self.all().map(|(bits, count)| count * words(bits)).sum()
    }

    /// Bytes that a party stores of them.
    pub fn stored_bytes(&self) -> usize {
        self.all().map(|(bits, count)| (bits as usize + (1 << bits)) * count.div_ceil(8)).sum()
    }

    /// Bytes that a party takes while they are made, beside them: words of OTs, the vectors' bits as they grow, and messages.
    pub fn making_bytes(&self) -> usize {
        const PER_OT: usize = 64;
        self.runs().iter().map(|run| run.count * words(run.bits) * PER_OT).max().unwrap_or(0)
    }

    /// In which portions they are made.
    pub(crate) fn runs(&self) -> Vec<Run> {
        let portions = |(bits, count): (u32, usize)| {
            let most = AT_ONCE / words(bits);
            (0..count.div_ceil(most)).map(move |i| Run { bits, count: most.min(count - i * most) })
        };
        self.all().flat_map(portions).collect()
    }
}

impl Add for OneHotCounts {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i] + other.0[i]))
    }
}

/// Vectors of one length that grow together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub bits: u32,
    pub count: usize,
}

impl Run {
    /// What they grow over.
    pub(crate) fn demand(self) -> Demand {
        let words = ProductCounts::of(WORD as u32, self.count * words(self.bits));
        Demand { products_sent_by_client: words, products_sent_by_server: words, ..Demand::NONE }
    }

    /// Bytes of each message; one for each bit but the first.
    pub(crate) fn messages(self) -> impl Iterator<Item = usize> {
        let count = self.count;
        (1..self.bits).map(move |bit| {
            let (words, width) = (words_of(bit), Modulus::new(width_of(bit)));
            ((words - 1) * count).div_ceil(8) + words * width.packed_bytes(count)
        })
    }
}

/// One party's shares of vectors of one length, by planes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Zeroize, ZeroizeOnDrop)]
pub struct OneHots {
    /// The bits of the numbers, the lowest first.
    pub number: Vec<Bits>,
    /// The vectors' bits, that of number 0 first.
    pub entries: Vec<Bits>,
}

impl OneHots {
    /// Those of `2^bits` bits, of which there are none.
    pub(crate) fn none(bits: u32) -> Self {
        Self { number: vec![Bits::default(); bits as usize], entries: vec![Bits::default(); 1 << bits] }
    }

    /// How many vectors.
    pub fn count(&self) -> usize {
        self.entries[0].len()
    }
}

columns! {
    OneHots { number, entries }
}

/// Vectors from a stock of products of words ([`Run::demand`]) in both directions; the peer must do the same. Fails if
/// the link or the operating system's randomness fails.
pub(crate) fn grow(channel: &mut Channel, role: Role, run: Run, stock: &Stock) -> Result<OneHots, Error> {
    let (sent, received) = stock.products.of_words();
    let Run { bits, count } = run;
    let first = {
        let mut words = vec![0; count.div_ceil(WORD)];
        Prg::from_os()?.fill_words(&mut words);
        Bits::from_words(words, count).expect("one word per 64 bits")
    };
    // Of bit 0 alone: its complement, which is the server's to take, and itself.
    let one = u64::from(role == Role::Server);
    let start = (0..count).map(|i| (u64::from(first.get(i)) * 3) ^ one).collect::<Vec<_>>();
    let mut vector = Zeroizing::new(vec![start]);
    let (mut number, mut offset) = (vec![first], 0);
    for bit in 1..bits {
        let width = Modulus::new(width_of(bit));
        let at = |word: usize| offset + word * count..offset + (word + 1) * count;
        let choices = (0..vector.len()).map(|word| received.choice.slice(at(word).start, count));
        let choices = Zeroizing::new(choices.collect::<Vec<_>>());
        let first_choice = &choices[0];
        let mut flips = Bits::default();
        choices[1..].iter().for_each(|choice| flips.extend(&choice.xor(first_choice)));
        let mut message = flips.to_bytes();
        for (word, column) in vector.iter().enumerate() {
            let [rho, share] = [&sent.rho, &sent.share].map(|elements| elements.all().slice(at(word)).to_words());
            let masked = column.iter().zip(rho.iter().zip(&*share)).map(|(column, (rho, share))| {
                let [m0, m1] = words_behind(*rho, *share);
                width.reduce(column ^ m0 ^ m1)
            });
            message.extend(width.pack(&masked.collect::<Vec<_>>()));
        }
        let reply = channel.exchange(&message)?;

        let (peer_flips, mut masked) = reply.split_at(flips.len().div_ceil(8));
        let peer_flips = Bits::from_bytes(peer_flips, flips.len()).map_err(|_| MALFORMED)?;
        let mut products = Zeroizing::new(Vec::with_capacity(vector.len()));
        for (word, column) in vector.iter().enumerate() {
            let (packed, rest) = masked.split_at(width.packed_bytes(count));
            masked = rest;
            let masked = width.unpack(packed, count).map_err(|_| MALFORMED)?;
            let flips = match word {
                0 => Bits::zeros(count),
                _ => peer_flips.slice((word - 1) * count, count),
            };
            let [rho, share, received_share] =
                [&sent.rho, &sent.share, &received.share].map(|elements| elements.all().slice(at(word)).to_words());
            let product = |i: usize| {
                let [m0, m1] = words_behind(rho[i], share[i]);
                let pad = m0 ^ (m0 ^ m1) & mask(&flips, i);
                width.reduce((column[i] ^ masked[i]) & mask(first_choice, i) ^ received_share[i] ^ pad)
            };
            products.push((0..count).map(product).collect::<Vec<_>>());
        }
        for (column, product) in vector.iter_mut().zip(products.iter()) {
            column.iter_mut().zip(product).for_each(|(column, product)| *column ^= product);
        }
        match 1_usize << bit {
            length if length < WORD => {
                let halves = vector[0].iter_mut().zip(&products[0]);
                halves.for_each(|(column, product)| *column |= product << length);
            }
            _ => vector.append(&mut products),
        }
        offset += choices.len() * count;
        number.push(first_choice.clone());
    }
    Ok(OneHots { number, entries: vector.iter().flat_map(|column| planes::from_values(column, WORD as u32)).collect() })
}

const MALFORMED: Error = Error::PeerMisbehaved { what: "a message for one-hot vectors has another length" };

/// The two words of the OT behind a product.
fn words_behind(rho: u64, share: u64) -> [u64; 2] {
    [share.wrapping_neg(), rho.wrapping_sub(share)]
}

/// All ones where bit `i` is set.
fn mask(bits: &Bits, i: usize) -> u64 {
    (bits.words()[i / WORD] >> (i % WORD) & 1).wrapping_neg()
}

/// OTs in either direction with which bit `bit` of a number joins.
fn words_of(bit: u32) -> usize {
    (1 << bit) / WORD.min(1 << bit)
}

/// Bits of a word of theirs.
fn width_of(bit: u32) -> u32 {
    WORD.min(1 << bit) as u32
}

/// No vector of any length.
pub(crate) fn none() -> [OneHots; COUNT] {
    std::array::from_fn(|i| OneHots::none(SIZES.start() + i as u32))
}

/// OTs in either direction for a vector.
fn words(bits: u32) -> usize {
    (1..bits).map(words_of).sum()
}

/// The place of vectors for numbers of `bits` bits among all lengths.
pub(crate) fn index(bits: u32) -> usize {
    assert!(SIZES.contains(&bits), "one-hot vectors are of 64 to 4,096 bits");
    (bits - SIZES.start()) as usize
}

#[cfg(test)]
mod tests {
    use privet_channel::pair;
    use privet_prg::Seed;

    use super::*;
    use crate::Stock;

    /// Vectors of both parties, and what the client sends beside them.
    fn grown(run: Run, seed: u64) -> [OneHots; 2] {
        let demand = run.demand();
        let (client, server) = Stock::deal(&demand, &mut Prg::from_seed(&Seed::from_block(seed.into())));
        let (mut near, mut far) = pair();
        let side = |stock: &Stock, channel: &mut Channel, role| grow(channel, role, run, stock).expect("vectors");
        std::thread::scope(|scope| {
            let serving = scope.spawn(|| side(&server, &mut far, Role::Server));
            [side(&client, &mut near, Role::Client), serving.join().expect("the server's thread")]
        })
    }

    fn joined(parties: &[OneHots; 2]) -> OneHots {
        let [client, server] = parties;
        let both = |client: &[Bits], server: &[Bits]| client.iter().zip(server).map(|(a, b)| a.xor(b)).collect();
        OneHots { number: both(&client.number, &server.number), entries: both(&client.entries, &server.entries) }
    }

    #[test]
    fn one_bit_is_set_and_it_is_that_of_the_number() {
        for bits in SIZES {
            let run = Run { bits, count: 131 };
            let OneHots { number, entries } = &joined(&grown(run, 3));
            assert_eq!((number.len(), entries.len()), (bits as usize, 1 << bits));
            let value = |i| (0..bits).map(|bit| u64::from(number[bit as usize].get(i)) << bit).sum::<u64>();
            let numbers: Vec<u64> = (0..run.count).map(value).collect();
            for (at, entry) in entries.iter().enumerate() {
                for (i, &number) in numbers.iter().enumerate() {
                    assert_eq!(entry.get(i), number == at as u64, "{bits} bits, entry {at} of vector {i}");
                }
            }
        }
    }

    #[test]
    fn numbers_are_uniform_and_neither_party_knows_them() {
        let run = Run { bits: 8, count: 1 << 15 };
        let parties = grown(run, 4);
        let both = joined(&parties);
        for bits in parties.iter().flat_map(|party| party.number.iter().chain(&party.entries)).chain(&both.number) {
            let ones: u32 = bits.words().iter().map(|word| word.count_ones()).sum();
            // Seven standard deviations of a binomial count.
            assert!((f64::from(ones) - f64::from(1 << 14)).abs() < 3.5 * f64::from(1 << 15).sqrt(), "{ones}");
        }
        // A party's share of an entry says nothing of the number, though in both shares together it is the number's.
        for OneHots { entries, .. } in &parties {
            for (entry, number) in
                entries.iter().flat_map(|entry| both.number.iter().map(move |number| (entry, number)))
            {
                let ones: u32 = entry.xor(number).words().iter().map(|word| word.count_ones()).sum();
                assert!((f64::from(ones) - f64::from(1 << 14)).abs() < 3.5 * f64::from(1 << 15).sqrt(), "{ones}");
            }
        }
    }

    #[test]
    fn what_is_sent_is_balanced() {
        let run = Run { bits: 8, count: 1 << 13 };
        for role in [Role::Client, Role::Server] {
            let (client, server) = Stock::deal(&run.demand(), &mut Prg::from_seed(&Seed::from_block(5)));
            let stock = if role == Role::Client { client } else { server };
            let (mut near, mut far) = pair();
            let peer = std::thread::spawn(move || -> Vec<Vec<u8>> {
                run.messages().map(|len| far.exchange(&vec![0; len]).expect("a message")).collect()
            });
            grow(&mut near, role, run, &stock).expect("vectors");
            for (bit, message) in (1..).zip(peer.join().expect("the peer does not panic")) {
                let flips = (words_of(bit) - 1) * run.count / 8;
                let (flips, mut words) = message.split_at(flips);
                let mut columns = vec![flips.iter().map(|byte| u64::from(byte.count_ones())).sum::<u64>()];
                // Nor do flips tell the bit.
                let (_, received) = stock.products.of_words();
                let choice = received.choice.slice((1..bit).map(words_of).sum::<usize>() * run.count, run.count);
                columns.push(flips.iter().zip(choice.to_bytes()).map(|(a, b)| u64::from((a ^ b).count_ones())).sum());
                if flips.is_empty() {
                    columns.clear();
                }
                let width = Modulus::new(width_of(bit));
                while !words.is_empty() {
                    let (packed, rest) = words.split_at(width.packed_bytes(run.count));
                    let values = width.unpack(packed, run.count).expect("words");
                    columns.extend((0..width.bits()).map(|at| values.iter().map(|word| word >> at & 1).sum::<u64>()));
                    words = rest;
                }
                for ones in &columns {
                    // Seven standard deviations of a binomial count.
                    assert!((*ones as f64 - run.count as f64 / 2.0).abs() < 3.5 * (run.count as f64).sqrt(), "{ones}");
                }
            }
        }
    }
}
