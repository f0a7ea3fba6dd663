//! Oblivious transfer: both parties together, over a channel in memory.

use std::error::Error;
use std::time::Instant;

use privet_channel::pair;
use privet_kernels::{Bench, Limit, both};
use privet_ot::{Demand, Extension, FieldBits, OtParty, Role, Size, Stock};

pub fn run(bench: &mut Bench) -> Result<(), Box<dyn Error>> {
    let extensions = [
        ("ot-softspoken-2", Extension::SoftSpoken(FieldBits::Two), 1 << 20, 6.0, "six AES blocks an OT, both parties"),
        (
            "ot-silent-large",
            Extension::Silent(Size::Large),
            1 << 22,
            13.0,
            "5.5 AES blocks at the receiver, 7.5 at the sender",
        ),
    ];
    for (name, extension, count, blocks, why) in extensions {
        let (mut near, mut far) = pair();
        let (client, server) = both(
            || OtParty::setup(&mut near, Role::Client, extension),
            || OtParty::setup(&mut far, Role::Server, extension),
        );
        let (mut client, mut server) = (client?, server?);
        let demand = Demand { private_ands: count, ..Demand::default() };
        bench.run_timed(name, Limit { aes: blocks * count as f64, why, ..Limit::default() }, || {
            let start = Instant::now();
            let (mine, theirs) = both(
                || Stock::generate(&mut client, &mut near, &demand),
                || Stock::generate(&mut server, &mut far, &demand),
            );
            mine.and(theirs).expect("correlations");
            start.elapsed()
        });
    }
    Ok(())
}
