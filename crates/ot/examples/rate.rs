//! How many random bit OTs and bit triples per second two parties in one process make over a channel in memory.
//!
//! `cargo run --release -p privet-ot --example rate [extension] [triples]`, where the extension is `1`, `2`, `4` or `8`
//! for SoftSpokenOT over that field, or `small`, `medium` or `large` for silent OT. `RAYON_NUM_THREADS` bounds the
//! threads that both parties share; besides them each party has a thread of its own. The last line takes processor time,
//! so that it says what one core does for one party; run it with one thread.

use std::time::Instant;

use privet_channel::pair;
use privet_ot::{Demand, Extension, FieldBits, OtParty, Role, Size, Stock};
use rustix::time::{ClockId, clock_gettime};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().unwrap_or_else(|| "large".to_owned());
    let count: usize = arguments.next().map_or(Ok(20_000_000), |text| text.parse())?;
    let extension = match name.as_str() {
        "small" => Extension::Silent(Size::Small),
        "medium" => Extension::Silent(Size::Medium),
        "large" => Extension::Silent(Size::Large),
        k => Extension::SoftSpoken(FieldBits::from_k(k.parse()?).ok_or("k must be 1, 2, 4 or 8")?),
    };

    let (mut client_channel, mut server_channel) = pair();
    let start = Instant::now();
    let (client, server) = both(
        || OtParty::setup(&mut client_channel, Role::Client, extension),
        || OtParty::setup(&mut server_channel, Role::Server, extension),
    );
    let (mut client, mut server) = (client?, server?);
    println!("{extension:?}: setup in {:.1} ms", start.elapsed().as_secs_f64() * 1e3);

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
            "{made} {name} in {seconds:.3} s: {:.1} million per second, {:.3} bits each, {} rounds",
            made as f64 / seconds / 1e6,
            8.0 * (cost.bytes_sent + cost.bytes_received) as f64 / made as f64,
            cost.rounds
        );
    }
    one_direction(extension, count)
}

/// Processor time of either end of a single direction, one after the other.
fn one_direction(extension: Extension, count: usize) -> Result<(), Box<dyn std::error::Error>> {
    const PIECE: usize = 1 << 16;
    let (mut near, mut far) = pair();
    let (receiver, sender) = both(
        || OtParty::setup(&mut near, Role::Client, extension),
        || OtParty::setup(&mut far, Role::Server, extension),
    );
    let (mut receiver, mut sender) = (receiver?, sender?);
    // The first OTs pay for what comes before them; these are not timed.
    let (begun, ready) = both(
        || receiver.receive_bits(&mut near, 1).and_then(|_| Ok(near.flush()?)),
        || sender.send_bits(&mut far, 1).and_then(|_| Ok(far.flush()?)),
    );
    begun?;
    ready?;
    let silent = matches!(extension, Extension::Silent(_));
    let (mut sending, mut receiving) = (0.0, 0.0);
    for _ in 0..count.div_ceil(PIECE) {
        for turn in [silent, !silent] {
            let start = processor_seconds();
            if turn {
                sender.send_bits(&mut far, PIECE)?;
                far.flush()?;
                sending += processor_seconds() - start;
            } else {
                receiver.receive_bits(&mut near, PIECE)?;
                near.flush()?;
                receiving += processor_seconds() - start;
            }
        }
    }
    let rate = |seconds: f64| (count.div_ceil(PIECE) * PIECE) as f64 / seconds / 1e6;
    println!(
        "one direction: sender {:.1}, receiver {:.1} million random bit OTs per second of a core",
        rate(sending),
        rate(receiving)
    );
    Ok(())
}

/// Time that this process has had of all cores.
fn processor_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

fn both<T: Send, U: Send>(client: impl FnOnce() -> T + Send, server: impl FnOnce() -> U + Send) -> (T, U) {
    std::thread::scope(|scope| {
        let server = scope.spawn(server);
        let client = client();
        (client, server.join().expect("the server's thread"))
    })
}
