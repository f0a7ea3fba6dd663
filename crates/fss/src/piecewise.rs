//! A public function made of lines, exactly, in three rounds: spline gates (Boyle and others, EUROCRYPT 2021) by a point
//! function that is evaluated everywhere, as SIGMA looks up tables.
//!
//! The low `k` bits of `x` are `i 2^f + d`: line `i` out of `2^n`, at distance `d < 2^f`, `f = k - n`. The parties open
//! `x^ = x + r` modulo 2^k and, behind a bit `u`, whether `c = [low(x^) < low(r)]` borrows: `o = c ^ u`. Then
//! `i = high(x^) - high(r) - c`, and as `c` is `o` or `1 - o`, the line is one of two whose places in the table both know but for
//! `high(r) + u`: for `u = 0` it is `high(x^) - o` less that, for `u = 1` it is `high(x^) + o`. The dealer's point, over `n + 1`
//! bits, is `u` in front of `high(r) + u`.
//!
//! Sums over the table ([`privet_ring::Lines`]) are shares of `s A` and `s B` with a sign `s` that the dealer alone knows. The
//! parties open `a = s A + alpha` and `b = s B + beta`; with `d = p - q`, `p = low(x^) + o 2^f` and `q = low(r) - (1 - 2 o) u 2^f`,
//! the value is `s (s A d + s B) = a (p s - s q) - p s alpha + s alpha q + b s - s beta`: linear in shares of six secrets.

use std::io::Write;

use privet_prg::{Block, KEYS_A_PART, Seed};
use privet_ring::{Bits, Chosen, Lines, Modulus};
use rayon::prelude::*;
use zeroize::Zeroizing;

use crate::compared::{compare, deal_comparisons, deal_trees, hashes, word_bytes};
use crate::streams::Streams;
use crate::{Error, Gate, KeyBytes, Party, Role, Seeds, Source, point, secrets};

/// Lines over `k` bits, the low ones of any ring, into Z_2^m.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piecewise {
    input: Modulus,
    index_bits: u32,
    output: Modulus,
}

impl Piecewise {
    /// `2^index_bits` lines over `bits` bits, into the ring of `wide` bits.
    ///
    /// # Panics
    /// Unless `6 <= index_bits < bits <= wide <= 64`.
    pub fn new(bits: u32, index_bits: u32, wide: u32) -> Self {
        assert!((6..bits).contains(&index_bits) && bits <= wide, "a table of lines, each over some values");
        Self { input: Modulus::new(bits), index_bits, output: Modulus::new(wide) }
    }

    /// Shares of the lines' value at the low bits of `x`; `x`: this party's shares in a ring of `bits` bits or more. Three rounds.
    ///
    /// # Errors
    /// If the link or the key fails.
    ///
    /// # Panics
    /// Unless `lines` has `2^index_bits` lines.
    pub fn evaluate(
        self,
        party: &mut Party<'_>,
        seed: &Seed,
        body: &mut dyn Source,
        x: &[u64],
        lines: &Lines,
    ) -> Result<Vec<u64>, Error> {
        assert_eq!(lines.count(), 1 << self.index_bits, "the lines of the gate");
        let (count, role, output) = (x.len(), party.role, self.output);
        let mut streams = Streams::new(role, seed);
        let x: Vec<u64> = x.iter().map(|&x| self.input.reduce(x)).collect();
        let own = self.input.add(&x, &Zeroizing::new(streams.masks(count, self.input)));
        let theirs = self.input.unpack(&party.channel.exchange(&self.input.pack(&own))?, count)?;
        let opened = self.input.add(&own, &theirs);

        let low: Vec<u64> = opened.iter().map(|&x| self.distance().reduce(x)).collect();
        let mut own = compare(self.distance().bits(), &low, &mut streams, body)?;
        own.xor_assign(&streams.flips(count));
        // A comparison tells that nothing is borrowed.
        let borrows = own.xor(&Bits::from_bytes(&party.channel.exchange(&own.to_bytes())?, count)?).not();

        let raw = self.look_up(role, &opened, &borrows, lines, &mut streams, body)?;
        let mut hidden =
            [raw.iter().map(|raw| raw.slope).collect::<Vec<_>>(), raw.iter().map(|raw| raw.offset).collect()];
        for column in &mut hidden {
            *column = output.add(column, &Zeroizing::new(streams.masks(count, output)));
        }
        let message = hidden.each_ref().map(|column| output.pack(column)).concat();
        let reply = party.channel.exchange(&message)?;
        let (slopes, offsets) = reply.split_at(reply.len().min(output.packed_bytes(count)));
        let slopes = output.add(&hidden[0], &output.unpack(slopes, count)?);
        let offsets = output.add(&hidden[1], &output.unpack(offsets, count)?);

        secrets::fold(&self.secret_rings(), count, role, &mut streams, body, |i, secrets| {
            let &[sign, hidden_slope, low_mask, flip, products, flipped_slope] = secrets else {
                unreachable!("six secrets")
            };
            let step = 1_u64 << self.distance().bits();
            let borrow = u64::from(borrows.get(i));
            let (p, turn) = (low[i].wrapping_add(borrow * step), step.wrapping_mul(1_u64.wrapping_sub(2 * borrow)));
            let q = low_mask.wrapping_sub(turn.wrapping_mul(flip));
            let slope_part =
                slopes[i].wrapping_mul(p.wrapping_mul(sign).wrapping_sub(q)).wrapping_sub(p.wrapping_mul(hidden_slope));
            let mask_part = products.wrapping_sub(turn.wrapping_mul(flipped_slope));
            output.reduce(slope_part.wrapping_add(mask_part).wrapping_add(offsets[i].wrapping_mul(sign)))
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
    ) -> Result<Vec<Chosen>, Error> {
        let (bits, half) = (self.index_bits + 1, lines.count() / 64);
        let key_bytes = 16 * point::words(bits);
        let hashes = hashes(body)?;
        let region = body.region(opened.len() * key_bytes)?;
        let mut roots = Zeroizing::new(vec![0 as Block; opened.len()]);
        streams.roots(&mut roots);
        let mut found = vec![Chosen::default(); opened.len()];
        let parts = roots.par_chunks(KEYS_A_PART).zip(found.par_chunks_mut(KEYS_A_PART)).enumerate();
        parts.try_for_each_init(Vec::new, |buffer, (part, (roots, found))| {
            let first = part * KEYS_A_PART;
            let words = region.read(first * key_bytes, roots.len() * key_bytes, buffer)?;
            let mut leaves = Zeroizing::new(vec![0 as Block; roots.len() << (bits - point::LEAF_BITS)]);
            point::everywhere(bits, &hashes.part(part), roots, words.as_chunks().0, &mut leaves);
            let keys = leaves.chunks(1 << (bits - point::LEAF_BITS));
            for ((leaves, found), i) in keys.zip(found).zip(first..) {
                let words: Vec<u64> = leaves.iter().flat_map(|leaf| [*leaf as u64, (leaf >> 64) as u64]).collect();
                let (high, borrow) = ((opened[i] >> self.distance().bits()) as usize, usize::from(borrows.get(i)));
                let [plain, flipped] = [
                    lines.chosen(&words[..half], high + lines.count() - borrow),
                    lines.chosen(&words[half..], high + borrow),
                ];
                let sum = |part: fn(&Chosen) -> u64| {
                    let sum = part(&plain).wrapping_add(part(&flipped));
                    self.output.reduce(if role == Role::Server { sum.wrapping_neg() } else { sum })
                };
                *found = Chosen { slope: sum(|it| it.slope), offset: sum(|it| it.offset), count: sum(|it| it.count) };
            }
            Ok::<_, Error>(())
        })?;
        Ok(found)
    }

    /// The ring of distances from where a line begins.
    fn distance(self) -> Modulus {
        Modulus::new(self.input.bits() - self.index_bits)
    }

    fn secret_rings(self) -> [Modulus; 6] {
        [self.output; 6]
    }
}

impl Gate for Piecewise {
    fn key_bytes(&self, count: usize) -> KeyBytes {
        let words = word_bytes(self.distance().bits(), count) + word_bytes(self.index_bits + 1, count);
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

        let index = Modulus::new(self.index_bits);
        let place = |(i, mask): (usize, &u64)| {
            let flip = u64::from(flips.get(i));
            flip << self.index_bits | index.reduce((mask >> self.distance().bits()) + flip)
        };
        let points = Zeroizing::new(inputs.iter().enumerate().map(place).collect::<Vec<_>>());
        let mut at_client = Zeroizing::new(vec![false; count]);
        deal_trees(&points, [&mut client, &mut server], words, |hashes, roots, at, points| {
            point::plant_points(self.index_bits + 1, hashes, roots, points, &mut at_client[at])
        })?;
        Ok(secrets::correct(&self.secret_rings(), count, &mut client, |i, out| {
            // 1 or -1.
            let sign = (u64::from(at_client[i]) << 1).wrapping_sub(1);
            let flip = u64::from(flips.get(i));
            let hidden_slope = sign.wrapping_mul(slopes[i]);
            let products = hidden_slope.wrapping_mul(low[i]).wrapping_sub(sign.wrapping_mul(offsets[i]));
            let secrets = [
                sign,
                hidden_slope,
                sign.wrapping_mul(low[i]),
                sign.wrapping_mul(flip),
                products,
                hidden_slope.wrapping_mul(flip),
            ];
            out.copy_from_slice(&secrets);
        }))
    }
}
