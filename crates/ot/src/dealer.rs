//! Correlations from a dealer whom both parties trust: the same stock without a protocol.

use privet_prg::Prg;
use privet_ring::Bits;

use crate::random::{BitsReceived, BitsSent, PairsReceived, PairsSent, WordsReceived, WordsSent};
use crate::stock::Ots;
use crate::{Demand, Role, Stock};

impl Stock {
    /// Deals `demand`: the client's and the server's stock. Whoever runs this knows both parties' secrets.
    pub fn deal(demand: &Demand, prg: &mut Prg) -> (Self, Self) {
        let (mut client, mut server) = (Ots::default(), Ots::default());
        (server.bits_sent, client.bits_received) = bit_ots(demand.bit_ots(Role::Server), prg);
        (client.bits_sent, server.bits_received) = bit_ots(demand.bit_ots(Role::Client), prg);
        (server.pairs_sent, client.pairs_received) = pair_ots(demand.paired_triples, prg);
        (client.pairs_sent, server.pairs_received) = pair_ots(demand.paired_triples, prg);
        let (sent, received) = word_ots(demand.word_ots(Role::Server), prg);
        server.products_sent.extend(&sent);
        client.products_received.extend(&received);
        let (sent, received) = word_ots(demand.word_ots(Role::Client), prg);
        client.products_sent.extend(&sent);
        server.products_received.extend(&received);
        (Self::assemble(Role::Client, demand, client), Self::assemble(Role::Server, demand, server))
    }
}

fn bit_ots(count: usize, prg: &mut Prg) -> (BitsSent, BitsReceived) {
    let (r0, r1, choice) = (random_bits(count, prg), random_bits(count, prg), random_bits(count, prg));
    let received = r0.xor(&r0.xor(&r1).and(&choice));
    (BitsSent { r0, r1 }, BitsReceived { choice, received })
}

fn pair_ots(count: usize, prg: &mut Prg) -> (PairsSent, PairsReceived) {
    let mut two = || [random_bits(count, prg), random_bits(count, prg)];
    let (r0, r1) = (two(), two());
    let choice = random_bits(count, prg);
    let received = [0, 1].map(|i| r0[i].xor(&r0[i].xor(&r1[i]).and(&choice)));
    (PairsSent { r0, r1 }, PairsReceived { choice, received })
}

fn word_ots(count: usize, prg: &mut Prg) -> (WordsSent, WordsReceived) {
    let (mut m0, mut m1) = (vec![0; count], vec![0; count]);
    prg.fill_words(&mut m0);
    prg.fill_words(&mut m1);
    let choice = random_bits(count, prg);
    let select = |((m0, m1), choice): ((&u64, &u64), bool)| m0 ^ (u64::from(choice).wrapping_neg() & (m0 ^ m1));
    let received = m0.iter().zip(&m1).zip(choice.iter()).map(select).collect();
    (WordsSent { m0, m1 }, WordsReceived { choice, received })
}

fn random_bits(count: usize, prg: &mut Prg) -> Bits {
    let mut words = vec![0; count.div_ceil(64)];
    prg.fill_words(&mut words);
    Bits::from_words(words, count).expect("one word per 64 bits")
}
