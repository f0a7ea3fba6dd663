//! A public function made of lines, exactly, in three rounds: spline gates (Boyle and others, EUROCRYPT 2021) by a point
//! function that is evaluated everywhere, as SIGMA looks up tables. Beyond the table the function saturates or rises.
//!
//! Signed `x` of `n` bits is `i 2^f + d`, `d < 2^f`; lines are those of [`privet_ring::Lines`]. The parties open `x^ = x + r`
//! modulo 2^n and, behind a bit `u`, whether `c = [low(x^) < low(r)]` borrows: `o = c ^ u`. Then
//! `i = high(x^) - high(r) - c` modulo 2^(n-f), and as `c` is `o` or `1 - o`, the line is one of two whose places both know but for
//! `high(r) + u`: for `u = 0` it is `high(x^) - o` less that, for `u = 1` it is `high(x^) + o`. The dealer's point, over `n - f + 1`
//! bits, is `u` in front of `high(r) + u`.
//!
//! Sums over all `i` are shares of `s A` and `s B`, the line's slope and its value at 0, with a sign `s` that the dealer alone knows.
//! Wherever the slope is not 0, `x` is not negative: so it is `z = x^ - r + 2^n (1 - t^) t` in any wider ring, with the top bits `t^`
//! and `t` of `x^` and `r`, as in [`crate::Relu`]. The parties open `a = s A + alpha` and `b = s B + beta`. The value
//! `A z + B = a s z - s alpha z + b s - s beta` is linear in shares of six secrets.

use std::io::Write;

use privet_prg::paths::GROUP;
use privet_prg::{Block, KEYS_A_PART, Seed};
use privet_ring::{Bits, Lines, Modulus};
use rayon::prelude::*;
use zeroize::Zeroizing;

use crate::compared::{compare, deal_comparisons, deal_trees, hashes, word_bytes};
use crate::streams::Streams;
use crate::{Error, Gate, KeyBytes, Party, Role, Seeds, Source, point, secrets};

/// Lines over signed numbers of Z_2^n, into Z_2^m.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piecewise {
    input: Modulus,
    step_bits: u32,
    output: Modulus,
}

impl Piecewise {
    /// Lines over `2^step_bits` arguments each, of numbers of `bits` bits, into the ring of `wide` bits.
    ///
    /// # Panics
    /// Unless `1 <= step_bits`, `step_bits + 8 <= bits <= wide <= 64`.
    pub fn new(bits: u32, step_bits: u32, wide: u32) -> Self {
        assert!(step_bits >= 1 && step_bits + 8 <= bits && bits <= wide, "lines, and as much again beyond");
        Self { input: Modulus::new(bits), step_bits, output: Modulus::new(wide) }
    }

    /// Shares of the lines' value at `x`; `x`: this party's shares. Three rounds.
    ///
    /// # Errors
    /// If the link or the key fails.
    ///
    /// # Panics
    /// Unless four times as many lines as `lines` has fit the ring.
    pub fn evaluate(
        self,
        party: &mut Party<'_>,
        seed: &Seed,
        body: &mut dyn Source,
        x: &[u64],
        lines: &Lines,
    ) -> Result<Vec<u64>, Error> {
        let (count, role, output) = (x.len(), party.role, self.output);
        let mut streams = Streams::new(role, seed);
        let own = self.input.add(x, &Zeroizing::new(streams.masks(count, self.input)));
        let theirs = self.input.unpack(&party.channel.exchange(&self.input.pack(&own))?, count)?;
        let opened = self.input.add(&own, &theirs);

        let low: Vec<u64> = opened.iter().map(|&x| self.distance().reduce(x)).collect();
        let mut own = compare(self.distance().bits(), &low, &mut streams, body)?;
        own.xor_assign(&streams.flips(count));
        // A comparison tells that nothing is borrowed.
        let borrows = own.xor(&Bits::from_bytes(&party.channel.exchange(&own.to_bytes())?, count)?).not();

        let raw = self.look_up(role, &opened, &borrows, lines, &mut streams, body)?;
        let mut hidden = [0, 1].map(|part| raw.iter().map(|raw| raw[part]).collect::<Vec<_>>());
        for column in &mut hidden {
            *column = output.add(column, &Zeroizing::new(streams.masks(count, output)));
        }
        let message = hidden.each_ref().map(|column| output.pack(column)).concat();
        let reply = party.channel.exchange(&message)?;
        let (slopes, offsets) = reply.split_at(reply.len().min(output.packed_bytes(count)));
        let slopes = output.add(&hidden[0], &output.unpack(slopes, count)?);
        let offsets = output.add(&hidden[1], &output.unpack(offsets, count)?);

        secrets::fold(&self.secret_rings(), count, role, &mut streams, body, |i, secrets| {
            let &[sign, hidden_slope, mask, products, ref tops @ ..] = secrets else { unreachable!("six secrets") };
            let wraps = if self.input.sign(opened[i]) == 1 { 0 } else { 1_u64.unbounded_shl(self.input.bits()) };
            let [top, hidden_top] = [0, 1].map(|at| tops.get(at).map_or(0, |top| top.wrapping_mul(wraps)));
            let argument = opened[i].wrapping_mul(sign).wrapping_sub(mask).wrapping_add(top);
            let hidden = opened[i].wrapping_mul(hidden_slope).wrapping_sub(products).wrapping_add(hidden_top);
            let value = slopes[i].wrapping_mul(argument).wrapping_sub(hidden);
            output.reduce(value.wrapping_add(offsets[i].wrapping_mul(sign)))
        })
    }

    /// This party's shares of the slope and offset of the line of each `x^`, up to the sign.
    fn look_up(
        self,
        role: Role,
        opened: &[u64],
        borrows: &Bits,
        lines: &Lines,
        streams: &mut Streams,
        body: &mut dyn Source,
    ) -> Result<Vec<[u64; 2]>, Error> {
        let (bits, half) = (self.index_bits() + 1, 1 << (self.index_bits() - 6));
        let key_bytes = 16 * point::words(bits);
        let hashes = hashes(body)?;
        let region = body.region(opened.len() * key_bytes)?;
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
                    let (high, borrow) = ((opened[i] >> self.distance().bits()) as usize, usize::from(borrows.get(i)));
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

    /// Bits of a line's number.
    fn index_bits(self) -> u32 {
        self.input.bits() - self.step_bits
    }

    fn secret_rings(self) -> Vec<Modulus> {
        let mut rings = vec![self.output; 4];
        if self.output.bits() > self.input.bits() {
            rings.resize(6, Modulus::new(self.output.bits() - self.input.bits()));
        }
        rings
    }
}

impl Gate for Piecewise {
    fn key_bytes(&self, count: usize) -> KeyBytes {
        let words = word_bytes(self.distance().bits(), count) + word_bytes(self.index_bits() + 1, count);
        KeyBytes { words, corrections: secrets::bytes(&self.secret_rings(), count) }
    }

    fn message_bytes(&self, count: usize) -> Vec<usize> {
        vec![self.input.packed_bytes(count), count.div_ceil(8), 2 * self.output.packed_bytes(count)]
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
        deal_comparisons(self.distance().bits(), &low, [&mut client, &mut server], words)?;
        let flips = client.flips(count).xor(&server.flips(count));

        let index = Modulus::new(self.index_bits());
        let place = |(i, mask): (usize, &u64)| {
            let flip = u64::from(flips.get(i));
            flip << self.index_bits() | index.reduce((mask >> self.distance().bits()) + flip)
        };
        let points = Zeroizing::new(inputs.iter().enumerate().map(place).collect::<Vec<_>>());
        let mut at_client = Zeroizing::new(vec![false; count]);
        deal_trees(&points, [&mut client, &mut server], words, |hashes, roots, at, points| {
            point::plant_points(self.index_bits() + 1, hashes, roots, points, &mut at_client[at])
        })?;
        Ok(secrets::correct(&self.secret_rings(), count, &mut client, |i, out| {
            // 1 or -1.
            let sign = (u64::from(at_client[i]) << 1).wrapping_sub(1);
            let hidden_slope = sign.wrapping_mul(slopes[i]);
            let products = hidden_slope.wrapping_mul(inputs[i]).wrapping_sub(sign.wrapping_mul(offsets[i]));
            let top = self.input.sign(inputs[i]);
            let tops = [sign.wrapping_mul(top), hidden_slope.wrapping_mul(top)];
            let known = [sign, hidden_slope, sign.wrapping_mul(inputs[i]), products].into_iter().chain(tops);
            out.iter_mut().zip(known).for_each(|(out, secret)| *out = secret);
        }))
    }
}
