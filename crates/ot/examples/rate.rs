//! How many random bit OTs and bit triples per second two parties in one process make over a channel in memory.
//!
//! `cargo run --release -p privet-ot --example rate [k] [triples]`; `RAYON_NUM_THREADS` bounds the threads.

use std::time::Instant;

use privet_channel::pair;
use privet_ot::{Demand, FieldBits, OtParty, Role, Stock};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let k = arguments.next().map_or(Ok(4), |text| text.parse())?;
    let count: usize = arguments.next().map_or(Ok(20_000_000), |text| text.parse())?;
    let field = FieldBits::from_k(k).ok_or("k must be 1, 2, 4 or 8")?;

    let (mut client_channel, mut server_channel) = pair();
    let start = Instant::now();
    let (client, server) = both(
        || OtParty::setup(&mut client_channel, Role::Client, field),
        || OtParty::setup(&mut server_channel, Role::Server, field),
    );
    let (mut client, mut server) = (client?, server?);
    println!("k = {k}: setup in {:.1} ms", start.elapsed().as_secs_f64() * 1e3);

    let triples = Demand { triples: count, ..Demand::default() };
    let ands = Demand { private_ands: count, ..Demand::default() };
    let products = Demand { products_sent_by_server: count / 4, ..Demand::default() };
    for (name, demand, made) in
        [("bit triples", triples, count), ("random bit OTs", ands, count), ("products", products, count / 4)]
    {
        let before = client_channel.cost();
        let start = Instant::now();
        let (client, server) = both(
            || Stock::generate(&mut client, &mut client_channel, &demand),
            || Stock::generate(&mut server, &mut server_channel, &demand),
        );
        let seconds = start.elapsed().as_secs_f64();
        client?;
        server?;
        let cost = client_channel.cost() - before;
        println!(
            "{made} {name} in {seconds:.2} s: {:.1} million per second, {:.2} bytes each, {} rounds",
            made as f64 / seconds / 1e6,
            (cost.bytes_sent + cost.bytes_received) as f64 / made as f64,
            cost.rounds
        );
    }
    Ok(())
}

fn both<T: Send>(client: impl FnOnce() -> T + Send, server: impl FnOnce() -> T + Send) -> (T, T) {
    std::thread::scope(|scope| {
        let server = scope.spawn(server);
        let client = client();
        (client, server.join().expect("the server's thread"))
    })
}
