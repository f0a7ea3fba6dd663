//! Correlations from a dealer: the same stock without a protocol between the parties.
//!
//! Each party expands a seed; the client's stock is nothing else. The server's half must fit the client's, so the dealer,
//! who knows both seeds, sends it corrections: one bit for each AND, two for a pair of triples, one ring element for each
//! product. Whoever deals knows both parties' secrets.

use privet_prg::{Prg, Seed};
use privet_ring::{Bits, Modulus};

use crate::correlations::{PairedTriples, PrivateAnds, ProductsReceived, ProductsSent, Triples};
use crate::random::{BitsReceived, BitsSent};
use crate::{Demand, Error, Role, Stock};

impl Stock {
    /// Deals `demand`: the client's and the server's stock, for any ring.
    pub fn deal(demand: &Demand, prg: &mut Prg) -> (Self, Self) {
        let (client, server, ring) = (prg.seed(), prg.seed(), Modulus::new(64));
        let corrections = corrections(demand, &client, &server, ring);
        let of_server = Self::of_server(demand, &server, &corrections, ring);
        (Self::of_client(demand, &client), of_server.expect("corrections for this demand"))
    }

    /// The client's half of what [`corrections`] with its seed completes.
    pub fn of_client(demand: &Demand, seed: &Seed) -> Self {
        let mut prg = Prg::from_seed(seed);
        let choice = random_bits(demand.private_ands, &mut prg);
        let received = random_bits(demand.private_ands, &mut prg);
        let triples = {
            let mut part = || random_bits(demand.triples, &mut prg);
            Triples { a: part(), b: part(), c: part() }
        };
        let paired_triples = {
            let mut part = || random_bits(demand.paired_triples, &mut prg);
            PairedTriples { a: part(), b: [part(), part()], c: [part(), part()] }
        };
        let products_sent = {
            let mut part = || random_words(demand.products_sent_by_client, &mut prg);
            ProductsSent { rho: part(), share: part() }
        };
        let products_received = ProductsReceived {
            choice: random_bits(demand.products_sent_by_server, &mut prg),
            share: random_words(demand.products_sent_by_server, &mut prg),
        };
        let private_ands = PrivateAnds::Client(BitsReceived { choice, received });
        let taken = [0; 5];
        Self { role: Role::Client, private_ands, triples, paired_triples, products_sent, products_received, taken }
    }

    /// The server's half, from its seed and the dealer's corrections; products hold modulo `ring`.
    ///
    /// # Errors
    /// [`Error::InvalidStock`] if the corrections are not [`corrections_bytes`] long.
    pub fn of_server(demand: &Demand, seed: &Seed, corrections: &[u8], ring: Modulus) -> Result<Self, Error> {
        let malformed = || Error::InvalidStock { what: "the dealer's corrections have another length" };
        if corrections.len() != corrections_bytes(demand, ring) {
            return Err(malformed());
        }
        let mut rest = corrections;
        let mut take = |len: usize| {
            let (taken, left) = rest.split_at(len);
            rest = left;
            taken
        };
        let mut bits = |count: usize| Bits::from_bytes(take(count.div_ceil(8)), count).map_err(|_| malformed());
        let r0 = bits(demand.private_ands)?;
        let triples = bits(demand.triples)?;
        let pairs = [bits(demand.paired_triples)?, bits(demand.paired_triples)?];
        let mut words = |count: usize| ring.unpack(take(ring.packed_bytes(count)), count).map_err(|_| malformed());
        let (sent, received) = (words(demand.products_sent_by_server)?, words(demand.products_sent_by_client)?);

        let Free { difference, a, b, pair_a, pair_b, rho, choice } = Free::expand(demand, seed);
        let r1 = r0.xor(&difference);
        Ok(Self {
            role: Role::Server,
            private_ands: PrivateAnds::Server(BitsSent { r0, r1 }),
            triples: Triples { a, b, c: triples },
            paired_triples: PairedTriples { a: pair_a, b: pair_b, c: pairs },
            products_sent: ProductsSent { rho, share: sent },
            products_received: ProductsReceived { choice, share: received },
            taken: [0; 5],
        })
    }
}

/// What the server needs beyond its own seed for its stock to fit the client's; products hold modulo `ring`.
pub fn corrections(demand: &Demand, client: &Seed, server: &Seed, ring: Modulus) -> Vec<u8> {
    let client = Stock::of_client(demand, client);
    let Free { difference, a, b, pair_a, pair_b, rho, choice } = Free::expand(demand, server);
    let mut bytes = Vec::with_capacity(corrections_bytes(demand, ring));
    if let PrivateAnds::Client(BitsReceived { choice, received }) = &client.private_ands {
        bytes.extend(received.xor(&choice.and(&difference)).to_bytes());
    }
    let product = |a: &Bits, a_client: &Bits, b: &Bits, b_client: &Bits, c_client: &Bits| {
        a.xor(a_client).and(&b.xor(b_client)).xor(c_client).to_bytes()
    };
    let Triples { a: a_client, b: b_client, c: c_client } = &client.triples;
    bytes.extend(product(&a, a_client, &b, b_client, c_client));
    let PairedTriples { a: a_client, b: b_client, c: c_client } = &client.paired_triples;
    for i in 0..2 {
        bytes.extend(product(&pair_a, a_client, &pair_b[i], &b_client[i], &c_client[i]));
    }
    let ProductsReceived { choice: theirs, share } = &client.products_received;
    bytes.extend(ring.pack(&remainders(theirs, &rho, share)));
    let ProductsSent { rho: theirs, share } = &client.products_sent;
    bytes.extend(ring.pack(&remainders(&choice, theirs, share)));
    bytes
}

/// Length of [`corrections`].
pub fn corrections_bytes(demand: &Demand, ring: Modulus) -> usize {
    let bits = |count: usize| count.div_ceil(8);
    bits(demand.private_ands)
        + bits(demand.triples)
        + 2 * bits(demand.paired_triples)
        + ring.packed_bytes(demand.products_sent_by_server)
        + ring.packed_bytes(demand.products_sent_by_client)
}

/// What the server's seed alone decides.
struct Free {
    /// `r0 ^ r1` of its private ANDs.
    difference: Bits,
    a: Bits,
    b: Bits,
    pair_a: Bits,
    pair_b: [Bits; 2],
    rho: Vec<u64>,
    choice: Bits,
}

impl Free {
    fn expand(demand: &Demand, seed: &Seed) -> Self {
        let prg = &mut Prg::from_seed(seed);
        Self {
            difference: random_bits(demand.private_ands, prg),
            a: random_bits(demand.triples, prg),
            b: random_bits(demand.triples, prg),
            pair_a: random_bits(demand.paired_triples, prg),
            pair_b: [random_bits(demand.paired_triples, prg), random_bits(demand.paired_triples, prg)],
            rho: random_words(demand.products_sent_by_server, prg),
            choice: random_bits(demand.products_sent_by_client, prg),
        }
    }
}

/// `choice * rho - share`.
fn remainders(choice: &Bits, rho: &[u64], share: &[u64]) -> Vec<u64> {
    let product = |(choice, rho): (bool, &u64)| rho & u64::from(choice).wrapping_neg();
    choice.iter().zip(rho).map(product).zip(share).map(|(product, share)| product.wrapping_sub(*share)).collect()
}

fn random_bits(count: usize, prg: &mut Prg) -> Bits {
    Bits::from_words(random_words(count.div_ceil(64), prg), count).expect("one word per 64 bits")
}

fn random_words(count: usize, prg: &mut Prg) -> Vec<u64> {
    let mut words = vec![0; count];
    prg.fill_words(&mut words);
    words
}
