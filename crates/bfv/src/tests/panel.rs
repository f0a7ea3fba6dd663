//! Products of many ciphertexts with polynomials in `X^B`.

use super::{Session, prg};
use crate::{Blocks, Group, Panel, Parameters, Sum};

fn panel(parameters: &Parameters, ciphertexts: &[Vec<u8>]) -> Panel {
    let mut panel = Panel::new(parameters);
    fill(&mut panel, parameters, ciphertexts);
    panel
}

fn fill(panel: &mut Panel, parameters: &Parameters, ciphertexts: &[Vec<u8>]) {
    let groups = panel.groups(ciphertexts.len()).unwrap();
    for (group, ciphertexts) in groups.iter_mut().zip(ciphertexts.chunks(Group::MOST)) {
        group.read(parameters, &ciphertexts.concat()).unwrap();
    }
}

/// A matrix product on panels: shares add up to it, off by one at most, wherever rows lie in blocks.
#[test]
fn rows_of_a_panel_are_weighed_and_added_up() {
    let (ring_bits, mask_bits, guard) = (42, 40, 2);
    for (blocks, inner, columns) in [
        (Blocks { count: 1, width: 1 }, 3, 4096),
        (Blocks { count: 16, width: 3 }, 23, 700),
        (Blocks { count: 16, width: 12 }, 5, 3072),
        (Blocks { count: 64, width: 2 }, 70, 100),
        (Blocks { count: 4, width: 1 }, 9, 1024),
    ] {
        let parameters = Parameters::choose_for_masks(ring_bits, mask_bits, inner, 1 << 20).unwrap();
        let (degree, ring) = (parameters.degree(), parameters.ring_mask());
        let mut session = Session::new(&parameters, 7);
        let rows = blocks.rows();
        let mut random = prg(8);
        let weights: Vec<i64> = (0..inner * columns).map(|_| random.below(1 << 17) as i64 - (1 << 16)).collect();
        let ciphertexts: Vec<Vec<u8>> = (0..inner.div_ceil(rows))
            .map(|term| {
                let mut message = vec![0; degree];
                for row in (0..rows).filter(|row| term * rows + row < inner) {
                    let at = row * blocks.width * blocks.block(degree);
                    for (place, w) in message[at..].iter_mut().zip(&weights[(term * rows + row) * columns..][..columns])
                    {
                        *place = (w.cast_unsigned() << guard) & ring;
                    }
                }
                session.encrypt(&message)
            })
            .collect();
        let panel = panel(&parameters, &ciphertexts);
        let masks: Vec<Vec<i64>> = (0..7)
            .map(|_| {
                let mut masks: Vec<i64> = (0..inner).map(|_| (random.word() << 24).cast_signed() >> 24).collect();
                masks.resize(ciphertexts.len() * rows, 0);
                masks
            })
            .collect();
        let mut sums = vec![Sum::new(&parameters); masks.len()];
        panel.multiply_add(blocks, &mut sums, &masks.iter().map(Vec::as_slice).collect::<Vec<_>>()).unwrap();
        let start = blocks.result(degree);
        let positions: Vec<usize> = (start..start + columns).collect();
        for (sum, masks) in sums.into_iter().zip(&masks) {
            let mut reply = Vec::new();
            let server_shares = sum.reply(&session.public, &positions, &mut random, &mut reply).unwrap();
            let client_shares = session.secret.open(&reply, &positions).unwrap();
            for (column, (server, client)) in server_shares.iter().zip(&client_shares).enumerate() {
                let product = (0..inner)
                    .fold(0_i64, |sum, row| sum.wrapping_add(masks[row].wrapping_mul(weights[row * columns + column])));
                let expected = product.cast_unsigned() << guard;
                let off = server.wrapping_add(*client).wrapping_sub(expected).wrapping_add(1) & ring;
                assert!(off <= 2, "{blocks:?}, column {column}: off by {off} - 1");
            }
        }
    }
}

#[test]
#[ignore = "a measurement"]
fn how_long_a_panel_takes() {
    let blocks = Blocks { count: 16, width: 3 };
    let parameters = Parameters::choose_for_masks(42, 40, 3072, 1 << 24).unwrap();
    println!("primes {:?}, reply {}", parameters.prime_bits(), parameters.reply_bits());
    let mut session = Session::new(&parameters, 7);
    let message = session.message();
    let start = std::time::Instant::now();
    let bytes: Vec<Vec<u8>> = (0..256).map(|_| session.encrypt(&message)).collect();
    println!("encrypt {:?}", start.elapsed() / 256);
    let mut panel = panel(&parameters, &bytes);
    for _ in 0..2 {
        let start = std::time::Instant::now();
        fill(&mut panel, &parameters, &bytes);
        println!("read {:?}", start.elapsed() / 256);
    }
    let mut random = prg(8);
    let masks: Vec<Vec<i64>> =
        (0..64).map(|_| (0..256 * 5).map(|_| (random.word() << 24).cast_signed() >> 24).collect()).collect();
    let masks: Vec<&[i64]> = masks.iter().map(Vec::as_slice).collect();
    let mut sums = vec![Sum::new(&parameters); 64];
    for _ in 0..3 {
        let start = std::time::Instant::now();
        panel.multiply_add(blocks, &mut sums, &masks).unwrap();
        let each = start.elapsed() / (64 * 256);
        println!("multiply {each:?} a ciphertext and sum");
    }
    let positions: Vec<usize> = (3072..3072 + 768).collect();
    let start = std::time::Instant::now();
    let replies: Vec<Vec<u8>> = sums
        .into_iter()
        .map(|sum| {
            let mut reply = Vec::new();
            sum.reply(&session.public, &positions, &mut random, &mut reply).unwrap();
            reply
        })
        .collect();
    println!("reply {:?}", start.elapsed() / 64);
    let start = std::time::Instant::now();
    replies.iter().for_each(|reply| drop(session.secret.open(reply, &positions).unwrap()));
    println!("open {:?}", start.elapsed() / 64);
}
