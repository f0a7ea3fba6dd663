//! Correlations from a dealer: the same stock without a protocol between the parties.
//!
//! Each party expands a seed; the client's stock is nothing else. The server's half must fit the client's, so the dealer,
//! who knows both seeds, sends it corrections: one bit for each AND, two for a pair of triples, one ring element for each
//! product, of its width at most, an entry for each table, a bit for each of a one-hot vector. Whoever deals knows both parties' secrets.

use privet_prg::{Prg, Seed, Wiped};
use privet_ring::{Bits, Modulus};

use crate::correlations::{PairedTriples, PrivateAnds, ProductsReceived, ProductsSent, Triples};
use crate::one_hots::{self, OneHots};
use crate::packed::{Packed, PackedRef, Width};
use crate::random::{BitsReceived, BitsSent};
use crate::stock::{Products, Tables};
use crate::tables::shift;
use crate::{Demand, Error, Kind, ProductCounts, Role, Shape, Stock, TableCounts, TablesReceived, TablesSent};

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
        let products = Products {
            sent: Width::ALL.map(|width| {
                let mut part = || Packed::random(width, demand.products_sent_by_client.count(width), &mut prg);
                ProductsSent { rho: part(), share: part() }
            }),
            received: Width::ALL.map(|width| {
                let count = demand.products_sent_by_server.count(width);
                ProductsReceived { choice: random_bits(count, &mut prg), share: Packed::random(width, count, &mut prg) }
            }),
        };
        let tables = Tables {
            sent: Shape::ALL.map(|shape| TablesSent {
                entries: planes(shape.sent_bits(), demand.tables_sent_by_client.count(shape), &mut prg),
            }),
            received: Shape::ALL.map(|shape| {
                let count = demand.tables_sent_by_server.count(shape);
                let choice = planes(shape.choice_bits(), count, &mut prg);
                TablesReceived { choice, received: planes(shape.entry_bits(), count, &mut prg) }
            }),
        };
        let one_hots = one_hots(demand, &mut prg);
        let private_ands = PrivateAnds::Client(BitsReceived { choice, received });
        let (role, is_of_words, taken) = (Role::Client, false, [0; Kind::COUNT]);
        Self { role, private_ands, triples, paired_triples, products, is_of_words, tables, one_hots, taken }
    }

    /// The server's half, from its seed and the dealer's corrections; products hold modulo `ring`, or
    /// what fits their width.
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
            let (bytes, tail) = rest.split_at(len);
            rest = tail;
            bytes
        };
        let mut bits = |count: usize| Bits::from_bytes(take(count.div_ceil(8)), count).map_err(|_| malformed());
        let r0 = bits(demand.private_ands)?;
        let triples = bits(demand.triples)?;
        let pairs = [bits(demand.paired_triples)?, bits(demand.paired_triples)?];
        let (sent, received) = {
            let mut shares = |counts: ProductCounts| -> Result<Vec<Packed>, Error> {
                let of = |(width, count)| {
                    let ring = corrected(ring, width);
                    let words = ring.unpack(take(ring.packed_bytes(count)), count).map_err(|_| malformed())?;
                    Ok(Packed::of(width, &Wiped::from(words)))
                };
                counts.all().map(of).collect()
            };
            (shares(demand.products_sent_by_server)?, shares(demand.products_sent_by_client)?)
        };
        let mut bits = |count: usize| Bits::from_bytes(take(count.div_ceil(8)), count).map_err(|_| malformed());
        let mut tables = |counts: TableCounts| -> Result<[Vec<Bits>; 2], Error> {
            let mut of = |shape: Shape| -> Result<Vec<Bits>, Error> {
                (0..shape.entry_bits()).map(|_| bits(counts.count(shape))).collect()
            };
            Ok([of(Shape::Eight)?, of(Shape::Sixteen)?])
        };
        let first_entries = tables(demand.tables_sent_by_server)?;
        let entries_received = tables(demand.tables_sent_by_client)?;
        let vectors = demand
            .one_hots
            .all()
            .map(|(size, count)| (0..1 << size).map(|_| bits(count)).collect::<Result<Vec<Bits>, Error>>());
        let vectors = vectors.collect::<Result<Vec<_>, _>>()?;

        let Free { difference, a, b, pair_a, pair_b, rho, choice, mut differences, table_choices, numbers } =
            Free::expand(demand, seed);
        let r1 = r0.xor(&difference);
        for (entries, first) in differences.iter_mut().zip(&first_entries) {
            for entry in entries.chunks_exact_mut(first.len()) {
                entry.iter_mut().zip(first).for_each(|(entry, first)| entry.xor_assign(first));
            }
        }
        let [eights, sixteens] = entries_received;
        let [choice_of_eights, choice_of_sixteens] = table_choices;
        let tables = Tables {
            sent: differences.map(|entries| TablesSent { entries }),
            received: [
                TablesReceived { choice: choice_of_eights, received: eights },
                TablesReceived { choice: choice_of_sixteens, received: sixteens },
            ],
        };
        let mut products_sent = rho.into_iter().zip(sent).map(|(rho, share)| ProductsSent { rho, share });
        let mut products_received =
            choice.into_iter().zip(received).map(|(choice, share)| ProductsReceived { choice, share });
        let products = Products {
            sent: Width::ALL.map(|_| products_sent.next().expect("products of every width")),
            received: Width::ALL.map(|_| products_received.next().expect("products of every width")),
        };
        let mut one_hots = numbers.into_iter().zip(vectors).map(|(number, entries)| OneHots { number, entries });
        Ok(Self {
            role: Role::Server,
            private_ands: PrivateAnds::Server(BitsSent { r0, r1 }),
            triples: Triples { a, b, c: triples },
            paired_triples: PairedTriples { a: pair_a, b: pair_b, c: pairs },
            products,
            is_of_words: false,
            tables,
            one_hots: std::array::from_fn(|_| one_hots.next().expect("vectors of every length")),
            taken: [0; Kind::COUNT],
        })
    }
}

/// What the server needs beyond its own seed for its stock to fit the client's; products hold modulo `ring`.
pub fn corrections(demand: &Demand, client: &Seed, server: &Seed, ring: Modulus) -> Vec<u8> {
    let client = Stock::of_client(demand, client);
    let Free { difference, a, b, pair_a, pair_b, rho, choice, mut differences, table_choices, numbers } =
        Free::expand(demand, server);
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
    for (ProductsReceived { choice, share }, rho) in client.products.received.iter().zip(&rho) {
        bytes.extend(corrected(ring, rho.width()).pack(&remainders(choice, rho.all(), share.all())));
    }
    for (ProductsSent { rho, share }, choice) in client.products.sent.iter().zip(&choice) {
        bytes.extend(corrected(ring, rho.width()).pack(&remainders(choice, rho.all(), share.all())));
    }
    for (entries, tables) in differences.iter_mut().zip(&client.tables.received) {
        shift(entries, &tables.choice);
        entries.iter().zip(&tables.received).for_each(|(entry, received)| bytes.extend(entry.xor(received).to_bytes()));
    }
    for (tables, choice) in client.tables.sent.iter().zip(&table_choices) {
        let mut entries = tables.entries.clone();
        shift(&mut entries, choice);
        entries[..entries.len() >> choice.len()].iter().for_each(|entry| bytes.extend(entry.to_bytes()));
    }
    for (OneHots { number: client_number, entries }, number) in client.one_hots.iter().zip(&numbers) {
        // Entry 0 is set, and moves to the place of the number.
        let mut vectors = vec![Bits::zeros(entries[0].len()); entries.len()];
        vectors[0] = vectors[0].not();
        shift(&mut vectors, &client_number.iter().zip(number).map(|(a, b)| a.xor(b)).collect::<Vec<_>>());
        vectors.iter().zip(entries).for_each(|(vector, entry)| bytes.extend(vector.xor(entry).to_bytes()));
    }
    bytes
}

/// Length of [`corrections`].
pub fn corrections_bytes(demand: &Demand, ring: Modulus) -> usize {
    let bits = |count: usize| count.div_ceil(8);
    bits(demand.private_ands)
        + bits(demand.triples)
        + 2 * bits(demand.paired_triples)
        + [demand.products_sent_by_server, demand.products_sent_by_client]
            .into_iter()
            .flat_map(ProductCounts::all)
            .map(|(width, count)| corrected(ring, width).packed_bytes(count))
            .sum::<usize>()
        + [Role::Server, Role::Client]
            .into_iter()
            .flat_map(|sender| Shape::ALL.map(|shape| shape.entry_bits() * bits(demand.tables(sender).count(shape))))
            .sum::<usize>()
        + demand.one_hots.all().map(|(size, count)| bits(count) << size).sum::<usize>()
}

/// Modulo what the server's shares of products of this width are right.
fn corrected(ring: Modulus, width: Width) -> Modulus {
    Modulus::new(ring.bits().min(width.ring().bits()))
}

/// What the server's seed alone decides.
struct Free {
    /// `r0 ^ r1` of its private ANDs.
    difference: Bits,
    a: Bits,
    b: Bits,
    pair_a: Bits,
    pair_b: [Bits; 2],
    /// Of products that it sends, by width.
    rho: [Packed; Width::COUNT],
    /// Of products that it receives, by width.
    choice: [Bits; Width::COUNT],
    /// Of the tables that it sends, by shape: what each entry is more than the first.
    differences: [Vec<Bits>; 2],
    /// Its choices of the tables that it receives.
    table_choices: [Vec<Bits>; 2],
    /// Its shares of the numbers of one-hot vectors, by length.
    numbers: Vec<Vec<Bits>>,
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
            rho: Width::ALL.map(|width| Packed::random(width, demand.products_sent_by_server.count(width), prg)),
            choice: Width::ALL.map(|width| random_bits(demand.products_sent_by_client.count(width), prg)),
            differences: Shape::ALL.map(|shape| {
                let (count, first) = (demand.tables_sent_by_server.count(shape), shape.entry_bits());
                let mut entries = vec![Bits::zeros(count); first];
                entries.extend(planes(shape.sent_bits() - first, count, prg));
                entries
            }),
            table_choices: Shape::ALL
                .map(|shape| planes(shape.choice_bits(), demand.tables_sent_by_client.count(shape), prg)),
            numbers: demand.one_hots.all().map(|(size, count)| planes(size as usize, count, prg)).collect(),
        }
    }
}

/// The client's shares of one-hot vectors, by length.
fn one_hots(demand: &Demand, prg: &mut Prg) -> [OneHots; one_hots::COUNT] {
    let mut vectors = one_hots::none();
    for (vectors, (size, count)) in vectors.iter_mut().zip(demand.one_hots.all()) {
        *vectors = OneHots { number: planes(size as usize, count, prg), entries: planes(1 << size, count, prg) };
    }
    vectors
}

/// `choice * rho - share`.
fn remainders(choice: &Bits, rho: PackedRef<'_>, share: PackedRef<'_>) -> Vec<u64> {
    let product = |(choice, rho): (bool, u64)| rho & u64::from(choice).wrapping_neg();
    let products = choice.iter().zip(rho.iter()).map(product);
    products.zip(share.iter()).map(|(product, share)| product.wrapping_sub(share)).collect()
}

fn random_bits(count: usize, prg: &mut Prg) -> Bits {
    Bits::from_words(random_words(count.div_ceil(64), prg), count).expect("one word per 64 bits")
}

fn planes(planes: usize, count: usize, prg: &mut Prg) -> Vec<Bits> {
    (0..planes).map(|_| random_bits(count, prg)).collect()
}

fn random_words(count: usize, prg: &mut Prg) -> Vec<u64> {
    let mut words = vec![0; count];
    prg.fill_words(&mut words);
    words
}
