//! Suite `fss` against parties that deviate: ReLUs online, both parties on a core each, beside those on plain shares; and a convolution at
//! the server, offline and online.

use std::error::Error;
use std::hint::black_box;
use std::io;

use privet_channel::{Channel, pair};
use privet_fss::{Gate as _, Role, Seeds, point};
use privet_kernels::{Bench, Limit, both};
use privet_prg::{Prg, Seed};
use privet_ring::Modulus;
use privet_ring::linear::Conv2d;
use privet_shark::{Dealer, Gate as _, Hiding, Key, Keys, Layer, Party, Relu, Setup, Values};
use rayon::{ThreadPool, ThreadPoolBuilder};

const COUNT: usize = 1 << 18;

/// Of input and output, and of every linear layer.
const RING: Modulus = Modulus::new(37);

pub fn run(bench: &mut Bench) -> Result<(), Box<dyn Error>> {
    for (bits, dropped, wide) in [(64, 0, 64), (37, 0, 37), (25, 0, 37), (37, 12, 37)] {
        if dropped == 0 {
            plain_relus(bench, bits, wide)?;
        }
        relus(bench, bits, dropped, wide)?;
    }
    layer(bench)
}

/// On plain shares.
fn plain_relus(bench: &mut Bench, bits: u32, wide: u32) -> Result<(), Box<dyn Error>> {
    let (gate, seeds) = (privet_fss::Relu::new(bits, wide), Seeds::draw(&mut Prg::from_os()?));
    let mut words = Vec::new();
    let corrections = gate.deal(COUNT, &seeds, &mut words)?;
    let bodies = [words.clone(), [words, corrections].concat()];
    parties(bench, &format!("plain-relu-{bits}-into-{wide}"), 1.0, bits, |role, channel| {
        let (party, mut body) =
            (&mut privet_fss::Party { role, channel }, &bodies[usize::from(role == Role::Server)][..]);
        let shares = gate.evaluate(party, seed_of(role, &seeds), &mut body, &vec![5; COUNT]);
        shares.expect("both follow the protocol");
    })
}

/// On authenticated values: an opening behind masks, the gate, and a check.
fn relus(bench: &mut Bench, bits: u32, dropped: u32, wide: u32) -> Result<(), Box<dyn Error>> {
    let mut prg = Prg::from_os()?;
    let (gate, setup, seeds) = (Relu::new(bits, dropped, wide), Seeds::draw(&mut prg), Seeds::draw(&mut prg));
    let mut bodies = [Vec::new(), Vec::new()];
    let [client, server] = &mut bodies;
    let mut dealer = Dealer::new(&Keys::new(&setup), &seeds, client, server);
    let masks = dealer.masks(COUNT)?;
    gate.deal(&mut dealer, &masks)?;
    let name = format!("authenticated-relu-{bits}-without-{dropped}-into-{wide}");
    parties(bench, &name, 2.0, bits - dropped, |role, channel| {
        let (key, mut body) = (Key::new(role, seed_of(role, &setup)), &bodies[usize::from(role == Role::Server)][..]);
        let values = Values::public(&key, &vec![5; COUNT]);
        let mut party = Party::new(&key, channel, seed_of(role, &seeds), &mut body, b"kernels");
        let opened = party.mask(&values, Modulus::new(bits)).expect("both follow the protocol");
        gate.evaluate(&mut party, &opened).expect("both follow the protocol");
        party.check().expect("both follow the protocol");
    })
}

fn seed_of(role: Role, seeds: &Seeds) -> &Seed {
    match role {
        Role::Client => &seeds.client,
        Role::Server => &seeds.server,
    }
}

/// What both parties do, on a core each: comparisons of numbers of so many bits, with `hashes` at each of their levels.
fn parties(
    bench: &mut Bench,
    name: &str,
    hashes: f64,
    bits: u32,
    run: impl Fn(Role, &mut Channel) + Sync,
) -> Result<(), Box<dyn Error>> {
    let pool = || ThreadPoolBuilder::new().num_threads(1).build();
    let [near, far]: [ThreadPool; 2] = [pool()?, pool()?];
    let aes = hashes * (point::words(bits - 1) * COUNT) as f64;
    let limit =
        Limit { aes, why: "AES blocks of one party: one a level, or two on authenticated values", ..Limit::default() };
    bench.run(name, limit, || {
        let (mut client, mut server) = pair();
        both(|| near.install(|| run(Role::Client, &mut client)), || far.install(|| run(Role::Server, &mut server)))
    });
    Ok(())
}

/// A convolution of 3 by 3 taps, at the server.
fn layer(bench: &mut Bench) -> Result<(), Box<dyn Error>> {
    let shape = Conv2d {
        in_channels: 128,
        image: [28; 2],
        out_channels: 128,
        positions: [28; 2],
        kernel: [3; 2],
        stride: [1; 2],
        origin: [1; 2],
        dilation: [1; 2],
        groups: 1,
    };
    let (layer, mut prg) = (Layer::Conv2d { shape, batch: 1 }, Prg::from_os()?);
    let (setup, seeds) = (Seeds::draw(&mut prg), Seeds::draw(&mut prg));
    let weights: Vec<i64> = (0..layer.weights() as i64).map(|i| i % 255 - 127).collect();
    let (mut codes, mut body, mut nothing) = (Vec::new(), Vec::new(), io::sink());
    Hiding::new(&setup).deal(RING, weights.len(), &mut codes)?;
    let (half, _) = Setup::new(Role::Server, &setup.server).hide(RING, &weights, &mut &codes[..])?;
    let mut dealer = Dealer::new(&Keys::new(&setup), &seeds, &mut nothing, &mut body);
    let masks = dealer.masks(shape.inputs(1))?;
    layer.deal(&mut dealer, &Hiding::new(&setup).next(RING, weights.len()), &masks)?;

    let (mut channel, _other) = pair();
    let key = Key::new(Role::Server, &setup.server);
    let mut prepare = || {
        let mut rest = &body[..];
        let mut party = Party::new(&key, &mut channel, &seeds.server, &mut rest, b"kernels");
        let masks = party.masks(shape.inputs(1))?;
        layer.prepare(&mut party, &half, &masks)
    };
    let opened = vec![12_345_678_901; shape.inputs(1)];
    let vectors = (9 * 128 * 128 * 28 * 28) as f64 / 8.0;
    let limit = Limit { vectors, why: "at least one multiplication for eight products", ..Limit::default() };
    bench.run("authenticated-conv-28x28x128-offline", limit.clone(), || prepare().expect("a body"));
    let prepared = prepare()?;
    bench.run("authenticated-conv-28x28x128-online", limit.clone(), || {
        layer.finish(prepared.clone(), &half, black_box(&opened))
    });
    bench.run("plain-conv-28x28x128", limit, || shape.apply(black_box(&opened), &weights, 1, RING));
    Ok(())
}
