//! Two parties in one process.
#![allow(dead_code, reason = "each test binary uses a part")]

use privet_channel::{Channel, pair};
use privet_ot::{Demand, Error, FieldBits, OtParty, ProductCounts, ProductsReceived, ProductsSent, Role, Stock};
use privet_ring::Modulus;

/// A party with its channel.
pub struct Party {
    pub ots: OtParty,
    pub channel: Channel,
}

/// What one demand gave the client and the server.
pub type Stocks = (Result<Stock, Error>, Result<Stock, Error>);

/// As many products, of every width some.
pub fn of_every_width(count: usize) -> ProductCounts {
    let part = |bytes: usize| ProductCounts::of(8 * bytes as u32 - 3, (count + 8 - bytes) / 8);
    (1..=8).map(part).fold(ProductCounts::NONE, std::ops::Add::add)
}

/// Takes all products that one party sends out of two matching stocks. Of each width, its ring and what both have.
pub fn take_products(
    sender: &mut Stock,
    receiver: &mut Stock,
    counts: ProductCounts,
) -> Result<Vec<(Modulus, ProductsSent, ProductsReceived)>, Error> {
    let of = |(width, count): (privet_ot::Width, usize)| {
        let bits = width.ring().bits();
        let (sent, received) = (sender.take_products_sent(bits, count)?, receiver.take_products_received(bits, count)?);
        assert_eq!([sent.rho.len(), sent.share.len(), received.choice.len(), received.share.len()], [count; 4]);
        Ok((width.ring(), sent, received))
    };
    counts.all().map(of).collect()
}

/// Whether shares of products sum to them, in `ring`.
pub fn products_hold(ring: Modulus, sent: &ProductsSent, received: &ProductsReceived) -> bool {
    let [rho, first, second] = [&sent.rho, &sent.share, &received.share].map(|elements| elements.all().to_words());
    received.choice.iter().enumerate().all(|(i, bit)| {
        let product = if bit { rho[i] } else { 0 };
        ring.reduce(first[i].wrapping_add(second[i])) == ring.reduce(product)
    })
}

/// Runs the client's and the server's part at the same time.
pub fn both<C: Send, S: Send>(client: impl FnOnce() -> C + Send, server: impl FnOnce() -> S + Send) -> (C, S) {
    std::thread::scope(|scope| {
        let client = scope.spawn(client);
        let server = server();
        (client.join().expect("the client's thread"), server)
    })
}

/// Sets both parties up over the ends of two channels, or of one.
pub fn set_up_over(client: Channel, server: Channel, field: FieldBits) -> (Result<Party, Error>, Result<Party, Error>) {
    let party = move |mut channel: Channel, role| {
        let ots = OtParty::setup(&mut channel, role, field)?;
        Ok(Party { ots, channel })
    };
    both(|| party(client, Role::Client), || party(server, Role::Server))
}

/// Sets both parties up over a channel in memory.
pub fn set_up(field: FieldBits) -> Result<(Party, Party), Error> {
    let (client, server) = pair();
    let (client, server) = set_up_over(client, server, field);
    Ok((client?, server?))
}

/// Has both parties make one demand.
pub fn generate(client: &mut Party, server: &mut Party, demand: &Demand) -> Stocks {
    let party = |party: &mut Party| Stock::generate(&mut party.ots, &mut party.channel, demand);
    both(|| party(client), || party(server))
}
