//! Carries by random tables: an adder whose every step looks one thing up that only one party knows.
//!
//! A *lookup*: one party, the asker, holds a number `v` of few bits, the other a function `f` of it, as a list. From a random table
//! of `R[0], R[1], ..` at the other and of `c`, `R[c]` at the asker, the asker sends `d = v ^ c`, and the other answers with
//! `f(u) ^ R[u ^ d] ^ s` for every `u` but 0, where its `s` makes that zero. So both have shares of `f(v)` (Beaver, "Precomputing
//! Oblivious Transfer", CRYPTO 1995, for N messages).
//!
//! Steps are *flights*, each one way: who answers has its share of the result before it speaks, and so asks for the next step in the
//! same breath, as the other party did before. To keep both busy, half of the comparisons start at the client and half at the
//! server ([`crate::lanes`]), and flights of both halves cross. Where round trips are long and comparisons many, each half
//! has some lanes, which wait for different flights.

use std::array;

use privet_ot::{PairedTriples, PrivateAnds, Shape, TablesReceived, TablesSent, Triples, shift};
use privet_ring::Bits;

use crate::and::{Masked, private_message, private_product};
use crate::compare::join;
use crate::lanes::{LastExchange, asker, run};
use crate::{Error, Party, Rounds, and, and_with_pairs, eights};

/// Spans that the last lookup joins.
const LAST: usize = 3;

/// One step of an adder; steps alternate in who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The carry out of the three lowest bits.
    First,
    /// That out of two more bits and the carry so far.
    Next,
    /// Generate and propagate bits of so many blocks of four bits, the lowest without the latter; with `below`, a single bit lies below
    /// them, and the lowest takes in its carry.
    Leaves { blocks: usize, below: bool },
    /// Joins of so many pairs of neighbouring spans, the lowest ones, by ANDs of shared bits.
    Join(usize),
    /// The carry out of three spans.
    Last,
    /// Of so many blocks of four bits generate and propagate bits, and whether they add up to zero without a carry from below.
    Above(usize),
}

impl Step {
    /// Those of an adder of `bits` bits, for which summands are padded to [`padded`] bits.
    pub(crate) fn all(bits: usize, rounds: Rounds) -> Vec<Self> {
        if rounds == Rounds::Linear {
            return [Self::First].into_iter().chain((3..bits).step_by(2).map(|_| Self::Next)).collect();
        }
        // A block for a single bit would take more bits, and a step more where it is the fourth.
        let below = bits > 4 && bits % 4 == 1;
        let mut spans = if below { bits / 4 } else { bits.div_ceil(4) };
        let mut steps = vec![Self::Leaves { blocks: spans, below }];
        while spans > LAST {
            let pairs = (spans / 2).min(spans - LAST);
            steps.push(Self::Join(pairs));
            spans -= pairs;
        }
        steps.extend((spans > 1).then_some(Self::Last));
        steps
    }

    /// The shape of its tables and how many it takes for a comparison.
    pub(crate) fn tables(self) -> Option<(Shape, usize)> {
        match self {
            Self::First | Self::Next => Some((Shape::Eight, 1)),
            Self::Leaves { blocks, .. } | Self::Above(blocks) => Some((Shape::Sixteen, blocks)),
            Self::Last => Some((Shape::Sixteen, 1)),
            Self::Join(_) => None,
        }
    }

    /// ANDs of privately held bits that it takes for a comparison.
    pub(crate) fn private_ands(self) -> usize {
        usize::from(matches!(self, Self::Leaves { below: true, .. }))
    }

    /// Bits of the question and of the answer, for a comparison.
    pub(crate) fn bits(self) -> [usize; 2] {
        match self {
            Self::First | Self::Next => [3, 7],
            Self::Leaves { blocks, below: false } => [4 * blocks, 15 * (2 * blocks - 1)],
            Self::Leaves { blocks, below: true } => [4 * blocks + 1, 15 * 2 * blocks + 1],
            Self::Join(pairs) => [2 + 3 * (pairs - 1); 2],
            Self::Last => [4, 15],
            Self::Above(blocks) => [4 * blocks, 15 * 3 * blocks],
        }
    }
}

/// Shares of the carry out of both parties' summands, given by their bit planes, the lowest first; and a last exchange of each lane, if
/// there is one to follow.
pub(crate) fn carry_out(
    party: &mut Party<'_>,
    mut planes: Vec<Bits>,
    last: Option<&mut dyn LastExchange>,
) -> Result<Bits, Error> {
    let n = planes[0].len();
    let steps = Step::all(planes.len(), party.rounds);
    let padded = match steps[0] {
        Step::Leaves { blocks, below } => 4 * blocks + usize::from(below),
        _ => 2 * steps.len() + 1,
    };
    planes.splice(..0, vec![Bits::zeros(n); padded - planes.len()]);
    let adders = run(party, &planes, &steps, last)?;
    Ok(join(adders.iter().flatten().map(|adder| &adder.generate[0])))
}

/// What both parties' summands have above their lowest bits: for each block of four bits, the lowest first, shares of whether its sum is not
/// zero, and shares of what is carried out of the highest if that is `wanted`; of bit planes, as many as blocks have, and shares of what is
/// carried into the lowest.
pub(crate) fn above(
    party: &mut Party<'_>,
    planes: &[Bits],
    mut carry: Bits,
    wanted: bool,
) -> Result<(Vec<Bits>, Bits), Error> {
    let blocks = planes.len() / 4;
    let adders = run(party, planes, &[Step::Above(blocks)], None)?;
    let mut occupied = Vec::with_capacity(blocks);
    for block in 0..blocks {
        let of = |bits: fn(&Adder) -> &[Bits]| join(adders.iter().flatten().map(|adder| &bits(adder)[block]));
        let propagate = of(|adder| &adder.propagate);
        // With a carry from below a block is zero where it has ones alone, and it has these or is zero without.
        let mut zero = of(|adder| &adder.zero);
        let changes = zero.xor(&propagate);
        let nothing = Bits::default();
        let changed = if wanted || block + 1 < blocks {
            let both = and_with_pairs(party, &nothing, &nothing, &carry, [&propagate, &changes])?;
            let (_, [carried, changed]) = both;
            carry = of(|adder| &adder.generate).xor(&carried);
            changed
        } else {
            and(party, &carry, &changes)?
        };
        zero.xor_assign(&changed);
        occupied.push(if party.is_server() { zero.not() } else { zero });
    }
    Ok((occupied, carry))
}

/// What this party takes from the stock for a step.
enum Supply {
    Asker(TablesReceived),
    Answerer(TablesSent),
    Both(Box<(Triples, PairedTriples)>),
}

/// What this party remembers between its question and the answer.
enum Asked {
    Lookup { wanted: Vec<Bits>, tables: TablesReceived },
    Products(Box<Masked>),
}

/// This party's bit of each comparison below its blocks, and what multiplies it.
struct Below {
    bits: Bits,
    ots: PrivateAnds,
}

/// This party's side of one lane of half of the comparisons.
pub(crate) struct Adder {
    n: usize,
    is_server: bool,
    /// Its summands' bits that are not yet added.
    planes: Vec<Bits>,
    /// The lowest of them, if it is in no block.
    below: Option<Below>,
    /// Its shares of the spans' bits, the lowest span first; in linear depth that of the carry alone.
    pub(crate) generate: Vec<Bits>,
    propagate: Vec<Bits>,
    /// Whether blocks add up to zero without a carry from below.
    zero: Vec<Bits>,
    supplies: std::vec::IntoIter<Supply>,
    asked: Option<Asked>,
    /// The other party's question.
    question: Bits,
}

impl Adder {
    /// Takes all correlations, so that both parties do so in one order.
    pub(crate) fn new(
        party: &mut Party<'_>,
        half: usize,
        mut planes: Vec<Bits>,
        steps: &[Step],
    ) -> Result<Self, Error> {
        let n = planes[0].len();
        let below = match steps[0].private_ands() {
            0 => None,
            _ => {
                let ots = party.stock.take_private_ands(n)?;
                Some(Below { bits: planes.remove(0), ots })
            }
        };
        let mut supplies = Vec::with_capacity(steps.len());
        for (index, step) in steps.iter().enumerate() {
            supplies.push(match (step, step.tables()) {
                (_, Some((shape, count))) if asker(half, index) == party.role => {
                    Supply::Asker(party.stock.take_tables_received(shape, count * n)?)
                }
                (_, Some((shape, count))) => Supply::Answerer(party.stock.take_tables_sent(shape, count * n)?),
                (Step::Join(pairs), None) => {
                    let triples = party.stock.take_triples(n)?;
                    Supply::Both(Box::new((triples, party.stock.take_paired_triples(n * (pairs - 1))?)))
                }
                (_, None) => unreachable!("all other steps take tables"),
            });
        }
        let (is_server, supplies) = (party.is_server(), supplies.into_iter());
        let [generate, propagate, zero] = [const { Vec::new() }; 3];
        Ok(Self {
            n,
            is_server,
            planes,
            below,
            generate,
            propagate,
            zero,
            supplies,
            asked: None,
            question: Bits::default(),
        })
    }

    /// Bits of a flight: the answer to the last step and the question of the next.
    pub(crate) fn expects(&self, (last, next): (Option<Step>, Option<Step>)) -> usize {
        self.n * (last.map_or(0, |step| step.bits()[1]) + next.map_or(0, |step| step.bits()[0]))
    }

    /// Answers the last step and asks for the next.
    pub(crate) fn speak(&mut self, (last, next): (Option<Step>, Option<Step>), message: &mut Bits) {
        if let Some(step) = last {
            self.answer(step, message);
        }
        if let Some(step) = next {
            self.ask(step, message);
        }
    }

    /// Takes in the answer to the last step and the question of the next.
    pub(crate) fn listen(&mut self, (last, next): (Option<Step>, Option<Step>), reply: &Bits) {
        let answered = last.map_or(0, |step| self.n * step.bits()[1]);
        if let Some(step) = last {
            self.take(step, &reply.slice(0, answered));
        }
        self.question = reply.slice(answered, next.map_or(0, |step| self.n * step.bits()[0]));
    }

    fn ask(&mut self, step: Step, message: &mut Bits) {
        self.asked = Some(match self.supplies.next() {
            Some(Supply::Asker(tables)) => {
                let wanted = self.wanted(step);
                tables.choice.iter().zip(&wanted).for_each(|(choice, wanted)| message.extend(&choice.xor(wanted)));
                if let (Step::Leaves { .. }, Some(below)) = (step, &self.below) {
                    message.extend(&private_message(&below.ots, &below.bits));
                }
                Asked::Lookup { wanted, tables }
            }
            Some(Supply::Both(correlations)) => {
                let masked = self.masked(step, *correlations);
                message.extend(&masked.message);
                Asked::Products(Box::new(masked))
            }
            _ => unreachable!("each step has its supply"),
        });
    }

    fn answer(&mut self, step: Step, message: &mut Bits) {
        let question = std::mem::take(&mut self.question);
        match self.supplies.next() {
            Some(Supply::Answerer(mut tables)) => {
                if matches!(step, Step::First | Step::Next) {
                    return self.answer_eight(step, &tables.entries, &question, message);
                }
                let entries = &mut tables.entries;
                let (count, (shape, _)) = (entries[0].len(), step.tables().expect("a lookup"));
                let by = (0..shape.choice_bits()).map(|j| question.slice(j * count, count));
                shift(entries, &by.collect::<Vec<_>>());
                let width = shape.entry_bits();
                let (shares, rest) = entries.split_at_mut(width);
                let functions = self.functions(step);
                for (bit, function) in functions.iter().enumerate() {
                    shares[bit].xor_assign(&function[0]);
                    for (entry, value) in rest[bit..].iter_mut().step_by(width).zip(&function[1..]) {
                        entry.xor_assign(value);
                        entry.xor_assign(&shares[bit]);
                        message.extend(&entry.slice(self.unasked(step, bit), count - self.unasked(step, bit)));
                    }
                }
                self.looked_up(step, shares);
                if let (Step::Leaves { blocks, .. }, Some(Below { ots, .. })) = (step, self.below.take()) {
                    let lowest = self.generate.len() - blocks;
                    let lets_through = &self.propagate[lowest];
                    message.extend(&private_message(&ots, lets_through));
                    let carried = private_product(&ots, lets_through, &question.slice(4 * count, self.n));
                    self.generate[lowest].xor_assign(&carried);
                }
            }
            Some(Supply::Both(correlations)) => {
                let masked = self.masked(step, *correlations);
                message.extend(&masked.message);
                self.joined(step, masked.multiply(question, self.is_server));
            }
            _ => unreachable!("each step has its supply"),
        }
    }

    fn take(&mut self, step: Step, answer: &Bits) {
        match self.asked.take() {
            Some(Asked::Lookup { wanted, mut tables }) => {
                if matches!(step, Step::First | Step::Next) {
                    return self.take_eight(&wanted, std::mem::take(&mut tables.received[0]), answer);
                }
                let (count, mut at) = (wanted[0].len(), 0);
                let used = match step {
                    Step::Above(_) => 3,
                    Step::Leaves { .. } => 2,
                    _ => 1,
                };
                for (bit, received) in tables.received[..used].iter_mut().enumerate() {
                    let unasked = self.unasked(step, bit);
                    let mut entries = vec![Bits::zeros(count)];
                    for _ in 1..1 << wanted.len() {
                        let mut entry = Bits::zeros(unasked);
                        entry.extend(&answer.slice(at, count - unasked));
                        at += count - unasked;
                        entries.push(entry);
                    }
                    shift(&mut entries, &wanted);
                    received.xor_assign(&entries[0]);
                }
                self.looked_up(step, &tables.received);
                if let (Step::Leaves { blocks, .. }, Some(Below { bits, ots })) = (step, self.below.take()) {
                    // Its bit times its own share of what lets the carry through, and times the other's.
                    let lowest = self.generate.len() - blocks;
                    let mut carried = private_product(&ots, &bits, &answer.slice(at, self.n));
                    carried.xor_assign(&bits.and(&self.propagate[lowest]));
                    self.generate[lowest].xor_assign(&carried);
                }
            }
            Some(Asked::Products(masked)) => {
                let products = masked.multiply(answer.clone(), self.is_server);
                self.joined(step, products);
            }
            None => unreachable!("an answer follows a question"),
        }
    }

    /// Answers from tables of eight.
    fn answer_eight(&mut self, step: Step, entries: &[Bits], question: &Bits, message: &mut Bits) {
        let question: [Bits; 3] = self.planes_of(question);
        let (entries, question) = (array::from_fn(|v| entries[v].words()), question.each_ref().map(Bits::words));
        let (shares, planes) = if step == Step::First {
            let summands: [Bits; 3] = self.lowest();
            eights::answer(entries, question, |word| {
                eights::first(summands.each_ref().map(|summand| summand.words()[word]))
            })
        } else {
            let (summands, carry): ([Bits; 2], _) = (self.lowest(), self.generate.swap_remove(0));
            eights::answer(entries, question, |word| {
                eights::next(summands.each_ref().map(|summand| summand.words()[word]), carry.words()[word])
            })
        };
        for plane in planes.chunks_exact(shares.len().max(1)) {
            message.extend(&self.packed(plane.to_vec()));
        }
        self.generate = vec![self.packed(shares)];
    }

    /// Takes in an answer from tables of eight.
    fn take_eight(&mut self, wanted: &[Bits], received: Bits, answer: &Bits) {
        let planes: [Bits; 7] = self.planes_of(answer);
        let mut received = received.into_words();
        eights::take(&mut received, planes.each_ref().map(Bits::words), array::from_fn(|bit| wanted[bit].words()));
        self.generate = vec![self.packed(received)];
    }

    /// A bit of each comparison from each word of 64.
    fn packed(&self, words: Vec<u64>) -> Bits {
        Bits::from_words(words, self.n).expect("a word for 64 comparisons")
    }

    /// The planes that lie one behind the other in a message.
    fn planes_of<const N: usize>(&self, message: &Bits) -> [Bits; N] {
        array::from_fn(|plane| message.slice(plane * self.n, self.n))
    }

    /// Its summands' lowest bits, which are taken.
    fn lowest<const N: usize>(&mut self) -> [Bits; N] {
        let mut planes = self.planes.drain(..N);
        array::from_fn(|_| planes.next().expect("padded"))
    }

    /// How many of the looked up bits no step needs: nothing enters below the lowest block, so its propagate bit is never used.
    fn unasked(&self, step: Step, bit: usize) -> usize {
        if matches!(step, Step::Leaves { below: false, .. }) && bit == 1 { self.n } else { 0 }
    }

    /// What this party looks up: the bits of a number, the lowest first.
    fn wanted(&mut self, step: Step) -> Vec<Bits> {
        match step {
            Step::First => self.planes.drain(..3).collect(),
            Step::Next => self.planes.drain(..2).chain(self.generate.drain(..)).collect(),
            Step::Leaves { .. } | Step::Above(_) => self.blocks(),
            Step::Last => {
                let (g, p) = (&self.generate, &self.propagate);
                [&p[2], &g[1], &p[1], &g[0]].map(Clone::clone).to_vec()
            }
            Step::Join(_) => unreachable!("no lookup"),
        }
    }

    /// What the other party looks up, for each of its numbers: the bits of the result.
    fn functions(&mut self, step: Step) -> Vec<Vec<Bits>> {
        match step {
            Step::Leaves { .. } => {
                let [generate, mut propagate] = sums(&self.blocks());
                if let Some(below) = &self.below {
                    // The lowest block lets the carry from below through if this party's bit there is set as well.
                    let mut lets_through = below.bits.clone();
                    lets_through.extend(&Bits::zeros(propagate[0].len() - self.n).not());
                    propagate.iter_mut().for_each(|entry| *entry = entry.and(&lets_through));
                }
                vec![generate, propagate]
            }
            Step::Above(_) => {
                let [generate, propagate] = sums(&self.blocks());
                // What adds up to zero does so to ones alone if it is one less.
                let mut zero = propagate.clone();
                zero.rotate_right(1);
                vec![generate, propagate, zero]
            }
            Step::Last => {
                let (g, p) = (&self.generate, &self.propagate);
                let with = |bits: &Bits, number: usize, bit: usize| {
                    if number >> bit & 1 == 1 { bits.not() } else { bits.clone() }
                };
                let entry = |v: usize| {
                    let below = with(&p[1], v, 2).and(&with(&g[0], v, 3));
                    with(&p[2], v, 0).and(&with(&g[1], v, 1).xor(&below))
                };
                vec![(0..16).map(entry).collect()]
            }
            Step::First | Step::Next | Step::Join(_) => unreachable!("no lookup of many bits"),
        }
    }

    /// The bits of all blocks of four: the lowest of each, and so on.
    fn blocks(&mut self) -> Vec<Bits> {
        let planes = std::mem::take(&mut self.planes);
        (0..4).map(|bit| join(planes.iter().skip(bit).step_by(4))).collect()
    }

    /// Goes on with shares of what was looked up.
    fn looked_up(&mut self, step: Step, shares: &[Bits]) {
        match step {
            Step::Leaves { blocks, .. } => {
                // An empty span below two makes three.
                let empty = (blocks == 2).then(|| Bits::zeros(self.n));
                let spans = |shares: &Bits| -> Vec<Bits> {
                    let of_blocks = (0..blocks).map(|block| shares.slice(block * self.n, self.n));
                    empty.iter().cloned().chain(of_blocks).collect()
                };
                (self.generate, self.propagate) = (spans(&shares[0]), spans(&shares[1]));
            }
            Step::Above(blocks) => {
                let of_blocks = |shares: &Bits| (0..blocks).map(|block| shares.slice(block * self.n, self.n)).collect();
                (self.generate, self.propagate, self.zero) =
                    (of_blocks(&shares[0]), of_blocks(&shares[1]), of_blocks(&shares[2]));
            }
            Step::Last => self.generate = vec![self.generate[2].xor(&shares[0])],
            Step::First | Step::Next | Step::Join(_) => unreachable!("no lookup of many bits"),
        }
    }

    /// The operands of a join: `g = g_high ^ (p_high & g_low)` and `p = p_high & p_low`, of which nobody needs the lowest `p`.
    fn masked(&self, step: Step, (triples, correlated): (Triples, PairedTriples)) -> Masked {
        let Step::Join(pairs) = step else { unreachable!("no join") };
        let (g, p) = (&self.generate, &self.propagate);
        let high = join((1..pairs).map(|i| &p[2 * i + 1]));
        let low = [g, p].map(|bits| join((1..pairs).map(|i| &bits[2 * i])));
        Masked::new(triples, correlated, [&p[1], &g[0]], &high, low.each_ref())
    }

    /// Goes on with joined spans.
    fn joined(&mut self, step: Step, (lowest, products): (Bits, [Bits; 2])) {
        let Step::Join(pairs) = step else { unreachable!("no join") };
        let node = |which: usize, i: usize| products[which].slice((i - 1) * self.n, self.n);
        let carries = std::iter::once(lowest).chain((1..pairs).map(|i| node(0, i)));
        let generate = carries.enumerate().map(|(i, carry)| self.generate[2 * i + 1].xor(&carry));
        let propagate = std::iter::once(Bits::zeros(self.n)).chain((1..pairs).map(|i| node(1, i)));
        let generate = generate.chain(self.generate[2 * pairs..].iter().cloned()).collect();
        let propagate = propagate.chain(self.propagate[2 * pairs..].iter().cloned()).collect();
        (self.generate, self.propagate) = (generate, propagate);
    }
}

/// For every number `v` of as many bits as `planes` has, whether it and the number in `planes` carry, and whether they add up to
/// ones alone.
fn sums(planes: &[Bits]) -> [Vec<Bits>; 2] {
    let mut is = vec![Bits::zeros(planes[0].len()).not()];
    for plane in planes {
        let [clear, set] = [plane.not(), plane.clone()].map(|bit| is.iter().map(|is| is.and(&bit)).collect::<Vec<_>>());
        is = [clear, set].concat();
    }
    is.reverse();
    let mut carries = Bits::zeros(planes[0].len());
    let generate = [carries.clone()].into_iter().chain(is.iter().map(|is| {
        carries.xor_assign(is);
        carries.clone()
    }));
    [generate.take(is.len()).collect(), is.clone()]
}
