//! Suite `gmw` online: both parties together on dealt correlations, over a channel in memory.

use std::time::Instant;

use privet_channel::pair;
use privet_gmw::{Error, Party, Rounds, Sign, cost};
use privet_kernels::{Bench, Limit, both};
use privet_ot::{Demand, Role, Shape, Stock};
use privet_prg::Prg;
use privet_ring::window::Groups;
use privet_ring::{Bits, Modulus};

const COUNT: usize = 1 << 18;
const RING: Modulus = Modulus::new(25);
const WIDE: Modulus = Modulus::new(37);

pub fn run(bench: &mut Bench) {
    let x: Vec<u64> = (0..COUNT as u64).map(|i| RING.reduce(i.wrapping_mul(0x9e37_79b9_7f4a_7c15))).collect();
    for (name, rounds) in [("linear", Rounds::Linear), ("log", Rounds::Log), ("blocks", Rounds::Blocks)] {
        protocol(bench, &format!("relu-{name}-262144"), cost::relu(COUNT, 25, rounds), rounds, |party| {
            privet_gmw::relu(party, &x, RING).map(drop)
        });
    }
    let bits = Bits::zeros(COUNT);
    protocol(bench, "mux-262144", cost::mux(COUNT, 25), Rounds::Log, |party| {
        privet_gmw::mux(party, &bits, &x, RING).map(drop)
    });
    protocol(
        bench,
        "extend-262144",
        cost::extend(COUNT, 25, 37, Sign::NonNegative, Rounds::Log),
        Rounds::Log,
        |party| privet_gmw::extend(party, &x, RING, WIDE, Sign::NonNegative).map(drop),
    );
    let groups = Groups::on_planes([[0, 1, 2, 3]], COUNT / 4, 4);
    let pooling = cost::max_pool([(4, COUNT / 4)], 25, Rounds::Log);
    protocol(bench, "max-pool-2x2-65536", pooling, Rounds::Log, |party| {
        privet_gmw::max_pool(party, &x, &groups, RING).map(drop)
    });
}

/// Bytes of both parties' correlations.
fn stock_bytes(demand: &Demand) -> f64 {
    let bits = 4 * demand.private_ands + 6 * demand.triples + 10 * demand.paired_triples;
    let tables = demand.tables_sent_by_server + demand.tables_sent_by_client;
    let tables = Shape::ALL.map(|shape| tables.count(shape) * (shape.sent_bits() + shape.received_bits()));
    let bits = bits + tables.into_iter().sum::<usize>();
    let products = demand.products_sent_by_client + demand.products_sent_by_server;
    // An element and a share each at the sender, a share at the receiver.
    let bytes: usize = products.all().map(|(width, count)| 3 * width.bytes() * count).sum();
    bits as f64 / 8.0 + bytes as f64
}

fn protocol(
    bench: &mut Bench,
    name: &str,
    needed: cost::Cost,
    rounds: Rounds,
    work: impl Fn(&mut Party<'_>) -> Result<(), Error> + Sync,
) {
    let limit = Limit {
        bytes: stock_bytes(&needed.demand)
            + 2.0 * (needed.client_bytes + needed.server_bytes) as f64
            + 32.0 * COUNT as f64,
        why: "correlations read, messages written and read, values read and written, both parties",
        ..Limit::default()
    };
    bench.run_timed(name, limit, || {
        let (mut client, mut server) = Stock::deal(&needed.demand, &mut Prg::from_os().expect("entropy"));
        let (mut near, mut far) = pair();
        let start = Instant::now();
        let (mine, theirs) = both(
            || work(&mut Party { role: Role::Client, channel: &mut near, stock: &mut client, rounds }),
            || work(&mut Party { role: Role::Server, channel: &mut far, stock: &mut server, rounds }),
        );
        mine.and(theirs).expect("both follow the protocol");
        start.elapsed()
    });
}
