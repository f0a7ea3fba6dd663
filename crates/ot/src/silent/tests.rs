//! Both ends of a silent extension over ideal base OTs.

use privet_channel::pair;

use super::parameters::{INSTANCES, Parameters};
use super::*;
use crate::tree;

/// Two matching ends.
fn ends(size: Size, seed: u8) -> (SilentSender, SilentReceiver) {
    let mut prg = Prg::from_seed(&Seed::from_bytes([seed; 16]));
    let delta = prg.block() | 1;
    let keys: Vec<[Block; 2]> = (0..128).map(|_| [prg.block(), prg.block()]).collect();
    let chosen: Vec<Block> = keys.iter().enumerate().map(|(i, keys)| keys[(delta >> i & 1) as usize]).collect();
    let k = BASE_FIELD.k();
    let (seeds, message) = tree::plant(k, &keys, &mut prg);
    let punctured_seeds = tree::grow(k, delta, &chosen, &message);
    let sender = SilentSender::new(size, SoftSpokenSender::new(BASE_FIELD, delta, &punctured_seeds), prg);
    (sender, SilentReceiver::new(size, SoftSpokenReceiver::new(BASE_FIELD, &seeds)))
}

/// What both ends got: the sender's blocks, the receiver's choices and blocks.
type Outputs = (Vec<Block>, Bits, Vec<Block>);

/// Extends `counts` one after the other.
fn extend(sender: &mut SilentSender, receiver: &mut SilentReceiver, counts: &[usize]) -> Result<Vec<Outputs>, Error> {
    let (mut to_receiver, mut to_sender) = pair();
    receiver.begin(&mut to_sender)?;
    to_sender.flush()?;
    let mut outputs = Vec::new();
    for &count in counts {
        let q = sender.extend(&mut to_receiver, count)?.to_vec();
        to_receiver.flush()?;
        let (choice, t) = receiver.extend(&mut to_sender, count)?;
        outputs.push((q, choice, t.to_vec()));
    }
    Ok(outputs)
}

#[test]
fn blocks_differ_by_delta_where_the_choice_is_one() -> Result<(), Error> {
    for size in Size::ALL {
        let (mut sender, mut receiver) = ends(size, 1);
        let delta = sender.delta();
        let mut seen = Vec::new();
        // Together over the end of every rung and into the one after it.
        let counts = [1, 127, 2048, 0, 90_000, 70_001, 400_000, 8191, 300_000, 3_400_000];
        for (q, choice, t) in extend(&mut sender, &mut receiver, &counts)? {
            assert_eq!((q.len(), choice.len()), (t.len(), t.len()));
            for i in 0..q.len() {
                assert_eq!(q[i] ^ t[i], if choice.get(i) { delta } else { 0 }, "{size:?}, OT {i} of {}", q.len());
            }
            seen.extend(q);
        }
        assert_eq!(seen.len(), counts.iter().sum::<usize>());
        let count = seen.len();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), count, "{size:?} made a block twice");
        assert_eq!(sender.delta(), delta);
    }
    Ok(())
}

#[test]
fn chunks_are_the_same_as_the_whole() -> Result<(), Error> {
    // Into the fourth iteration, so that memory is used again.
    let counts = [3, 600_000, 1_500_000, 1, 1_900_000, 29_996];
    let (mut sender, mut receiver) = ends(Size::Small, 2);
    let chunks = extend(&mut sender, &mut receiver, &counts)?;
    let (mut sender, mut receiver) = ends(Size::Small, 2);
    let whole = extend(&mut sender, &mut receiver, &[counts.iter().sum()])?;
    let concatenated: Vec<Block> = chunks.iter().flat_map(|(_, _, t)| t.clone()).collect();
    assert_eq!(concatenated, whole[0].2);
    Ok(())
}

#[test]
fn choices_and_blocks_look_uniform_in_every_iteration() -> Result<(), Error> {
    const COUNT: usize = 100_000;
    // Six standard deviations of a binomial count.
    const SLACK: i64 = 950;
    let near_half = |ones: usize| (ones as i64 - COUNT as i64 / 2).abs() < SLACK;
    let (mut sender, mut receiver) = ends(Size::Small, 3);
    let [first, second] = [508_928 - COUNT, 1_540_096 - COUNT];
    let outputs: Vec<_> =
        extend(&mut sender, &mut receiver, &[COUNT, first, COUNT, second, COUNT])?.into_iter().step_by(2).collect();
    for (_, choice, t) in &outputs {
        assert!(near_half(choice.iter().filter(|&bit| bit).count()));
        for bit in 1..128 {
            assert!(near_half(t.iter().filter(|&t| t >> bit & 1 == 1).count()), "bit {bit}");
            let equal = t.iter().zip(choice.iter()).filter(|&(t, c)| (t >> bit & 1 == 1) == c).count();
            assert!(near_half(equal), "bit {bit} against the choice");
        }
    }
    for (one, other) in [(0, 1), (0, 2), (1, 2)] {
        let equal = outputs[one].1.xor(&outputs[other].1);
        assert!(near_half(equal.iter().filter(|&bit| bit).count()), "iterations {one} and {other}");
    }
    Ok(())
}

/// A receiver's iteration and all of its blocks. With `alike` the first two instances have the same secret.
fn receive(parameters: Parameters, seed: u8, alike: bool) -> (Iteration, Vec<Block>) {
    let mut prg = Prg::from_seed(&Seed::from_bytes([seed; 16]));
    let delta = prg.block() | 1;
    let mut q = Zeroizing::new(vec![0; parameters.base()]);
    prg.fill_blocks(&mut q);
    q.iter_mut().for_each(|q| *q &= !1);
    let choose = |q: &Block| q ^ if prg.word() & 1 == 1 { delta } else { 0 };
    let mut t = Zeroizing::new(q.iter().map(choose).collect::<Vec<_>>());
    if alike {
        for blocks in [&mut q, &mut t] {
            let (bits, _) = blocks[..INSTANCES * parameters.secret()].as_chunks_mut::<INSTANCES>();
            bits.iter_mut().for_each(|bit| bit[1] = bit[0]);
        }
    }
    let matrix = prg.seed();
    let groups = 0..parameters.groups();
    let (mut sender_blocks, mut receiver_blocks) = (vec![0; parameters.outputs()], vec![0; parameters.outputs()]);
    let message = Iteration::new(parameters, &matrix, (q, 0)).plant(delta, groups.clone(), &mut sender_blocks);
    let receiver = Iteration::new(parameters, &matrix, (t, 0));
    receiver.grow(groups, &message, &mut receiver_blocks);
    (receiver, receiver_blocks)
}

/// Choice bits of a whole iteration with its noise, and again without, less the matrix times the secret: the noise alone.
fn noises(parameters: Parameters, seed: u8) -> [Vec<bool>; 2] {
    let (receiver, blocks) = receive(parameters, seed, false);
    let bits = |blocks: &[Block]| -> Vec<bool> { blocks.iter().map(|block| block & 1 == 1).collect() };
    let without = receiver.encoded();
    let difference = |a: &[bool]| a.iter().zip(bits(&without)).map(|(a, b)| a ^ b).collect();
    [difference(&bits(&blocks)), difference(&bits(&without))]
}

/// Whether there is exactly one noisy sample in every tree, and at which leaves.
fn regular(parameters: Parameters, noise: &[bool]) -> Option<Vec<usize>> {
    use privet_prg::ggm::TREES;
    let leaves = |tree: usize| {
        let group = &noise[tree / TREES * parameters.group_outputs()..][..parameters.group_outputs()];
        group.iter().skip(tree % TREES).step_by(TREES).copied().enumerate().filter(|&(_, noisy)| noisy)
    };
    (0..INSTANCES * parameters.trees)
        .map(|tree| match leaves(tree).collect::<Vec<_>>()[..] {
            [(leaf, _)] => Some(leaf),
            _ => None,
        })
        .collect()
}

/// Whether no more positions agree than those of uniform ones do: six standard deviations above one in `2^depth`.
fn few_are_alike(one: &[usize], other: &[usize], parameters: Parameters) -> bool {
    let pairs = one.len().min(other.len());
    let expected = pairs as f64 / f64::from(1 << parameters.depth);
    let same = one.iter().zip(other).filter(|(one, other)| one == other).count() as f64;
    same < expected + 6.0 * expected.sqrt()
}

#[test]
fn noise_is_regular_and_new_in_every_iteration() {
    for parameters in [Parameters::TINY, Parameters::SMALL] {
        let [noise, _] = noises(parameters, 4);
        assert_eq!(noise.iter().filter(|&&bit| bit).count(), INSTANCES * parameters.trees);
        let positions = regular(parameters, &noise).expect("one noisy sample per tree");
        let [noise, _] = noises(parameters, 5);
        let other_positions = regular(parameters, &noise).expect("one noisy sample per tree");
        assert!(few_are_alike(&positions, &other_positions, parameters));
        let half = 1 << (parameters.depth - 1);
        let upper = positions.iter().filter(|&&leaf| leaf >= half).count() as f64;
        let trees = positions.len() as f64;
        // Six standard deviations.
        assert!((upper - trees / 2.0).abs() < 3.0 * trees.sqrt(), "{upper} of {trees} in the upper half");
    }
}

#[test]
fn trees_have_noise_of_their_own() {
    use privet_prg::ggm::TREES;
    let parameters = Parameters::TINY;
    let positions = regular(parameters, &noises(parameters, 4)[0]).expect("one noisy sample per tree");
    // Of the same instance, and of the others.
    for distance in 1..=TREES {
        assert!(few_are_alike(&positions, &positions[distance..], parameters), "{distance} trees on");
    }
}

/// Choice bits in which the first two instances differ, less what it would be on average.
fn differences(alike: bool) -> i64 {
    let (_, blocks) = receive(Parameters::TINY, 9, alike);
    let (samples, _) = blocks.as_chunks::<INSTANCES>();
    let differ = samples.iter().filter(|sample| (sample[0] ^ sample[1]) & 1 == 1).count();
    differ as i64 - Parameters::TINY.samples() as i64 / 2
}

#[test]
fn instances_under_one_matrix_have_secrets_of_their_own() {
    // Six standard deviations of a binomial count.
    let slack = (9 * Parameters::TINY.samples()).isqrt() as i64;
    assert!(differences(false).abs() < slack);
    // If they had the same one, the difference of two would be noise alone.
    assert!(differences(true) < -slack);
}

#[test]
fn every_sample_takes_words_of_its_own_from_the_stream() {
    use privet_prg::{KeyStream, sparse};
    let parameters = Parameters::TINY;
    let mut prg = Prg::from_seed(&Seed::from_bytes([8; 16]));
    let (mut base, matrix) = (Zeroizing::new(vec![0; parameters.base()]), prg.seed());
    prg.fill_blocks(&mut base);
    let (terms, stream) = (1 << parameters.part_bits, KeyStream::new(&matrix));
    let samples = Iteration::new(parameters, &matrix, (base.clone(), 0)).encoded();
    // Of either end of a row, of a tile and of the whole.
    for i in [0, 1, 255, 256, 16_383, 16_384, 100_000, parameters.samples() - 1] {
        let (row, place) = (i / sparse::ROWS, i % sparse::ROWS);
        let sum = (0..sparse::PARTS).fold([0; INSTANCES], |sum, part| {
            let mut word = [0];
            stream.blocks(((row * sparse::PARTS + part) * (sparse::ROWS / 8) + place / 8) as u64, &mut word);
            let word = (word[0] >> (16 * (place % 8))) as usize % terms;
            std::array::from_fn(|instance| sum[instance] ^ base[(part * terms + word) * INSTANCES + instance])
        });
        assert_eq!(samples[INSTANCES * i..][..INSTANCES], sum, "sample {i} of every instance");
    }
}

#[test]
fn every_iteration_starts_from_other_blocks() -> Result<(), Error> {
    let (mut sender, mut receiver) = ends(Size::Small, 7);
    let (mut to_receiver, mut to_sender) = pair();
    receiver.begin(&mut to_sender)?;
    to_sender.flush()?;
    let mut starts = Vec::new();
    for _ in 0..4 {
        // More than an iteration of this size gives.
        let count = Parameters::SMALL.outputs();
        sender.extend(&mut to_receiver, count)?.to_vec();
        to_receiver.flush()?;
        receiver.extend(&mut to_sender, count)?;
        let iterations = [&sender.0.iteration, &receiver.0.iteration];
        starts.extend(iterations.into_iter().flatten().flat_map(|iteration| iteration.base().to_vec()));
    }
    // A sender's block may equal the receiver's, where the choice is zero; no block comes in two iterations.
    let parties: std::collections::HashMap<Block, usize> = starts.iter().fold(Default::default(), |mut seen, block| {
        *seen.entry(*block).or_default() += 1;
        seen
    });
    assert!(parties.len() > starts.len() / 2);
    assert!(parties.values().all(|&times| times <= 2), "an iteration starts from what another did");
    Ok(())
}

#[test]
fn samples_without_noise_are_caught() {
    let parameters = Parameters::TINY;
    let [_, nothing] = noises(parameters, 4);
    assert_eq!(regular(parameters, &nothing), None);
}

#[test]
fn a_message_of_another_length_is_an_error() -> Result<(), Error> {
    let ((mut sender, _), (_, mut receiver)) = (ends(Size::Small, 6), ends(Size::Small, 6));
    let (mut to_receiver, mut to_sender) = pair();
    receiver.begin(&mut to_sender)?;
    to_sender.flush()?;
    sender.extend(&mut to_receiver, 5000)?;
    to_receiver.flush()?;
    // The receiver expects another number of trees.
    assert!(matches!(receiver.extend(&mut to_sender, 10_000), Err(Error::Channel(_))));
    // What was to be made counts as made, and is not there.
    assert!(matches!(receiver.extend(&mut to_sender, 1), Err(Error::Misuse { .. })));
    Ok(())
}
