//! What an OT takes of a core, both parties together, by extension:
//! `RAYON_NUM_THREADS=1 taskset -c 0 cargo run --release -p privet-ot --example rate -- 5 silent-large` (runs, and names of extensions; all
//! without one).
//!
//! Each line: nanoseconds for a bit OT, and for one of the OTs of a table of 16; the best of these runs over a link in memory.

use std::error::Error;
use std::time::Instant;

use privet_channel::pair;
use privet_ot::{Demand, Extension, OtParty, Role, Shape, Stock, TableCounts};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let runs: usize = arguments.next().map_or(Ok(5), |runs| runs.parse())?;
    let names: Vec<String> = arguments.collect();
    const COUNT: usize = 1 << 22;
    for extension in Extension::ALL
        .into_iter()
        .filter(|extension| names.is_empty() || names.iter().any(|name| name == extension.name()))
    {
        let bits = Demand { private_ands: COUNT, ..Demand::NONE };
        let tables = TableCounts { eights: 0, sixteens: COUNT / Shape::Sixteen.choice_bits() };
        let mut line = format!("{:14}", extension.name());
        for demand in [bits, Demand { tables_sent_by_server: tables, ..Demand::NONE }] {
            let (mut near, mut far) = pair();
            let best = std::thread::scope(|scope| {
                let client = scope.spawn(|| make(&mut near, Role::Client, extension, &demand, runs));
                make(&mut far, Role::Server, extension, &demand, runs)
                    .and_then(|_| client.join().expect("the client's thread"))
            })?;
            line += &format!("{:8.2} ns", best * 1e9 / COUNT as f64);
        }
        println!("{line}");
    }
    Ok(())
}

/// The least time of `runs`, after one that starts the extension.
fn make(
    channel: &mut privet_channel::Channel,
    role: Role,
    extension: Extension,
    demand: &Demand,
    runs: usize,
) -> Result<f64, privet_ot::Error> {
    let mut party = OtParty::setup(channel, role, extension)?;
    Stock::generate(&mut party, channel, demand)?;
    let mut best = f64::INFINITY;
    for _ in 0..runs {
        let start = Instant::now();
        Stock::generate(&mut party, channel, demand)?;
        best = best.min(start.elapsed().as_secs_f64());
    }
    Ok(best)
}
