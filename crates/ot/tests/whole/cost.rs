//! What went over the wire is what the formulas say.

use crate::parties::{generate, of_every_width, set_up};
use privet_ot::{Demand, Error, FieldBits, OneHotCounts, Role, TableCounts, cost};

#[test]
fn setup_and_generation_cost_what_the_formulas_say() -> Result<(), Error> {
    for field in [FieldBits::One, FieldBits::Two, FieldBits::Four, FieldBits::Eight] {
        let (mut client, mut server) = set_up(field)?;
        assert_eq!((client.channel.cost(), server.channel.cost()), (cost::setup(), cost::setup()));
        for (private_ands, triples, products_sent_by_server, products_sent_by_client) in [
            (0, 0, 0, 0),
            (0, 1, 0, 0),
            (1000, 5000, 200, 3),
            (0, 65_536, 0, 0),
            (65_536, 65_537, 0, 300),
            (100, 33 * 65_536, 0, 0),
        ] {
            let demand = Demand {
                private_ands,
                triples,
                paired_triples: triples / 3,
                products_sent_by_server: of_every_width(products_sent_by_server),
                products_sent_by_client: of_every_width(products_sent_by_client),
                tables_sent_by_server: TableCounts { eights: private_ands / 2, sixteens: triples / 9 },
                tables_sent_by_client: TableCounts { eights: triples / 5, sixteens: private_ands },
                one_hots: OneHotCounts::of(8, private_ands / 9) + OneHotCounts::of(7, products_sent_by_client),
            };
            let before = (client.channel.cost(), server.channel.cost());
            let (client_result, server_result) = generate(&mut client, &mut server, &demand);
            client_result?;
            server_result?;
            assert_eq!(client.channel.cost() - before.0, cost::generate(&demand, field, Role::Client), "{demand:?}");
            assert_eq!(server.channel.cost() - before.1, cost::generate(&demand, field, Role::Server), "{demand:?}");
        }
    }
    Ok(())
}

#[test]
fn portions_of_one_hot_vectors_cost_what_the_formula_says() -> Result<(), Error> {
    let (mut client, mut server) = set_up(FieldBits::Four)?;
    // One more than grow at once.
    let demand = Demand { triples: 9, one_hots: OneHotCounts::of(8, 131_073), ..Demand::NONE };
    let before = (client.channel.cost(), server.channel.cost());
    let (client_stock, server_stock) = generate(&mut client, &mut server, &demand);
    assert_eq!((client_stock?.left(), server_stock?.left()), (demand, demand));
    let spent = (client.channel.cost() - before.0, server.channel.cost() - before.1);
    assert_eq!(spent.0, cost::generate(&demand, FieldBits::Four, Role::Client));
    assert_eq!(spent.1, cost::generate(&demand, FieldBits::Four, Role::Server));
    // Two portions, and two messages for each bit but the lowest.
    let vectors = 254 * 131_072 / 8 + 131_072 / 8 + 33;
    let ots = (31 * 8 * 131_073_u64).div_ceil(8);
    assert!((spent.0.bytes_sent - ots).abs_diff(vectors) < 10_000, "{:?}", spent.0);
    Ok(())
}

#[test]
fn a_triple_costs_31_bits_each_way_by_default() {
    let demand = Demand { triples: 1 << 20, ..Demand::default() };
    let cost = cost::generate(&demand, FieldBits::default(), Role::Client);
    assert_eq!(cost.bytes_sent, 31 * (1 << 20) / 8 + 16 * 5);
    assert_eq!((cost.bytes_received, cost.rounds), (cost.bytes_sent, 1));
}
