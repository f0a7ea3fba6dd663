//! The relations between the two parties' correlations, over the real protocol and from a dealer.

use crate::parties::{generate, of_every_width, products_hold, set_up, take_products};
use privet_ot::{
    Demand, Error, FieldBits, Kind, OneHotCounts, PrivateAnds, ProductCounts, Role, Shape, Stock, TableCounts, dealer,
    shift,
};
use privet_prg::{Prg, Seed};
use privet_ring::{Bits, Modulus};
use proptest::prelude::*;

const FIELDS: [FieldBits; 4] = [FieldBits::One, FieldBits::Two, FieldBits::Four, FieldBits::Eight];

/// Takes everything out of two matching stocks and asserts every relation.
fn assert_relations(client: &mut Stock, server: &mut Stock, demand: &Demand) -> Result<(), Error> {
    assert_eq!((client.left(), server.left()), (*demand, *demand));

    let (PrivateAnds::Client(received), PrivateAnds::Server(sent)) =
        (client.take_private_ands(demand.private_ands)?, server.take_private_ands(demand.private_ands)?)
    else {
        panic!("private ANDs go from the server to the client");
    };
    assert_eq!(sent.r0.len(), demand.private_ands);
    let chosen = sent.r0.xor(&sent.r0.xor(&sent.r1).and(&received.choice));
    assert_eq!(received.received, chosen);

    let (first, second) = (client.take_triples(demand.triples)?, server.take_triples(demand.triples)?);
    assert_eq!(first.a.len(), demand.triples);
    assert_eq!(first.a.xor(&second.a).and(&first.b.xor(&second.b)), first.c.xor(&second.c));

    let count = demand.paired_triples;
    let (first, second) = (client.take_paired_triples(count)?, server.take_paired_triples(count)?);
    assert_eq!(first.a.len(), count);
    for i in 0..2 {
        assert_eq!(first.a.xor(&second.a).and(&first.b[i].xor(&second.b[i])), first.c[i].xor(&second.c[i]));
    }

    for shape in Shape::ALL {
        assert_tables(server, client, shape, demand.tables_sent_by_server.count(shape))?;
        assert_tables(client, server, shape, demand.tables_sent_by_client.count(shape))?;
    }
    for (bits, count) in demand.one_hots.all() {
        assert_one_hots([&mut *client, &mut *server], bits, count)?;
    }
    for (ring, sent, received) in take_products(server, client, demand.products_sent_by_server)?
        .into_iter()
        .chain(take_products(client, server, demand.products_sent_by_client)?)
    {
        assert!(products_hold(ring, &sent, &received), "products of {} bits", ring.bits());
    }
    Ok(())
}

fn assert_one_hots(parties: [&mut Stock; 2], bits: u32, count: usize) -> Result<(), Error> {
    let [client, server] = parties.map(|party| party.take_one_hots(bits, count));
    let (client, server) = (client?, server?);
    assert_eq!((client.count(), client.number.len(), client.entries.len()), (count, bits as usize, 1 << bits));
    let number: Vec<Bits> = client.number.iter().zip(&server.number).map(|(a, b)| a.xor(b)).collect();
    let mut entries: Vec<Bits> = client.entries.iter().zip(&server.entries).map(|(a, b)| a.xor(b)).collect();
    shift(&mut entries, &number);
    assert_eq!(entries[0], Bits::zeros(count).not());
    assert!(entries[1..].iter().all(|entry| *entry == Bits::zeros(count)));
    Ok(())
}

fn assert_tables(sender: &mut Stock, receiver: &mut Stock, shape: Shape, count: usize) -> Result<(), Error> {
    let (mut sent, received) = (sender.take_tables_sent(shape, count)?, receiver.take_tables_received(shape, count)?);
    assert_eq!((sent.count(), received.count()), (count, count));
    shift(&mut sent.entries, &received.choice);
    assert_eq!(sent.entries[..shape.entry_bits()], received.received[..]);
    Ok(())
}

fn near_half(bits: &Bits) -> bool {
    let ones = bits.iter().filter(|&bit| bit).count() as f64;
    let half = bits.len() as f64 / 2.0;
    // Six standard deviations of a binomial count.
    (ones - half).abs() < 3.0 * (bits.len() as f64).sqrt()
}

#[test]
fn every_relation_holds_for_every_field() -> Result<(), Error> {
    for field in FIELDS {
        let (mut client, mut server) = set_up(field)?;
        for (private_ands, triples, products_sent_by_server, products_sent_by_client) in
            [(1000, 70_000, 300, 2), (0, 0, 0, 0), (1, 0, 65_537, 0), (0, 0, 0, 129), (200_001, 1, 0, 64)]
        {
            let demand = Demand {
                private_ands,
                triples,
                paired_triples: triples / 3,
                products_sent_by_server: of_every_width(products_sent_by_server),
                products_sent_by_client: of_every_width(products_sent_by_client),
                tables_sent_by_server: TableCounts { eights: 900, sixteens: 65 },
                tables_sent_by_client: TableCounts { eights: 1, sixteens: 20_000 },
                one_hots: OneHotCounts::of(8, private_ands / 9) + OneHotCounts::of(12, products_sent_by_client),
            };
            let (client_stock, server_stock) = generate(&mut client, &mut server, &demand);
            assert_relations(&mut client_stock?, &mut server_stock?, &demand)?;
        }
    }
    Ok(())
}

#[test]
fn a_demand_of_many_batches_holds() -> Result<(), Error> {
    let (mut client, mut server) = set_up(FieldBits::Four)?;
    let demand = Demand { private_ands: 100, triples: 2_200_000, ..Demand::default() };
    let (client_stock, server_stock) = generate(&mut client, &mut server, &demand);
    assert_relations(&mut client_stock?, &mut server_stock?, &demand)
}

#[test]
fn bits_and_elements_look_uniform() -> Result<(), Error> {
    let demand = Demand {
        private_ands: 50_000,
        triples: 50_000,
        paired_triples: 50_000,
        products_sent_by_server: ProductCounts::of(20, 20_000) + ProductCounts::of(64, 20_000),
        ..Demand::NONE
    };
    let (mut client, mut server) = set_up(FieldBits::Four)?;
    let (client_stock, server_stock) = generate(&mut client, &mut server, &demand);
    for mut stock in [client_stock?, server_stock?] {
        let (x, y) = match stock.take_private_ands(50_000)? {
            PrivateAnds::Server(ots) => (ots.r0.clone(), ots.r1.clone()),
            PrivateAnds::Client(ots) => (ots.choice.clone(), ots.received.clone()),
        };
        let triples = stock.take_triples(50_000)?;
        for bits in [&x, &y, &x.xor(&y), &triples.a, &triples.b, &triples.c, &triples.a.xor(&triples.b)] {
            assert!(near_half(bits));
        }
        let pairs = stock.take_paired_triples(50_000)?;
        let ([b0, b1], [c0, c1]) = (&pairs.b, &pairs.c);
        for bits in [&pairs.a, b0, b1, c0, c1, &b0.xor(b1), &c0.xor(c1), &pairs.a.xor(b0), &pairs.a.xor(b1)] {
            assert!(near_half(bits));
        }
        for (asked, width) in [(20, 24), (64, 64)] {
            let words = match stock.role() {
                Role::Server => {
                    let products = stock.take_products_sent(asked, 20_000)?;
                    [&*products.rho.all().to_words(), &products.share.all().to_words()].concat()
                }
                Role::Client => stock.take_products_received(asked, 20_000)?.share.all().to_words().to_vec(),
            };
            for bit in 0..width {
                let plane: Vec<bool> = words.iter().map(|word| word >> bit & 1 == 1).collect();
                assert!(near_half(&Bits::from_bools(&plane)), "bit {bit}");
            }
        }
    }
    Ok(())
}

#[test]
fn two_generations_differ() -> Result<(), Error> {
    let demand = Demand {
        private_ands: 500,
        triples: 500,
        paired_triples: 500,
        products_sent_by_server: ProductCounts::of(33, 50),
        products_sent_by_client: ProductCounts::of(64, 50),
        tables_sent_by_server: TableCounts { eights: 900, sixteens: 65 },
        tables_sent_by_client: TableCounts { eights: 1, sixteens: 20_000 },
        one_hots: OneHotCounts::of(7, 100),
    };
    let (mut client, mut server) = set_up(FieldBits::Four)?;
    let (first, _) = generate(&mut client, &mut server, &demand);
    let (second, _) = generate(&mut client, &mut server, &demand);
    let (mut first, mut second) = (first?, second?);
    let (one, other) = (first.take_triples(500)?, second.take_triples(500)?);
    assert!(one.a != other.a && one.b != other.b && one.c != other.c);
    let (one, other) = (first.take_paired_triples(500)?, second.take_paired_triples(500)?);
    assert!(one.a != other.a && one.b != other.b && one.c != other.c);
    let (one, other) = (first.take_products_sent(64, 50)?, second.take_products_sent(64, 50)?);
    let (one, other) = (one.rho.all().to_words(), other.rho.all().to_words());
    assert!(one.iter().all(|rho| !other.contains(rho)));
    let (one, other) = (first.take_one_hots(7, 100)?, second.take_one_hots(7, 100)?);
    assert!(one.number.iter().zip(&other.number).all(|(one, other)| one != other));
    assert_ne!(one.entries, other.entries);
    assert_ne!(first.take_private_ands(500)?, second.take_private_ands(500)?);
    Ok(())
}

#[test]
fn no_correlation_is_handed_out_twice() -> Result<(), Error> {
    let demand = Demand {
        private_ands: 10,
        triples: 300,
        paired_triples: 5,
        products_sent_by_server: ProductCounts::of(20, 7),
        products_sent_by_client: ProductCounts::of(20, 8) + ProductCounts::of(40, 1),
        tables_sent_by_server: TableCounts { eights: 9, sixteens: 0 },
        tables_sent_by_client: TableCounts { eights: 0, sixteens: 3 },
        one_hots: OneHotCounts::of(6, 11),
    };
    let mut prg = Prg::from_seed(&Seed::from_bytes([8; 16]));
    let (_, mut whole) = Stock::deal(&demand, &mut Prg::from_seed(&Seed::from_bytes([8; 16])));
    let (_, mut stock) = Stock::deal(&demand, &mut prg);
    let all = whole.take_triples(300)?;
    assert_eq!(stock.take_triples(100)?.a, all.a.slice(0, 100));
    assert_eq!(stock.take_triples(150)?.b, all.b.slice(100, 150));
    let result = stock.take_triples(51);
    assert!(matches!(result, Err(Error::StockExhausted { asked: 51, left: 50, kind: Kind::Triples })));
    assert_eq!(stock.take_triples(50)?.c, all.c.slice(250, 50));
    assert!(matches!(stock.take_triples(1), Err(Error::StockExhausted { left: 0, .. })));

    stock.take_private_ands(10)?;
    assert!(matches!(stock.take_private_ands(1), Err(Error::StockExhausted { kind: Kind::PrivateAnds, .. })));
    stock.take_paired_triples(5)?;
    assert!(matches!(stock.take_paired_triples(1), Err(Error::StockExhausted { kind: Kind::PairedTriples, .. })));
    let all = whole.take_products_sent(17, 7)?;
    let parts = [stock.take_products_sent(24, 3)?, stock.take_products_sent(18, 4)?];
    assert_eq!(all.rho.all().to_words()[3..], parts[1].rho.all().to_words()[..]);
    assert_eq!(all.share.all().to_words()[..3], parts[0].share.all().to_words()[..]);
    assert!(matches!(stock.take_products_sent(20, 1), Err(Error::StockExhausted { kind: Kind::ProductsSent(_), .. })));
    stock.take_products_received(20, 8)?;
    let result = stock.take_products_received(20, usize::MAX);
    assert!(matches!(result, Err(Error::StockExhausted { kind: Kind::ProductsReceived(_), left: 0, .. })));
    stock.take_products_received(40, 1)?;
    let all = whole.take_tables_sent(Shape::Eight, 9)?;
    assert_eq!(stock.take_tables_sent(Shape::Eight, 4)?.entries[0], all.entries[0].slice(0, 4));
    assert_eq!(stock.take_tables_sent(Shape::Eight, 5)?.entries[7], all.entries[7].slice(4, 5));
    stock.take_tables_received(Shape::Sixteen, 3)?;
    let all = whole.take_one_hots(6, 11)?;
    assert_eq!(stock.take_one_hots(6, 5)?.entries[63], all.entries[63].slice(0, 5));
    assert_eq!(stock.take_one_hots(6, 6)?.number[5], all.number[5].slice(5, 6));
    let result = stock.take_one_hots(6, 1).map(drop);
    assert!(matches!(result, Err(Error::StockExhausted { kind: Kind::OneHots(6), .. })));
    for result in
        [stock.take_tables_sent(Shape::Eight, 1).map(drop), stock.take_tables_received(Shape::Sixteen, 1).map(drop)]
    {
        assert!(matches!(result, Err(Error::StockExhausted { left: 0, .. })));
    }
    assert_eq!(stock.left(), Demand::default());
    Ok(())
}

proptest! {
    #[test]
    fn a_dealer_keeps_every_relation(
        counts in [0_usize..200, 0_usize..200, 0_usize..100, 0_usize..100], seed: [u8; 16],
    ) {
        let [private_ands, triples, products_sent_by_server, products_sent_by_client] = counts;
        let demand = Demand { private_ands, triples, paired_triples: triples / 3,
            products_sent_by_server: of_every_width(products_sent_by_server),
            products_sent_by_client: of_every_width(products_sent_by_client),
            tables_sent_by_server: TableCounts { eights: triples, sixteens: private_ands },
            tables_sent_by_client: TableCounts { eights: products_sent_by_client, sixteens: triples },
            one_hots: OneHotCounts::of(6, private_ands) + OneHotCounts::of(9, triples),
        };
        let (mut client, mut server) = Stock::deal(&demand, &mut Prg::from_seed(&Seed::from_bytes(seed)));
        prop_assert!(assert_relations(&mut client, &mut server, &demand).is_ok());
    }

    #[test]
    fn corrections_complete_a_pair_of_seeds(
        counts in [0_usize..90, 0_usize..90, 0_usize..90, 0_usize..90], bits in 1_u32..=64, seeds: [[u8; 16]; 2],
    ) {
        let [private_ands, triples, products_sent_by_server, products_sent_by_client] = counts;
        let demand = Demand { private_ands, triples, paired_triples: triples / 3,
            products_sent_by_server: of_every_width(products_sent_by_server),
            products_sent_by_client: of_every_width(products_sent_by_client),
            tables_sent_by_server: TableCounts { eights: triples, sixteens: private_ands },
            tables_sent_by_client: TableCounts { eights: products_sent_by_client, sixteens: triples },
            one_hots: OneHotCounts::of(6, private_ands) + OneHotCounts::of(9, triples),
        };
        let (seeds, ring) = (seeds.map(Seed::from_bytes), Modulus::new(bits));
        let corrections = dealer::corrections(&demand, &seeds[0], &seeds[1], ring);
        prop_assert_eq!(corrections.len(), dealer::corrections_bytes(&demand, ring));
        let short = Stock::of_server(&demand, &seeds[1], corrections.split_last().map_or(&[], |(_, rest)| rest), ring);
        prop_assert!(short.is_err() || corrections.is_empty());

        let mut client = Stock::of_client(&demand, &seeds[0]);
        let mut server = Stock::of_server(&demand, &seeds[1], &corrections, ring).unwrap();
        let by_server = take_products(&mut server, &mut client, demand.products_sent_by_server).unwrap();
        let by_client = take_products(&mut client, &mut server, demand.products_sent_by_client).unwrap();
        for (width, sent, received) in by_server.iter().chain(&by_client) {
            prop_assert!(products_hold(Modulus::new(ring.bits().min(width.bits())), sent, received));
        }
    }
}
