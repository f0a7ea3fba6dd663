//! Silent OT under the stock: bytes by the formulas, relations, the choice of an extension, and a network that cuts and
//! alters messages.

use std::time::Duration;

use crate::parties::{Party, both, generate, of_every_width, products_hold, take_products};
use privet_channel::{Channel, Link, pair};
use privet_ot::{
    Demand, Error, Extension, FieldBits, OneHotCounts, OtParty, PrivateAnds, Role, Shape, Size, Stock, TableCounts,
    cost, shift,
};

fn set_up_over(client: Channel, server: Channel, extension: Extension) -> Result<(Party, Party), Error> {
    let party = move |mut channel: Channel, role| {
        let ots = OtParty::setup(&mut channel, role, extension)?;
        Ok::<_, Error>(Party { ots, channel })
    };
    let (client, server) = both(|| party(client, Role::Client), || party(server, Role::Server));
    Ok((client?, server?))
}

fn set_up(extension: Extension) -> Result<(Party, Party), Error> {
    let (client, server) = pair();
    set_up_over(client, server, extension)
}

/// Takes everything out and says whether every relation holds.
fn holds(client: &mut Stock, server: &mut Stock, demand: &Demand) -> Result<bool, Error> {
    let (PrivateAnds::Client(received), PrivateAnds::Server(sent)) =
        (client.take_private_ands(demand.private_ands)?, server.take_private_ands(demand.private_ands)?)
    else {
        panic!("private ANDs go from the server to the client");
    };
    let ands = received.received == sent.r0.xor(&sent.r0.xor(&sent.r1).and(&received.choice));
    let (first, second) = (client.take_triples(demand.triples)?, server.take_triples(demand.triples)?);
    let triples = first.a.xor(&second.a).and(&first.b.xor(&second.b)) == first.c.xor(&second.c);
    let mut products = take_products(server, client, demand.products_sent_by_server)?;
    products.extend(take_products(client, server, demand.products_sent_by_client)?);
    let products = products.iter().all(|(ring, sent, received)| products_hold(*ring, sent, received));
    let count = demand.paired_triples;
    let (first, second) = (client.take_paired_triples(count)?, server.take_paired_triples(count)?);
    let pairs = [0, 1]
        .iter()
        .all(|&i| first.a.xor(&second.a).and(&first.b[i].xor(&second.b[i])) == first.c[i].xor(&second.c[i]));
    let tables = Shape::ALL.into_iter().all(|shape| {
        tables_hold(server, client, shape, demand.tables_sent_by_server.count(shape))
            && tables_hold(client, server, shape, demand.tables_sent_by_client.count(shape))
    });
    Ok(ands && triples && pairs && products && tables)
}

fn tables_hold(sender: &mut Stock, receiver: &mut Stock, shape: Shape, count: usize) -> bool {
    let mut sent = sender.take_tables_sent(shape, count).expect("enough");
    let received = receiver.take_tables_received(shape, count).expect("enough");
    shift(&mut sent.entries, &received.choice);
    sent.entries[..shape.entry_bits()] == received.received
}

fn demand(counts: [usize; 4]) -> Demand {
    let [private_ands, triples, products_sent_by_server, products_sent_by_client] = counts;
    Demand {
        private_ands,
        triples,
        paired_triples: triples / 4,
        products_sent_by_server: of_every_width(products_sent_by_server),
        products_sent_by_client: of_every_width(products_sent_by_client),
        tables_sent_by_server: TableCounts { eights: triples / 8, sixteens: private_ands / 9 },
        tables_sent_by_client: TableCounts { eights: products_sent_by_client, sixteens: triples / 7 },
        one_hots: OneHotCounts::of(8, products_sent_by_client / 20) + OneHotCounts::of(7, triples / 50),
    }
}

#[test]
fn the_first_generation_costs_what_the_formula_says_and_holds() -> Result<(), Error> {
    for size in Size::ALL {
        for counts in [
            [0, 0, 0, 0],
            [0, 1, 0, 0],
            [0, 0, 0, 1],
            [1000, 5000, 200, 3],
            [130_000, 0, 3, 0],
            [65_536, 65_537, 0, 300],
            [700_000, 400_000, 0, 0],
            [0, 0, 9, 2_200_000],
        ] {
            let (mut client, mut server) = set_up(size.into())?;
            assert_eq!((client.channel.cost(), server.channel.cost()), (cost::setup(), cost::setup()));
            let demand = demand(counts);
            let before = (client.channel.cost(), server.channel.cost());
            let (client_stock, server_stock) = generate(&mut client, &mut server, &demand);
            assert!(holds(&mut client_stock?, &mut server_stock?, &demand)?, "{size:?}, {demand:?}");
            let spent = (client.channel.cost() - before.0, server.channel.cost() - before.1);
            assert_eq!(spent.0, cost::generate(&demand, size, Role::Client), "{size:?}, {demand:?}");
            assert_eq!(spent.1, cost::generate(&demand, size, Role::Server), "{size:?}, {demand:?}");
        }
    }
    Ok(())
}

fn bytes_and_messages(cost: privet_channel::Cost) -> [u64; 2] {
    [cost.bytes_sent, cost.messages_sent]
}

#[test]
fn generations_go_on_where_the_last_stopped() -> Result<(), Error> {
    let (mut client, mut server) = set_up(Size::Small.into())?;
    let whole = Demand { triples: 2_200_000, ..Demand::NONE };
    let before = (client.channel.cost(), server.channel.cost());
    let chunks = [1, 100_000, 300_000, 1_799_999].map(|triples| Demand { triples, ..Demand::NONE });
    for demand in &chunks {
        let (client_stock, server_stock) = generate(&mut client, &mut server, demand);
        assert!(holds(&mut client_stock?, &mut server_stock?, demand)?, "{demand:?}");
    }
    let spent = (client.channel.cost() - before.0, server.channel.cost() - before.1);
    let formula = |role| cost::generate_in_chunks(&chunks.map(|demand| vec![demand]), Size::Small, role);
    assert_eq!([spent.0.bytes_sent, spent.0.messages_sent], bytes_and_messages(formula(Role::Client)));
    assert_eq!([spent.1.bytes_sent, spent.1.messages_sent], bytes_and_messages(formula(Role::Server)));
    let bytes = spent.0.bytes_sent;
    // The chunks cost what the whole does, but for message headers and a group of trees.
    let at_once = cost::generate(&whole, Size::Small, Role::Client).bytes_sent;
    assert!(bytes.abs_diff(at_once) < 1000, "{bytes} rather than {at_once}");
    Ok(())
}

#[test]
fn a_large_demand_costs_well_under_half_a_bit_each() {
    let demand = Demand { private_ands: 100_000_000, ..Demand::NONE };
    let cost = cost::generate(&demand, Size::Huge, Role::Server);
    let bits = 8.0 * (cost.bytes_sent + cost.bytes_received) as f64 / demand.private_ands as f64;
    assert!(bits < 0.45, "{bits}");
}

#[test]
fn the_demand_and_the_link_choose_the_extension() -> Result<(), Error> {
    let fast = Link::new(Duration::ZERO, 1e11).expect("a link");
    let slow = Link::new(Duration::from_millis(100), 1e7).expect("a link");
    for link in [fast, Link::LAN, Link::WAN, slow] {
        let few = Extension::for_demand(&demand([1000, 1000, 0, 0]), &link);
        assert!(matches!(few, Extension::SoftSpoken(_)), "{link}: {few:?}");
        for exponent in 0..25 {
            let demand = demand([0, 1 << exponent, 0, 0]);
            let chosen = Extension::for_demand(&demand, &link).seconds(&demand, &link);
            assert!(Extension::ALL.iter().all(|other| chosen <= other.seconds(&demand, &link)));
        }
    }
    let many = demand([0, 10_000_000, 0, 0]);
    assert_eq!(Extension::for_demand(&many, &fast), Extension::SoftSpoken(FieldBits::Two));
    assert_eq!(Extension::for_demand(&many, &Link::WAN), Extension::Silent(Size::Small));
    assert_eq!(Extension::for_demand(&many, &slow), Extension::Silent(Size::Huge));
    let (mut client, mut server) = pair();
    let (client, server) = both(
        || OtParty::for_demand(&mut client, Role::Client, &many, &Link::WAN).map(|_| ()),
        || OtParty::for_demand(&mut server, Role::Server, &many, &Link::WAN).map(|_| ()),
    );
    client.and(server)
}

#[test]
fn a_price_of_bytes_chooses_the_extension_that_sends_less_even_over_a_fast_link() {
    let fast = Link::new(Duration::ZERO, 1e11).expect("a link");
    let many = demand([0, 10_000_000, 0, 0]);
    let at = |price| Extension::cheapest(&Extension::ALL, &many, &fast, price);
    assert_eq!(at(0.0), Extension::for_demand(&many, &fast));
    let bytes = |extension: Extension| {
        let cost = cost::generate(&many, extension, Role::Client);
        cost.bytes_sent + cost.bytes_received
    };
    let free = bytes(at(0.0));
    let mut least = free;
    for price in [1.0, 100.0, 1e4, 1e6] {
        assert!(bytes(at(price)) <= least, "a higher price sends no more");
        least = bytes(at(price));
    }
    assert_eq!(Some(least), Extension::ALL.into_iter().map(bytes).min());
    assert!(least < free / 3, "{least} of {free} bytes");
    let only = [Extension::SoftSpoken(FieldBits::Two)];
    assert_eq!(Extension::cheapest(&only, &many, &fast, 1e6), only[0], "a choice stays within what is allowed");
}

#[test]
fn parties_with_different_extensions_notice() {
    for other in [Extension::Silent(Size::Large), FieldBits::Eight.into()] {
        let (mut client, mut server) = pair();
        let (client, server) = both(
            || OtParty::setup(&mut client, Role::Client, Size::Small).map(|_| ()),
            || OtParty::setup(&mut server, Role::Server, other).map(|_| ()),
        );
        assert!(matches!(client, Err(Error::PeerMisbehaved { .. })));
        assert!(matches!(server, Err(Error::PeerMisbehaved { .. })));
    }
}

/// Private ANDs alone: the client is the receiver, so that messages take turns and a relay can follow.
const ANDS: Demand = Demand { private_ands: 5000, ..Demand::NONE };

/// Whether the relation holds, or why there is none to look at.
type Held = Result<bool, Error>;

/// The server's messages after its setup.
type Messages = Vec<Vec<u8>>;

/// What both parties make of one generation of [`ANDS`] when message `index` of the server, after its setup, is changed,
/// and what that message was.
fn with_altered(index: usize, change: impl Fn(&mut Vec<u8>) + Sync) -> Result<(Held, Messages), Error> {
    let ((near, to_client), (to_server, far)) = (pair(), pair());
    let mut messages = Vec::new();
    let ((), held) = both(
        || relay(to_client, to_server, index, &change, &mut messages),
        || {
            let (mut client, mut server) = set_up_over(near, far, Size::Small.into())?;
            let (client_stock, server_stock) = both(
                || Stock::generate(&mut client.ots, &mut client.channel, &ANDS),
                || Stock::generate(&mut server.ots, &mut server.channel, &ANDS),
            );
            drop((client, server));
            Ok::<_, Error>((|| holds(&mut client_stock?, &mut server_stock?, &ANDS))())
        },
    );
    Ok((held?, messages))
}

/// Passes the two exchanges of the setup, the client's one message, and then the server's messages.
fn relay(
    mut client: Channel,
    mut server: Channel,
    index: usize,
    change: &(impl Fn(&mut Vec<u8>) + Sync),
    messages: &mut Vec<Vec<u8>>,
) {
    const LIMIT: usize = 1 << 20;
    let pass = |from: &mut Channel, to: &mut Channel, edit: &mut dyn FnMut(&mut Vec<u8>)| {
        let mut message = from.recv_at_most(LIMIT)?;
        edit(&mut message);
        to.send(&message)?;
        to.flush()
    };
    for _ in 0..2 {
        if pass(&mut client, &mut server, &mut |_| ()).is_err() || pass(&mut server, &mut client, &mut |_| ()).is_err()
        {
            return;
        }
    }
    let mut edit = |message: &mut Vec<u8>| {
        messages.push(message.clone());
        if messages.len() == index + 1 {
            change(message);
        }
    };
    if pass(&mut client, &mut server, &mut |_| ()).is_ok() {
        while pass(&mut server, &mut client, &mut edit).is_ok() {}
    }
}

#[test]
fn the_relay_alone_disturbs_nothing_and_sees_no_message_twice() -> Result<(), Error> {
    let (held, first) = with_altered(usize::MAX, |_| ())?;
    assert!(held?);
    // The seed of the matrix, then five groups of four trees of depth eight.
    assert_eq!(first.iter().map(Vec::len).collect::<Vec<_>>(), [16, 5 * 4 * 7 * 16]);
    let second = with_altered(usize::MAX, |_| ())?.1;
    let mut blocks: Vec<&[u8; 16]> = first.iter().chain(&second).flat_map(|message| message.as_chunks().0).collect();
    let count = blocks.len();
    blocks.sort_unstable();
    blocks.dedup();
    assert_eq!(blocks.len(), count);
    Ok(())
}

#[test]
fn cut_and_lengthened_messages_are_refused() -> Result<(), Error> {
    for index in 0..2 {
        for change in
            [|message: &mut Vec<u8>| message.truncate(message.len() - 1), |message: &mut Vec<u8>| message.push(0)]
        {
            assert!(matches!(with_altered(index, change)?.0, Err(Error::Channel(_))), "message {index}");
        }
        assert!(matches!(with_altered(index, |message| message.clear())?.0, Err(Error::Channel(_))), "message {index}");
    }
    Ok(())
}

#[test]
fn altered_contents_break_the_relation_but_nothing_else() -> Result<(), Error> {
    // A semi-honest protocol does not notice; TLS keeps the network from this. It shows that the relation can fail.
    for index in 0..2 {
        assert!(!with_altered(index, |message| message.iter_mut().for_each(|byte| *byte ^= 0x55))?.0?, "{index}");
    }
    Ok(())
}
