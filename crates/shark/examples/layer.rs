//! Seconds that one party takes for a convolution, offline and online, beside the plain one modulo 2^64.
//!
//! `cargo run --release -p privet-shark --example layer [channels]`; 3 by 3 taps, 28 by 28 positions.

use std::hint::black_box;
use std::io;
use std::time::Instant;

use privet_channel::pair;
use privet_fss::{Role, Seeds};
use privet_prg::Prg;
use privet_ring::Modulus;
use privet_ring::linear::Conv2d;
use privet_shark::{Dealer, Hiding, Key, Keys, Layer, Party, Setup};

fn main() {
    let channels: usize = std::env::args().nth(1).map_or(128, |count| count.parse().expect("a number of channels"));
    let shape = Conv2d {
        in_channels: channels,
        image: [28; 2],
        out_channels: channels,
        positions: [28; 2],
        kernel: [3; 2],
        stride: [1; 2],
        origin: [1; 2],
        dilation: [1; 2],
        groups: 1,
    };
    let (ring, layer) = (Modulus::new(37), Layer::Conv2d { shape, batch: 1 });
    let mut prg = Prg::from_os().expect("entropy");
    let (setup, seeds) = (Seeds::draw(&mut prg), Seeds::draw(&mut prg));
    let weights: Vec<i64> = (0..layer.weights() as i64).map(|i| i % 255 - 127).collect();
    let mut codes = Vec::new();
    Hiding::new(&setup).deal(ring, weights.len(), &mut codes).expect("a vector takes everything");
    let (half, _) =
        Setup::new(Role::Server, &setup.server).hide(ring, &weights, &mut &codes[..]).expect("codes for all");
    let mut body = Vec::new();
    let mut nothing = io::sink();
    let mut dealer = Dealer::new(&Keys::new(&setup), &seeds, &mut nothing, &mut body);
    let masks = dealer.masks(shape.inputs(1)).expect("a vector takes everything");
    let hidden = Hiding::new(&setup).next(ring, weights.len());
    let start = Instant::now();
    layer.deal(&mut dealer, &hidden, &masks).expect("a vector takes everything");
    println!("dealt in {:.3} s", start.elapsed().as_secs_f64());

    let (mut channel, _other) = pair();
    let (key, mut body) = (Key::new(Role::Server, &setup.server), &body[..]);
    let mut party = Party::new(&key, &mut channel, &seeds.server, &mut body, b"layer");
    let mask = party.masks(shape.inputs(1)).expect("a body");
    let start = Instant::now();
    let prepared = layer.prepare(&mut party, &half, &mask).expect("a body");
    println!("offline {:.3} s", start.elapsed().as_secs_f64());
    let opened = vec![12_345_678_901; shape.inputs(1)];
    let start = Instant::now();
    black_box(layer.finish(prepared, &half, &opened));
    println!("online {:.3} s at the server", start.elapsed().as_secs_f64());
    let start = Instant::now();
    black_box(shape.apply(&opened, &weights, 1, ring));
    println!("modulo 2^37 in the clear {:.3} s", start.elapsed().as_secs_f64());
}
