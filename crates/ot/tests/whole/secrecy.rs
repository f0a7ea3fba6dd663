//! What the correlations rest on: nothing random comes twice, and what one party holds says nothing of what the other
//! keeps from it.

use std::collections::HashSet;

use crate::parties::{Party, both, generate};
use privet_channel::record::{self, Direction};
use privet_channel::{Channel, pair};
use privet_ot::{
    CotReceiver, CotSender, Demand, Error, Extension, FieldBits, OneHotCounts, OneHots, OtParty, PrivateAnds,
    ProductCounts, ProductsReceived, ProductsSent, Role, Shape, Size, Stock, TableCounts, Width, shift,
};
use privet_prg::{Block, Prg, Seed};
use privet_ring::Bits;

const N: usize = 40_000;
const TABLES: TableCounts = TableCounts { eights: N, sixteens: N };

/// As many of every kind.
fn demand() -> Demand {
    let products = ProductCounts::of(20, N) + ProductCounts::of(64, N);
    Demand {
        private_ands: N,
        triples: N,
        paired_triples: N,
        products_sent_by_server: products,
        products_sent_by_client: products,
        tables_sent_by_server: TABLES,
        tables_sent_by_client: TABLES,
        one_hots: OneHotCounts::of(6, N),
    }
}

/// Bytes of a party's first message that come before its points: version, role and field.
const HEADER: usize = 3;

/// Every way to make a stock.
const EXTENSIONS: [Extension; 2] = [Extension::SoftSpoken(FieldBits::Four), Extension::Silent(Size::Small)];

/// A setup and a generation: the client's and the server's stock, and all blocks that crossed the link.
fn recorded(extension: Extension, demand: &Demand) -> Result<([Stock; 2], Vec<[u8; 16]>), Error> {
    let (near, far, transcript) = record::pair();
    let party = |mut channel: Channel, role| {
        let ots = OtParty::setup(&mut channel, role, extension)?;
        Ok::<_, Error>(Party { ots, channel })
    };
    let (client, server) = both(|| party(near, Role::Client), || party(far, Role::Server));
    let (client, server) = generate(&mut client?, &mut server?, demand);
    let transcript = transcript.lock().expect("no thread panicked");
    let blocks = [Direction::FirstToSecond, Direction::SecondToFirst].into_iter().flat_map(|direction| {
        let bytes = transcript.bytes(direction);
        bytes[HEADER..].as_chunks().0.to_vec()
    });
    Ok(([client?, server?], blocks.collect()))
}

#[test]
fn two_setups_and_generations_share_no_block() -> Result<(), Error> {
    // In silent OT more than one iteration gives.
    let demand = Demand { private_ands: 2_100_000, triples: 1000, ..Demand::default() };
    for extension in EXTENSIONS {
        let blocks = [recorded(extension, &demand)?.1, recorded(extension, &demand)?.1].concat();
        let distinct: HashSet<_> = blocks.iter().collect();
        assert_eq!(distinct.len(), blocks.len(), "{extension:?}");
    }
    Ok(())
}

/// Fails unless `secret` looks like fair coins, also next to every sum of the bits that the other party knows.
fn assert_hidden(what: &str, secret: &Bits, known: &[&Bits]) {
    for subset in 0..1 << known.len() {
        let mut sum = secret.clone();
        known.iter().enumerate().filter(|(i, _)| subset >> i & 1 == 1).for_each(|(_, bits)| sum.xor_assign(bits));
        let ones = sum.iter().filter(|&bit| bit).count() as f64;
        let len = sum.len() as f64;
        // Six standard deviations of a binomial count.
        assert!((ones - len / 2.0).abs() < 3.0 * len.sqrt(), "{what}, with the known bits {subset:b}: {ones} of {len}");
    }
}

/// Bit `bit` of every word.
fn plane(words: &[u64], bit: u32) -> Bits {
    Bits::from_bools(&words.iter().map(|word| word >> bit & 1 == 1).collect::<Vec<_>>())
}

fn assert_products_hide(sender: &mut Stock, receiver: &mut Stock) -> Result<(), Error> {
    for (asked, width) in [(20, 24), (64, 64)] {
        let (sent, received) = (sender.take_products_sent(asked, N)?, receiver.take_products_received(asked, N)?);
        let elements = [&sent.rho, &sent.share, &received.share].map(|elements| elements.all().to_words());
        for bit in 0..width {
            let [rho, sent_share, received_share] = elements.each_ref().map(|words| plane(words, bit));
            assert_hidden("an element of a product", &rho, &[&received.choice, &received_share]);
            assert_hidden("the bit of a product", &received.choice, &[&rho, &sent_share]);
        }
    }
    Ok(())
}

/// Sums of entries that the receiver did not choose, next to all that it holds, and its choice next to all entries.
fn assert_tables_hide(sender: &mut Stock, receiver: &mut Stock, shape: Shape) -> Result<(), Error> {
    let (sent, received) = (sender.take_tables_sent(shape, N)?, receiver.take_tables_received(shape, N)?);
    let known: Vec<&Bits> = received.choice.iter().chain(&received.received).collect();
    let mut shifted = sent.entries.clone();
    shift(&mut shifted, &received.choice);
    let unchosen = &shifted[shape.entry_bits()..];
    for (i, entry) in unchosen.iter().enumerate() {
        assert_hidden("an entry that was not chosen", entry, &known);
        for other in &unchosen[..i] {
            assert_hidden("two of them", &entry.xor(other), &[]);
        }
    }
    for choice in &received.choice {
        assert_hidden("a choice", choice, &[]);
        sent.entries.iter().for_each(|entry| assert_hidden("a choice", choice, &[entry]));
    }
    Ok(())
}

/// The other party's share of a number next to all that a party holds, and its share of the vector, which is itself like fair coins.
fn assert_one_hots_hide(view: &OneHots, peer: &OneHots) {
    for secret in &peer.number {
        assert_hidden("a share of a number", secret, &[]);
        for known in view.number.iter().chain(&view.entries) {
            assert_hidden("a share of a number", secret, &[known]);
        }
    }
    for secret in &peer.entries {
        assert_hidden("a share of an entry", secret, &[]);
        view.number.iter().for_each(|known| assert_hidden("a share of an entry", secret, &[known]));
    }
}

fn assert_secrets_hidden([mut client, mut server]: [Stock; 2]) -> Result<(), Error> {
    match (server.take_private_ands(N)?, client.take_private_ands(N)?) {
        (PrivateAnds::Server(sent), PrivateAnds::Client(received)) => {
            let difference = sent.r0.xor(&sent.r1);
            assert_hidden("the server's mask", &difference, &[&received.choice, &received.received]);
            assert_hidden("the client's choice", &received.choice, &[&sent.r0, &sent.r1]);
        }
        _ => panic!("private ANDs go from the server to the client"),
    }
    let (first, second) = (client.take_triples(N)?, server.take_triples(N)?);
    for (view, peer) in [(&first, &second), (&second, &first)] {
        for secret in [&peer.a, &peer.b, &peer.a.xor(&peer.b)] {
            assert_hidden("the other party's triple", secret, &[&view.a, &view.b, &view.c]);
        }
    }
    let (first, second) = (client.take_paired_triples(N)?, server.take_paired_triples(N)?);
    for (view, peer) in [(&first, &second), (&second, &first)] {
        for secret in [&peer.a, &peer.b[0], &peer.b[1], &peer.b[0].xor(&peer.b[1])] {
            assert_hidden("the other party's pair", secret, &[&view.a, &view.b[0], &view.b[1], &view.c[0], &view.c[1]]);
        }
    }
    for shape in Shape::ALL {
        assert_tables_hide(&mut server, &mut client, shape)?;
        assert_tables_hide(&mut client, &mut server, shape)?;
    }
    let (first, second) = (client.take_one_hots(6, N)?, server.take_one_hots(6, N)?);
    assert_one_hots_hide(&first, &second);
    assert_one_hots_hide(&second, &first);
    assert_products_hide(&mut server, &mut client)?;
    assert_products_hide(&mut client, &mut server)
}

#[test]
fn what_one_party_holds_hides_the_others_secrets() -> Result<(), Error> {
    EXTENSIONS.into_iter().try_for_each(|extension| assert_secrets_hidden(recorded(extension, &demand())?.0))
}

#[test]
fn what_a_dealer_gives_one_party_hides_the_others_secrets() -> Result<(), Error> {
    let (client, server) = Stock::deal(&demand(), &mut Prg::from_seed(&Seed::from_bytes([9; 16])));
    assert_secrets_hidden([client, server])
}

/// An extension that gives the same block again and again.
#[derive(Default)]
struct Constant(Vec<Block>);

impl CotSender for Constant {
    fn delta(&self) -> Block {
        1 << 77 | 1
    }

    fn extend(&mut self, _: &mut Channel, count: usize) -> Result<&[Block], Error> {
        self.0.resize(count, 7);
        Ok(&self.0)
    }
}

impl CotReceiver for Constant {
    fn extend(&mut self, _: &mut Channel, count: usize) -> Result<(Bits, &[Block]), Error> {
        self.0.resize(count, 7);
        Ok((Bits::zeros(count), &self.0))
    }
}

/// OTs whose hashes have one key.
const CHUNK: usize = 4096;

/// Bit `CHUNK i` of all `i`: where all blocks are the same, a key gives a whole chunk one bit.
fn bit_of_each_chunk(bits: &Bits, chunk: usize) -> Vec<bool> {
    let chunks: Vec<bool> = (0..bits.len()).step_by(chunk).map(|at| bits.get(at)).collect();
    let whole = (0..bits.len()).all(|at| bits.get(at) == chunks[at / chunk]);
    assert!(whole, "a chunk of the same blocks under one key");
    chunks
}

/// The two words of the OT behind each product.
fn words_behind(products: &ProductsSent) -> [Vec<u64>; 2] {
    let (rho, share) = (products.rho.all().to_words(), products.share.all().to_words());
    let second = rho.iter().zip(&*share).map(|(rho, share)| rho.wrapping_sub(*share)).collect();
    [share.iter().map(|share| share.wrapping_neg()).collect(), second]
}

#[test]
fn every_chunk_is_hashed_under_a_key_of_its_own() -> Result<(), Error> {
    let mut party = OtParty::new(Role::Server, &[7; 32], Box::<Constant>::default(), Box::<Constant>::default());
    let (mut channel, _peer) = pair();
    let (mut sent, mut received) = (HashSet::<u64>::new(), HashSet::<u64>::new());
    for _ in 0..3 {
        let mut products = ProductsSent::none(Width::WORD);
        party.send_products(&mut channel, CHUNK + 1, &mut products)?;
        let [first, second] = words_behind(&products);
        sent.extend(first.iter().chain(&second));
        let mut products = ProductsReceived::none(Width::WORD);
        party.receive_products(&mut channel, CHUNK + 1, &mut products)?;
        received.extend(&*products.share.all().to_words());
    }
    // Two chunks a time, two messages of the sender.
    assert_eq!((sent.len(), received.len()), (12, 6));
    let bits = party.send_bits(&mut channel, 64 * CHUNK)?;
    let next_bits = party.send_bits(&mut channel, 64 * CHUNK)?;
    let [first, second, third] = [&bits.r0, &bits.r1, &next_bits.r0].map(|bits| bit_of_each_chunk(bits, CHUNK));
    assert!(first != second && first != third);
    for bits in [first, second, bit_of_each_chunk(&party.receive_bits(&mut channel, 64 * CHUNK)?.received, CHUNK)] {
        assert!(bits.contains(&true) && bits.contains(&false), "64 chunks under one key");
    }
    Ok(())
}

#[test]
fn every_chunk_of_tables_is_hashed_under_a_key_of_its_own() -> Result<(), Error> {
    let mut party = OtParty::new(Role::Server, &[7; 32], Box::<Constant>::default(), Box::<Constant>::default());
    let (mut channel, _peer) = pair();
    for shape in Shape::ALL {
        let mut planes = HashSet::new();
        for _ in 0..2 {
            let sent = party.send_tables(&mut channel, shape, N)?;
            let received = party.receive_tables(&mut channel, shape, N)?;
            for plane in sent.entries.iter().chain(&received.received) {
                let bits = bit_of_each_chunk(plane, CHUNK / shape.entries());
                assert!(bits.contains(&true) && bits.contains(&false), "{shape:?}: all chunks under one key");
                planes.insert(bits);
            }
        }
        assert_eq!(planes.len(), 2 * (shape.sent_bits() + shape.entry_bits()), "{shape:?}: the same keys again");
    }
    Ok(())
}

#[test]
fn no_two_sessions_and_no_two_directions_hash_under_the_same_key() -> Result<(), Error> {
    let (mut channel, _peer) = pair();
    let mut hashed = |session: u8| {
        let mut party =
            OtParty::new(Role::Server, &[session; 32], Box::<Constant>::default(), Box::<Constant>::default());
        let mut sent = ProductsSent::none(Width::WORD);
        party.send_products(&mut channel, 5000, &mut sent)?;
        let [sent, _] = words_behind(&sent);
        let mut received = ProductsReceived::none(Width::WORD);
        party.receive_products(&mut channel, 5000, &mut received)?;
        Ok::<_, Error>([sent, received.share.all().to_words().to_vec()])
    };
    let [first, other] = [hashed(1)?, hashed(2)?];
    let words: HashSet<u64> = first.iter().flatten().copied().collect();
    assert_eq!(words.len(), 4, "two chunks of the same block, one way and the other");
    assert!(other.iter().flatten().all(|word| !words.contains(word)));
    // The control: the same session hashes alike.
    assert_eq!(hashed(1)?, first);
    Ok(())
}
