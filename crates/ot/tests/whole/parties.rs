//! Two parties in one process.
#![allow(dead_code, reason = "each test binary uses a part")]

use privet_channel::{Channel, pair};
use privet_ot::{Demand, Error, FieldBits, OtParty, Role, Stock};

/// A party with its channel.
pub struct Party {
    pub ots: OtParty,
    pub channel: Channel,
}

/// What one demand gave the client and the server.
pub type Stocks = (Result<Stock, Error>, Result<Stock, Error>);

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
