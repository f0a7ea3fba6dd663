//! A public function made of lines, exactly, in three rounds: spline gates (Boyle and others, EUROCRYPT 2021) by a point
//! function that is evaluated everywhere, as SIGMA looks up tables. Beyond the table the function saturates or rises.
//!
//! Signed `x` of `n` bits is `i 2^f + d`, `d < 2^f`; lines are those of [`privet_ring::Lines`], `2^k` of them. The parties open
//! `x^ = x + r` modulo 2^n and, behind a bit `u`, whether `c = [low(x^) < low(r)]` borrows: `o = c ^ u`. Then
//! `i = high(x^) - high(r) - c` modulo 2^(n-f). Modulo 2^k that is the line, if `x` is in the table, and as `c` is `o` or `1 - o`, it is
//! one of two whose places both know but for `high(r) + u`: for `u = 0` it is `high(x^) - o` less that, for `u = 1` it is `high(x^) + o`.
//! The dealer's point, over `k + 1` bits, is `u` in front of `high(r) + u` modulo 2^k.
//!
//! Whether `x` is in the table, or above it, follows from what is left of `i`: `t = top(x^) - top(r) - b`, where `b` is the borrow of
//! the digits between, of which `c` is the one below the lowest. The dealer's tables of these digits ([`crate::digits`]) say for
//! either `b` whether `t` is 0, and whether it is positive. Both are opened behind bits, with what follows.
//!
//! Sums over all `i` are shares of `s A` and `s B`, the line's slope and its value at 0 less the one below the table, with a sign `s` that
//! the dealer alone knows. In the table and above it `x` is not negative: so it is `z = x^ - r + 2^n (1 - t^) t` in any wider ring,
//! with the top bits `t^` and `t` of `x^` and `r`, as in [`crate::Relu`]. The parties open `a = s A + alpha` and `b = s B + beta`. The
//! value `A z + B = a s z - s alpha z + b s - s beta` is linear in shares of six secrets. There are two sets of them: those of `v` times
//! `s` and of `(1 - v)` times `s`, where `v` is the bit that hides whether `x` is in the table.

use std::io::Write;

use privet_prg::paths::GROUP;
use privet_prg::{Block, KEYS_A_PART, Seed, TreeHashes};
use privet_ring::{Bits, Lines, Modulus};
use rayon::prelude::*;
use zeroize::Zeroizing;

use crate::compared::{compare, deal_comparisons, deal_digits, deal_trees, hashes, product_bytes, word_bytes};
use crate::digits::{Digits, Query, add_columns, less, parts, products};
use crate::source::Region;
use crate::streams::Streams;
use crate::{Error, Gate, KeyBytes, Party, Role, Seeds, Source, point, secrets};

/// Columns that are opened with a borrow: of two digits whether they are less, and equal, and what the top tells without and with a borrow.
const COLUMNS: usize = 9;

/// Those of the digits below the top, the borrow first.
const BELOW: usize = 5;

/// Digits that a borrow passes: that below the lowest, two, and the top.
const PASSED: usize = 4;

/// Lines over signed numbers of Z_2^n, into Z_2^m.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piecewise {
    input: Modulus,
    step_bits: u32,
    index_bits: u32,
    rises: bool,
    output: Modulus,
}

impl Piecewise {
    /// Most bits of a number above those of the table.
    pub const MOST_ABOVE: u32 = 7;

    /// `2^index_bits` lines over `2^step_bits` arguments each, of numbers of `bits` bits, into the ring of `wide` bits. Above them the
    /// function is constant, or `rises`.
    ///
    /// # Panics
    /// Unless `1 <= step_bits`, `6 <= index_bits <= 12` and `bits <= wide <= 64`, and a number has from 2 to [`Self::MOST_ABOVE`] bits
    /// more than the table takes.
    pub fn new(bits: u32, [step_bits, index_bits]: [u32; 2], rises: bool, wide: u32) -> Self {
        assert!(step_bits >= 1 && (6..=12).contains(&index_bits) && bits <= wide, "a table of lines in the ring");
        let above = bits.checked_sub(step_bits + index_bits);
        assert!(above.is_some_and(|above| (2..=Self::MOST_ABOVE).contains(&above)), "some bits above the table");
        Self { input: Modulus::new(bits), step_bits, index_bits, rises, output: Modulus::new(wide) }
    }

    /// Shares of the lines' value at `x`; `x`: this party's shares. Three rounds.
    ///
    /// # Errors
    /// If the link or the key fails.
    ///
    /// # Panics
    /// Unless there are as many lines as the gate has, and they rise as it says.
    pub fn evaluate(
        self,
        party: &mut Party<'_>,
        seed: &Seed,
        body: &mut dyn Source,
        x: &[u64],
        lines: &Lines,
    ) -> Result<Vec<u64>, Error> {
        let (count, role, output) = (x.len(), party.role, self.output);
        let (slope_above, offset_above) = (lines.above()[0], lines.above()[1]);
        assert_eq!((lines.count(), slope_above != 0), (1 << self.index_bits, self.rises), "the lines of the gate");
        let mut streams = Streams::new(role, seed);
        let own = self.input.add(x, &Zeroizing::new(streams.masks(count, self.input)));
        let theirs = self.input.unpack(&party.channel.exchange(&self.input.pack(&own))?, count)?;
        let opened = self.input.add(&own, &theirs);

        let low: Vec<u64> = opened.iter().map(|&x| self.distance().reduce(x)).collect();
        let one = if role == Role::Server { Bits::zeros(count).not() } else { Bits::zeros(count) };
        // A comparison tells that nothing is borrowed.
        let mut columns = vec![compare(self.step_bits, &low, &mut streams, body)?.xor(&one)];
        let (hashes, trees, digits) = (hashes(body)?, self.tree_bytes(count), self.digits());
        let alone = if role == Role::Server { digits.table_bytes(count) + self.products_bytes(count) } else { 0 };
        let region = body.region(trees + alone)?;
        columns.extend(self.compare_high(&digits, role, &opened, &one, &mut streams, region.behind(trees))?);
        columns.iter_mut().for_each(|column| column.xor_assign(&streams.flips(count)));
        let message: Vec<u8> = columns.iter().flat_map(Bits::to_bytes).collect();
        add_columns(&mut columns, &party.channel.exchange(&message)?, count)?;

        let products = self.products(role, count, &mut streams, region.behind(trees))?;
        let [inside, above] = [0, 1].map(|which| {
            let top = BELOW + 2 * which;
            let passed = [&columns[..BELOW], &columns[top..top + 2]].concat();
            less(&passed, &one, &products[which]).xor(&streams.flips(count))
        });
        let raw = self.look_up(role, &opened, &columns[0], lines, &mut streams, (&hashes, region))?;
        let mut hidden = [0, 1].map(|part| raw.iter().map(|raw| raw[part]).collect::<Vec<_>>());
        for column in &mut hidden {
            *column = output.add(column, &Zeroizing::new(streams.masks(count, output)));
        }
        let mut message = hidden.each_ref().map(|column| output.pack(column)).concat();
        message.extend([inside.to_bytes(), above.to_bytes()].concat());
        let reply = party.channel.exchange(&message)?;
        let (sums, bits) = reply.split_at(reply.len().min(2 * output.packed_bytes(count)));
        let (slopes, offsets) = sums.split_at(sums.len().min(output.packed_bytes(count)));
        let slopes = output.add(&hidden[0], &output.unpack(slopes, count)?);
        let offsets = output.add(&hidden[1], &output.unpack(offsets, count)?);
        let mut places = [inside, above];
        add_columns(&mut places, bits, count)?;

        let (below, set) = (role.public(lines.below()), self.set_len());
        secrets::fold(&self.secret_rings(), count, role, &mut streams, body, |i, secrets| {
            let wraps = if self.input.sign(opened[i]) == 1 { 0 } else { 1_u64.unbounded_shl(self.input.bits()) };
            let (sets, above) = secrets.split_at(2 * set);
            let &[sign, hidden_slope, mask, products, ref tops @ ..] =
                sets.chunks(set).nth(places[0].get(i).into()).expect("two sets of secrets")
            else {
                unreachable!("four secrets")
            };
            let [top, hidden_top] = [0, 1].map(|at| tops.get(at).map_or(0, |top| top.wrapping_mul(wraps)));
            let argument = opened[i].wrapping_mul(sign).wrapping_sub(mask).wrapping_add(top);
            let hidden = opened[i].wrapping_mul(hidden_slope).wrapping_sub(products).wrapping_add(hidden_top);
            let value = slopes[i].wrapping_mul(argument).wrapping_sub(hidden);
            let inside = value.wrapping_add(offsets[i].wrapping_mul(sign));

            // What the bit that hides whether it is above makes of 1, and of the argument.
            let chosen = |of_all: u64, of_bit: u64| if places[1].get(i) { of_all.wrapping_sub(of_bit) } else { of_bit };
            let times = chosen(role.public(1), above[0]);
            let beyond = match above[1..] {
                [masked, mask, ref tops @ ..] => {
                    let top = if let &[masked, top] = tops { chosen(top, masked).wrapping_mul(wraps) } else { 0 };
                    opened[i].wrapping_mul(times).wrapping_sub(chosen(mask, masked)).wrapping_add(top)
                }
                _ => 0,
            };
            let above = slope_above.wrapping_mul(beyond).wrapping_add(offset_above.wrapping_mul(times));
            output.reduce(inside.wrapping_add(above).wrapping_add(below))
        })
    }

    /// This party's shares of what is asked of digits above a line's distances: whether each of two is less, and equal; then whether what is
    /// left is 0, and positive, each without a borrow and, for one, what a borrow changes.
    fn compare_high(
        self,
        digits: &Digits,
        role: Role,
        opened: &[u64],
        one: &Bits,
        streams: &mut Streams,
        tables: Region<'_>,
    ) -> Result<Vec<Bits>, Error> {
        let points: Vec<u64> = opened.iter().map(|x| x >> self.step_bits).collect();
        let (top, half) = (1 << self.above_bits(), 1 << (self.above_bits() - 1));
        let queries: [Query; 5] = [(0, 0), (1, 0), (2, 0), (2, top - 1), (2, half)];
        let mut parts = streams.part_streams(parts(opened.len()));
        let tables = (role == Role::Server).then_some(tables);
        let found = digits.ask(&points, &queries, &mut parts, tables)?;
        let [lower @ .., _, equal, before_less, before, opposite_less, opposite] = &found[..] else {
            unreachable!("two columns for each question")
        };
        // It is positive where the secret digit is behind the opposite one and before this one. Where these follow one another the other way
        // round, all that are not between count.
        let round = opened.iter().map(|x| x >> (self.input.bits() - self.above_bits()));
        let round = Bits::from_lowest(round.map(|top| u64::from(top.wrapping_sub(1) & (2 * half - 1) < half - 1)));
        let positive = opposite_less.xor(before_less).xor(&one.and(&round));
        Ok([lower, &[equal.clone(), equal.xor(before), positive, before.xor(opposite)]].concat())
    }

    /// This party's shares of both places' products of hidden bits.
    fn products(
        self,
        role: Role,
        count: usize,
        streams: &mut Streams,
        alone: Region<'_>,
    ) -> Result<[Zeroizing<Vec<Bits>>; 2], Error> {
        let mut buffer = Vec::new();
        let mut shares: &[u8] = match role {
            Role::Client => &[],
            Role::Server => alone.read(self.digits().table_bytes(count), self.products_bytes(count), &mut buffer)?,
        };
        let mut share = || match role {
            Role::Client => Ok(streams.share_bits(count)),
            Role::Server => {
                let (share, rest) = shares.split_at(count.div_ceil(8));
                shares = rest;
                Bits::from_bytes(share, count)
            }
        };
        let mut of_place = || (0..products(PASSED)).map(|_| share()).collect::<Result<Vec<_>, _>>().map(Zeroizing::new);
        Ok([of_place()?, of_place()?])
    }

    /// This party's shares of the slope and offset of the line of each `x^`, up to the sign.
    fn look_up(
        self,
        role: Role,
        opened: &[u64],
        borrows: &Bits,
        lines: &Lines,
        streams: &mut Streams,
        (hashes, region): (&TreeHashes, Region<'_>),
    ) -> Result<Vec<[u64; 2]>, Error> {
        let (bits, half) = (self.index_bits + 1, 1 << (self.index_bits - 6));
        let key_bytes = 16 * point::words(bits);
        let mut roots = Zeroizing::new(vec![0 as Block; opened.len()]);
        streams.roots(&mut roots);
        let mut found = vec![[0; 2]; opened.len()];
        let parts = roots.par_chunks(KEYS_A_PART).zip(found.par_chunks_mut(KEYS_A_PART)).enumerate();
        let room = || (Vec::new(), Zeroizing::new(vec![0; GROUP << (bits - 6)]));
        parts.try_for_each_init(room, |(buffer, leaves), (part, (roots, found))| {
            let (hash, first) = (hashes.part(part), part * KEYS_A_PART);
            let words = region.read(first * key_bytes, roots.len() * key_bytes, buffer)?;
            let groups = roots.chunks(GROUP).zip(words.chunks(GROUP * key_bytes)).zip(found.chunks_mut(GROUP));
            for (((roots, words), found), first) in groups.zip((first..).step_by(GROUP)) {
                let leaves = &mut leaves[..roots.len() << (bits - 6)];
                point::everywhere(bits, &hash, roots, words.as_chunks().0, leaves);
                for ((words, found), i) in leaves.chunks(1 << (bits - 6)).zip(found).zip(first..) {
                    let (high, borrow) = ((opened[i] >> self.step_bits) as usize, usize::from(borrows.get(i)));
                    let (plain, flipped) = words.split_at(half);
                    let sums = lines.chosen([(plain, high.wrapping_sub(borrow)), (flipped, high + borrow)]);
                    *found =
                        sums.map(|sum| self.output.reduce(if role == Role::Server { sum.wrapping_neg() } else { sum }));
                }
            }
            Ok::<_, Error>(())
        })?;
        Ok(found)
    }

    /// The ring of distances from where a line begins.
    fn distance(self) -> Modulus {
        Modulus::new(self.step_bits)
    }

    /// Bits of a number above those of the table.
    fn above_bits(self) -> u32 {
        self.input.bits() - self.step_bits - self.index_bits
    }

    /// Digits above a line's distances: two of its number, and what is left.
    fn digits(self) -> Digits {
        let low = self.index_bits / 2;
        Digits::of(vec![low, self.index_bits - low, self.above_bits()])
    }

    fn tree_bytes(self, count: usize) -> usize {
        16 * count * point::words(self.index_bits + 1)
    }

    /// Bytes of the server's shares of products of hidden bits.
    fn products_bytes(self, count: usize) -> usize {
        2 * product_bytes(PASSED, count)
    }

    /// The rings of secrets of top bits.
    fn tops(self) -> Vec<Modulus> {
        match self.output.bits() - self.input.bits() {
            0 => Vec::new(),
            wider => vec![Modulus::new(wider); 2],
        }
    }

    /// Secrets of one of both sets.
    fn set_len(self) -> usize {
        4 + self.tops().len()
    }

    fn secret_rings(self) -> Vec<Modulus> {
        let tops = self.tops();
        let set = [vec![self.output; 4], tops.clone()].concat();
        let above = if self.rises { [vec![self.output; 3], tops].concat() } else { vec![self.output] };
        [set.clone(), set, above].concat()
    }
}

impl Gate for Piecewise {
    fn key_bytes(&self, count: usize) -> KeyBytes {
        let words = word_bytes(self.step_bits, count) + word_bytes(self.index_bits + 1, count);
        let compared = self.digits().table_bytes(count) + self.products_bytes(count);
        KeyBytes { words, corrections: compared + secrets::bytes(&self.secret_rings(), count) }
    }

    fn message_bytes(&self, count: usize) -> Vec<usize> {
        let bits = count.div_ceil(8);
        vec![self.input.packed_bytes(count), COLUMNS * bits, 2 * self.output.packed_bytes(count) + 2 * bits]
    }

    fn parts(&self, count: usize) -> usize {
        parts(count)
    }

    fn deal(&self, count: usize, seeds: &Seeds, words: &mut dyn Write) -> Result<Vec<u8>, Error> {
        let mut client = Streams::new(Role::Client, &seeds.client);
        let mut server = Streams::new(Role::Server, &seeds.server);
        let mut masks = |ring: Modulus| {
            let [client, server] = [&mut client, &mut server].map(|streams| Zeroizing::new(streams.masks(count, ring)));
            Zeroizing::new(ring.add(&client, &server))
        };
        let (inputs, slopes, offsets) = (masks(self.input), masks(self.output), masks(self.output));
        let low: Vec<u64> = inputs.iter().map(|&mask| self.distance().reduce(mask)).collect();
        let low = Zeroizing::new(low);
        deal_comparisons(self.step_bits, &low, [&mut client, &mut server], words)?;
        let high = Zeroizing::new(inputs.iter().map(|mask| mask >> self.step_bits).collect::<Vec<_>>());
        let mut flips = |columns: usize| -> Vec<Bits> {
            (0..columns).map(|_| client.flips(count).xor(&server.flips(count))).collect()
        };
        let (hidden, places) = (flips(COLUMNS), flips(2));
        let passed = [0, 1].map(|which| [&hidden[..BELOW], &hidden[BELOW + 2 * which..][..2]].concat());
        let mut corrections = deal_digits(&self.digits(), &high, &passed, &mut client);
        // The server draws as many seeds, of which nothing grows: roots of trees come behind them in both streams.
        let _ = server.parts(parts(count));

        let index = Modulus::new(self.index_bits);
        let place = |(i, high): (usize, &u64)| {
            let flip = u64::from(hidden[0].get(i));
            flip << self.index_bits | index.reduce(high + flip)
        };
        let points = Zeroizing::new(high.iter().enumerate().map(place).collect::<Vec<_>>());
        let mut at_client = Zeroizing::new(vec![false; count]);
        deal_trees(&points, [&mut client, &mut server], words, |hashes, roots, at, points| {
            point::plant_points(self.index_bits + 1, hashes, roots, points, &mut at_client[at])
        })?;
        let (rings, set) = (self.secret_rings(), self.set_len());
        corrections.extend(secrets::correct(&rings, count, &mut client, |i, out| {
            let (mask, top) = (inputs[i], self.input.sign(inputs[i]));
            let (sets, above) = out.split_at_mut(2 * set);
            for (set, hides) in sets.chunks_mut(set).zip([true, false]) {
                // 1 or -1, or 0 where the bit is another.
                let sign = (u64::from(at_client[i]) << 1).wrapping_sub(1);
                let sign = sign.wrapping_mul(u64::from(places[0].get(i) == hides));
                let hidden_slope = sign.wrapping_mul(slopes[i]);
                let products = hidden_slope.wrapping_mul(mask).wrapping_sub(sign.wrapping_mul(offsets[i]));
                let tops = [sign.wrapping_mul(top), hidden_slope.wrapping_mul(top)];
                let known = [sign, hidden_slope, sign.wrapping_mul(mask), products].into_iter().chain(tops);
                set.iter_mut().zip(known).for_each(|(out, secret)| *out = secret);
            }
            let bit = u64::from(places[1].get(i));
            let known = [bit, bit.wrapping_mul(mask), mask, bit * top, top];
            above.iter_mut().zip(known).for_each(|(out, secret)| *out = secret);
        }));
        Ok(corrections)
    }
}
