//! A stock as bytes: every stock comes back, everything else is refused.

use privet_ot::{Demand, Error, OneHotCounts, Role, Shape, Stock, TableCounts, one_hots_bytes};
use privet_prg::{Prg, Seed};
use proptest::prelude::*;

fn deal(demand: &Demand) -> (Stock, Stock) {
    Stock::deal(demand, &mut Prg::from_seed(&Seed::from_bytes([1; 16])))
}

const DEMAND: Demand = Demand {
    private_ands: 13,
    triples: 70,
    paired_triples: 9,
    products_sent_by_server: 3,
    products_sent_by_client: 5,
    tables_sent_by_server: TableCounts { eights: 11, sixteens: 2 },
    tables_sent_by_client: TableCounts { eights: 0, sixteens: 17 },
    one_hots: OneHotCounts::NONE,
};

/// Everything that is left in a stock.
fn drain(stock: &mut Stock) -> Result<impl PartialEq + std::fmt::Debug + use<>, Error> {
    let left = stock.left();
    let (sent, received) = match stock.role() {
        Role::Server => (left.products_sent_by_server, left.products_sent_by_client),
        Role::Client => (left.products_sent_by_client, left.products_sent_by_server),
    };
    let (tables_sent, tables_received) = (left.tables(stock.role()), left.tables(stock.role().peer()));
    let one_hots: Vec<_> = left.one_hots.all().map(|(bits, count)| stock.take_one_hots(bits, count)).collect();
    Ok((
        one_hots.into_iter().collect::<Result<Vec<_>, _>>()?,
        Shape::ALL.map(|shape| stock.take_tables_sent(shape, tables_sent.count(shape)).expect("enough")),
        Shape::ALL.map(|shape| stock.take_tables_received(shape, tables_received.count(shape)).expect("enough")),
        stock.take_private_ands(left.private_ands)?,
        stock.take_triples(left.triples)?,
        stock.take_paired_triples(left.paired_triples)?,
        stock.take_products_sent(sent)?,
        stock.take_products_received(received)?,
    ))
}

proptest! {
    #[test]
    fn what_is_left_comes_back(counts in [0_usize..200, 0_usize..200, 0_usize..200, 0_usize..50, 0_usize..50], part in 0.0..=1.0) {
        let [private_ands, triples, paired_triples, products_sent_by_server, products_sent_by_client] = counts;
        let demand = Demand { private_ands, triples, paired_triples, products_sent_by_server, products_sent_by_client,
            tables_sent_by_server: TableCounts { eights: triples, sixteens: private_ands },
            tables_sent_by_client: TableCounts { eights: private_ands, sixteens: paired_triples },
            one_hots: OneHotCounts::of(8, triples) + OneHotCounts::of(6, products_sent_by_client) };
        let some = |count: usize| (count as f64 * part) as usize;
        let (client, server) = deal(&demand);
        for mut stock in [client, server] {
            stock.take_private_ands(some(private_ands)).expect("enough");
            stock.take_triples(some(triples)).expect("enough");
            let sent = stock.left().tables(stock.role());
            stock.take_tables_sent(Shape::Sixteen, some(sent.sixteens)).expect("enough");
            stock.take_one_hots(8, some(triples)).expect("enough");
            stock.take_paired_triples(some(paired_triples)).expect("enough");
            let bytes = stock.to_bytes();
            let vectors = one_hots_bytes(&stock.left().one_hots);
            prop_assert_eq!(bytes[12], if vectors == 0 { 5 } else { 6 });
            let mut read = Stock::from_bytes(&bytes).expect("its own bytes");
            prop_assert_eq!(read.role(), stock.role());
            prop_assert_eq!(read.left(), stock.left());
            prop_assert_eq!(drain(&mut read).expect("enough"), drain(&mut stock).expect("enough"));
            // In the memory of another stock, of either party, it is the same.
            for used in [deal(&DEMAND).0, deal(&demand).1] {
                let mut again = Stock::read(&mut &bytes[..], bytes.len() as u64, used).expect("its own bytes");
                prop_assert_eq!(again.to_bytes(), &bytes[..]);
                prop_assert_eq!(drain(&mut again).is_ok(), true);
            }
        }
    }

    #[test]
    fn arbitrary_bytes_are_refused(bytes: Vec<u8>) {
        prop_assert!(Stock::from_bytes(&bytes).is_err());
    }

    #[test]
    fn arbitrary_counts_are_refused(counts: [u64; 9]) {
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
fn a_source_that_fails_is_told_from_one_that_has_something_else() {
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
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        assert!(matches!(Stock::from_bytes(&changed), Err(Error::InvalidStock { .. })), "byte {at}");
    }
    let mut changed = bytes;
    changed[13] = 2;
    assert!(matches!(Stock::from_bytes(&changed), Err(Error::InvalidStock { .. })));
}

#[test]
fn a_stock_of_version_2_has_no_tables() -> Result<(), Error> {
    let demand =
        Demand { tables_sent_by_server: TableCounts::NONE, tables_sent_by_client: TableCounts::NONE, ..DEMAND };
    let bytes = deal(&demand).0.to_bytes();
    let mut old = bytes.clone();
    old[12] = 2;
    old.drain(14 + 5 * 8..14 + 9 * 8);
    assert_eq!(drain(&mut Stock::from_bytes(&old)?)?, drain(&mut Stock::from_bytes(&bytes)?)?);
    Ok(())
}

#[test]
fn tables_of_16_of_older_versions_are_refused() {
    let few = |sixteens| Demand { tables_sent_by_server: TableCounts { eights: 11, sixteens }, ..Demand::NONE };
    for (sixteens, is_read) in [(0, true), (1, false)] {
        let mut bytes = deal(&few(sixteens)).0.to_bytes();
        bytes[12] = 3;
        assert_eq!(Stock::from_bytes(&bytes).is_ok(), is_read, "{sixteens}");
    }
}

#[test]
fn unused_bits_must_be_zero() {
    let mut bytes = deal(&DEMAND).1.to_bytes();
    // The first vector has 13 bits, so the upper three bits of its second byte are unused.
    bytes[14 + 9 * 8 + 1] |= 0x20;
    assert!(matches!(Stock::from_bytes(&bytes), Err(Error::InvalidStock { .. })));
}
