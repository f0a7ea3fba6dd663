//! How long the online phase computes: ReLU and max pooling by two parties in one process over a channel in memory, on
//! dealt correlations, and the server's plaintext products.
//!
//! `cargo run --release -p privet-gmw --example online [values]`. `PRIVET_PORTABLE=1` forces portable kernels, and
//! `RAYON_NUM_THREADS` bounds the threads that both parties share; besides them each party has a thread of its own. The
//! best of three runs is shown.

use std::time::Instant;

use privet_channel::pair;
use privet_gmw::{Error, Party, Rounds, Sign, cost};
use privet_ot::{Role, Stock};
use privet_prg::Prg;
use privet_ring::{
    Modulus, linear, planes,
    window::{Groups, Windows},
};

const RING: Modulus = Modulus::new(25);
const WIDE: Modulus = Modulus::new(37);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let count: usize = std::env::args().nth(1).map_or(Ok(1 << 20), |text| text.parse())?;
    let mut prg = Prg::from_os()?;
    let mut x = random(count, &mut prg);
    RING.reduce_all(&mut x);

    for rounds in [Rounds::Linear, Rounds::Log, Rounds::Blocks] {
        both(&format!("ReLU of {count} values, {rounds:?}"), cost::relu(count, 25, rounds), rounds, |party| {
            privet_gmw::relu(party, &x, RING).map(drop)
        });
    }
    both("multiplexer", cost::mux(count, 25), Rounds::Log, |party| {
        let bits = privet_ring::Bits::zeros(count);
        privet_gmw::mux(party, &bits, &x, RING).map(drop)
    });
    both("extension to 37 bits", cost::extend(count, 25, 37, Sign::NonNegative, Rounds::Log), Rounds::Log, |party| {
        privet_gmw::extend(party, &x, RING, WIDE, Sign::NonNegative).map(drop)
    });

    let windows = Windows {
        image: [55, 55],
        positions: [27, 27],
        kernel: [3, 3],
        stride: [2, 2],
        origin: [0, 0],
        dilation: [1, 1],
    };
    let mut pool = random(96 * 55 * 55, &mut prg);
    RING.reduce_all(&mut pool);
    let single = [windows.elements()];
    for (name, stages) in [("window by window", single.as_slice()), ("by axes", &windows.maxima())] {
        let lengths = std::iter::once(55 * 55).chain(stages.iter().map(Vec::len));
        let on_planes = |(groups, len): (&Vec<Vec<usize>>, usize)| Groups::on_planes(groups.clone(), 96, len);
        let stages: Vec<Groups> = stages.iter().zip(lengths).map(on_planes).collect();
        let needed = stages
            .iter()
            .map(|groups| cost::max_pool(groups.sizes().map(|size| (size, 1)), 25, Rounds::Log))
            .sum::<cost::Cost>();
        both(&format!("max pooling 3x3/2 of 55x55x96, {name}"), needed, Rounds::Log, |party| {
            let mut values = pool.clone();
            for groups in &stages {
                values = privet_gmw::max_pool(party, &values, groups, RING)?;
            }
            Ok(())
        });
    }

    let conv = linear::Conv2d {
        in_channels: 64,
        image: [56, 56],
        out_channels: 64,
        positions: [56, 56],
        kernel: [3, 3],
        stride: [1, 1],
        origin: [1, 1],
        dilation: [1, 1],
        groups: 1,
    };
    let image = random(64 * 56 * 56, &mut prg);
    let weights: Vec<i64> = random(64 * 64 * 9, &mut prg).into_iter().map(|w| w as i64 >> 52).collect();
    alone("convolution 3x3 of 56x56x64 to 64", || drop(conv.apply(&image, &weights, 1, WIDE)));
    let weights: Vec<i64> = random(1024 * 1024, &mut prg).into_iter().map(|w| w as i64 >> 52).collect();
    alone("matrix product 1x1024x1024", || drop(linear::matmul(&image[..1024], &weights, 1, 1024, 1024)));

    alone("bit planes of 24 bits", || drop(planes::from_values(&x, 24)));
    alone("packing to 25 bits", || drop(RING.pack(&x)));
    let bytes = RING.pack(&x);
    alone("unpacking from 25 bits", || drop(RING.unpack(&bytes, count)));
    Ok(())
}

fn random(count: usize, prg: &mut Prg) -> Vec<u64> {
    let mut words = vec![0; count];
    prg.fill_words(&mut words);
    words
}

/// Both parties run `protocol` on fresh correlations.
fn both(name: &str, needed: cost::Cost, rounds: Rounds, protocol: impl Fn(&mut Party<'_>) -> Result<(), Error> + Sync) {
    let mut best = f64::INFINITY;
    for _ in 0..3 {
        let (client, server) = Stock::deal(&needed.demand, &mut Prg::from_os().expect("the system gives randomness"));
        let (client_end, server_end) = pair();
        let start = Instant::now();
        std::thread::scope(|scope| {
            for (role, mut channel, mut stock) in
                [(Role::Client, client_end, client), (Role::Server, server_end, server)]
            {
                let protocol = &protocol;
                scope.spawn(move || {
                    let mut party = Party { role, channel: &mut channel, stock: &mut stock, rounds };
                    protocol(&mut party).expect("both parties follow the protocol");
                });
            }
        });
        best = best.min(start.elapsed().as_secs_f64());
    }
    println!("{name}: {:.2} ms", best * 1e3);
}

fn alone(name: &str, work: impl Fn()) {
    let mut best = f64::INFINITY;
    for _ in 0..3 {
        let start = Instant::now();
        work();
        best = best.min(start.elapsed().as_secs_f64());
    }
    println!("{name}: {:.2} ms", best * 1e3);
}
