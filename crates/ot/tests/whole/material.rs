//! A stock as bytes: every stock comes back, everything else is refused.

use crate::parties::of_every_width;
use privet_ot::{
    Demand, Error, OneHotCounts, ProductCounts, Role, STOCK_HEADER_BYTES, Shape, Stock, TableCounts, Width,
};
use privet_prg::{Prg, Seed};
use proptest::prelude::*;

fn deal(demand: &Demand) -> (Stock, Stock) {
    Stock::deal(demand, &mut Prg::from_seed(&Seed::from_bytes([1; 16])))
}

const DEMAND: Demand = Demand {
    private_ands: 13,
    triples: 70,
    paired_triples: 9,
    products_sent_by_server: ProductCounts::of(20, 3),
    products_sent_by_client: ProductCounts::of(33, 5),
    tables_sent_by_server: TableCounts { eights: 11, sixteens: 2 },
    tables_sent_by_client: TableCounts { eights: 0, sixteens: 17 },
    one_hots: OneHotCounts::NONE,
};

/// How many counts there are.
const COUNTS: usize = (STOCK_HEADER_BYTES as usize - 14) / 8;

/// Everything that is left in a stock.
fn drain(stock: &mut Stock) -> Result<impl PartialEq + std::fmt::Debug + use<>, Error> {
    let left = stock.left();
    let (sent, received) = (left.products(stock.role()), left.products(stock.role().peer()));
    let (tables_sent, tables_received) = (left.tables(stock.role()), left.tables(stock.role().peer()));
    let one_hots: Vec<_> = left.one_hots.all().map(|(bits, count)| stock.take_one_hots(bits, count)).collect();
    Ok((
        one_hots.into_iter().collect::<Result<Vec<_>, _>>()?,
        Shape::ALL.map(|shape| stock.take_tables_sent(shape, tables_sent.count(shape)).expect("enough")),
        Shape::ALL.map(|shape| stock.take_tables_received(shape, tables_received.count(shape)).expect("enough")),
        stock.take_private_ands(left.private_ands)?,
        stock.take_triples(left.triples)?,
        stock.take_paired_triples(left.paired_triples)?,
        Width::ALL.map(|width| {
            let bits = width.ring().bits();
            stock.take_products_sent(bits, sent.count(width)).expect("enough")
        }),
        Width::ALL.map(|width| {
            let bits = width.ring().bits();
            stock.take_products_received(bits, received.count(width)).expect("enough")
        }),
    ))
}

proptest! {
    #[test]
    fn what_is_left_comes_back(counts in [0_usize..200, 0_usize..200, 0_usize..200, 0_usize..150, 0_usize..150], part in 0.0..=1.0) {
        let [private_ands, triples, paired_triples, by_server, by_client] = counts;
        let [products_sent_by_server, products_sent_by_client] = [by_server, by_client].map(of_every_width);
        let demand = Demand { private_ands, triples, paired_triples, products_sent_by_server, products_sent_by_client,
            tables_sent_by_server: TableCounts { eights: triples, sixteens: private_ands },
            tables_sent_by_client: TableCounts { eights: private_ands, sixteens: paired_triples },
            one_hots: OneHotCounts::of(8, triples) + OneHotCounts::of(6, by_client) };
        let some = |count: usize| (count as f64 * part) as usize;
        let (client, server) = deal(&demand);
        for mut stock in [client, server] {
            stock.take_private_ands(some(private_ands)).expect("enough");
            stock.take_triples(some(triples)).expect("enough");
            let sent = stock.left().tables(stock.role());
            stock.take_tables_sent(Shape::Sixteen, some(sent.sixteens)).expect("enough");
            stock.take_one_hots(8, some(triples)).expect("enough");
            stock.take_paired_triples(some(paired_triples)).expect("enough");
            for (width, count) in stock.left().products(stock.role()).all() {
                stock.take_products_sent(width.ring().bits(), some(count)).expect("enough");
            }
            for (width, count) in stock.left().products(stock.role().peer()).all() {
                stock.take_products_received(width.ring().bits(), some(count)).expect("enough");
            }
            let bytes = stock.to_bytes();
            prop_assert_eq!(bytes[12], 7);
            let mut read = Stock::from_bytes(&bytes).expect("its own bytes");
            prop_assert_eq!(read.role(), stock.role());
            prop_assert_eq!(read.left(), stock.left());
            prop_assert_eq!(drain(&mut read).expect("enough"), drain(&mut stock).expect("enough"));
            // In the memory of another stock, of either party, it is the same.
            for spare in [deal(&DEMAND).0, deal(&demand).1] {
                let mut copy = Stock::read(&mut &bytes[..], bytes.len() as u64, spare).expect("its own bytes");
                prop_assert_eq!(copy.to_bytes(), &bytes[..]);
                prop_assert_eq!(drain(&mut copy).is_ok(), true);
            }
        }
    }

    #[test]
    fn arbitrary_bytes_are_refused(bytes: Vec<u8>) {
        prop_assert!(Stock::from_bytes(&bytes).is_err());
    }

    #[test]
    fn arbitrary_counts_are_refused(counts: [u64; COUNTS]) {
        let mut bytes = deal(&DEMAND).0.to_bytes();
        for (at, count) in counts.iter().enumerate() {
            bytes[14 + 8 * at..22 + 8 * at].copy_from_slice(&count.to_le_bytes());
        }
        prop_assert!(Stock::from_bytes(&bytes).is_err());
    }
}

#[test]
fn every_other_length_is_refused() {
    let bytes = deal(&DEMAND).1.to_bytes();
    for len in 0..bytes.len() {
        assert!(matches!(Stock::from_bytes(&bytes[..len]), Err(Error::InvalidStock { .. })), "{len} bytes");
    }
    assert!(matches!(Stock::from_bytes(&[&bytes[..], &[0]].concat()), Err(Error::InvalidStock { .. })));
}

#[test]
fn a_source_that_fails_differs_from_one_that_has_something_else() {
    let bytes = deal(&DEMAND).1.to_bytes();
    // A file may be shorter than it was said to be.
    for len in [0, 20, 100, bytes.len() - 1] {
        let read = Stock::read(&mut &bytes[..len], bytes.len() as u64, Stock::empty(Role::Server));
        assert!(matches!(read, Err(Error::Unreadable { .. })), "{len} bytes");
    }
}

#[test]
fn a_changed_header_is_refused() {
    let bytes = deal(&DEMAND).1.to_bytes();
    for at in 0..13 {
        let mut copy = bytes.clone();
        copy[at] ^= 1;
        assert!(matches!(Stock::from_bytes(&copy), Err(Error::InvalidStock { .. })), "byte {at}");
    }
    let mut copy = bytes;
    copy[13] = 2;
    assert!(matches!(Stock::from_bytes(&copy), Err(Error::InvalidStock { .. })));
}

#[test]
fn a_count_that_the_length_does_not_bear_out_is_refused_before_there_is_room_for_it() {
    let bytes = deal(&DEMAND).0.to_bytes();
    for at in 0..COUNTS {
        // More than there is memory for, and one more than there are.
        for count in [1 << 61, 1 << 40, u64::from(bytes[14 + 8 * at]) + 1] {
            let mut copy = bytes.clone();
            copy[14 + 8 * at..22 + 8 * at].copy_from_slice(&count.to_le_bytes());
            let read = Stock::from_bytes(&copy);
            let fits = count <= 255 && read.is_ok();
            assert!(fits || matches!(read, Err(Error::InvalidStock { .. })), "count {at}");
        }
    }
}

/// A stock as version 2 has it: counts of products of words alone.
fn of_version_2(stock: &Stock) -> Vec<u8> {
    let bytes = stock.to_bytes();
    let counts = [0, 1, 2, 2 + 8, 2 + 16].map(|at| &bytes[14 + 8 * at..22 + 8 * at]);
    [&bytes[..12], &[2], &bytes[13..14], &counts.concat(), &bytes[STOCK_HEADER_BYTES as usize..]].concat()
}

#[test]
fn words_of_version_2_serve_for_products_of_any_width() -> Result<(), Error> {
    let demand = Demand {
        private_ands: 13,
        triples: 70,
        paired_triples: 9,
        products_sent_by_server: ProductCounts::of(64, 30),
        products_sent_by_client: ProductCounts::of(64, 50),
        ..Demand::NONE
    };
    let narrow = |counts: [(u32, usize); 3]| {
        counts.into_iter().fold(ProductCounts::NONE, |sum, (bits, count)| sum + ProductCounts::of(bits, count))
    };
    let narrow_demand = Demand {
        products_sent_by_server: narrow([(8, 1), (20, 19), (40, 10)]),
        products_sent_by_client: narrow([(64, 1), (33, 29), (1, 20)]),
        ..demand
    };
    let (client, server) = deal(&demand);
    for mut stock in [client, server] {
        assert!(stock.has_left(&demand) && !stock.has_left(&narrow_demand));
        let bytes = of_version_2(&stock);
        let mut read = Stock::from_bytes(&bytes)?;
        assert!(read.has_left(&narrow_demand) && read.has_left(&demand) && !read.has_left(&DEMAND));
        assert_eq!(read.to_bytes(), bytes);
        let role = stock.role();
        for (bits, count) in [(20, 10), (8, 1), (40, 10), (20, 9)] {
            let [sent, received] = [Role::Server, Role::Client].map(|sender| sender == role);
            if sent {
                let products = read.take_products_sent(bits, count)?;
                assert_eq!(products, stock.take_products_sent(64, count)?);
            }
            if received {
                let products = read.take_products_received(bits, count)?;
                assert_eq!(products, stock.take_products_received(64, count)?);
            }
        }
        // In the memory of a newer stock, and a newer one in that of an older.
        let copy = Stock::read(&mut &bytes[..], bytes.len() as u64, deal(&DEMAND).0)?;
        assert_eq!(copy.to_bytes(), bytes);
        let newer = deal(&DEMAND).1.to_bytes();
        assert_eq!(Stock::read(&mut &newer[..], newer.len() as u64, copy)?.to_bytes(), newer);
    }
    Ok(())
}

#[test]
fn versions_between_are_refused() {
    for version in 3..7 {
        let mut bytes = deal(&DEMAND).0.to_bytes();
        bytes[12] = version;
        assert!(matches!(Stock::from_bytes(&bytes), Err(Error::InvalidStock { .. })), "version {version}");
    }
}

#[test]
fn unused_bits_must_be_zero() {
    let mut bytes = deal(&DEMAND).1.to_bytes();
    // The first vector has 13 bits, so the upper three bits of its second byte are unused.
    bytes[STOCK_HEADER_BYTES as usize + 1] |= 0x20;
    assert!(matches!(Stock::from_bytes(&bytes), Err(Error::InvalidStock { .. })));
}
