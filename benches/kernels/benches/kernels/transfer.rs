//! Oblivious transfer: both parties together, over a channel in memory.

use std::error::Error;
use std::time::Instant;

use privet_channel::pair;
use privet_kernels::{Bench, Limit, both};
use privet_ot::{Demand, Extension, FieldBits, OtParty, Role, Shape, Size, Stock, TableCounts};

pub fn run(bench: &mut Bench) -> Result<(), Box<dyn Error>> {
    let extensions = [
        (
            "ot-softspoken-2",
            Extension::SoftSpoken(FieldBits::Two),
            1 << 20,
            7.0,
            "seven AES blocks an OT, both parties",
        ),
        (
            "ot-silent-small",
            Extension::Silent(Size::Small),
            1 << 22,
            6.1,
            "2.55 AES blocks at the receiver, 3.55 at the sender",
        ),
        (
            "ot-silent-large",
            Extension::Silent(Size::Large),
            1 << 22,
            6.0,
            "2.5 AES blocks at the receiver, 3.5 at the sender",
        ),
    ];
    for (name, extension, count, blocks, why) in extensions {
        let (mut near, mut far) = pair();
        let (client, server) = both(
            || OtParty::setup(&mut near, Role::Client, extension),
            || OtParty::setup(&mut far, Role::Server, extension),
        );
        let (mut client, mut server) = (client?, server?);
        let tables = |shape| Demand { tables_sent_by_server: TableCounts::of(shape, count / 4), ..Demand::NONE };
        let demands = [
            ("", Demand { private_ands: count, ..Demand::NONE }, blocks, why),
            // A table of four OTs takes 16 blocks to hash at the sender and one at the receiver, in place of 8 and 4.
            ("-tables", tables(Shape::Sixteen), blocks + 1.25, "as much for the extension, and 17 AES blocks a table"),
        ];
        for (suffix, demand, blocks, why) in demands {
            let limit = Limit { aes: blocks * count as f64, why, ..Limit::default() };
            bench.run_timed(&format!("{name}{suffix}"), limit, || {
                let start = Instant::now();
                let (mine, theirs) = both(
                    || Stock::generate(&mut client, &mut near, &demand),
                    || Stock::generate(&mut server, &mut far, &demand),
                );
                mine.and(theirs).expect("correlations");
                start.elapsed()
            });
        }
    }
    Ok(())
}
