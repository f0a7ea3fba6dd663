//! The way from products to one result, by Horner's rule on three levels: sums along the columns of a kernel are rotated by
//! columns, sums of those along its rows by rows, and sums of those along blocks by blocks. So products are made of fresh
//! ciphertexts, there is one rotation for each step, and layers share their few different rotations.

use privet_bfv::slots::Rotation;

/// What input is multiplied by at once: the weights that meet it when it has been rotated to the output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Step {
    /// Whether rows of slots change places.
    pub(super) swap: bool,
    /// Blocks of the rotation.
    pub(super) ahead: usize,
    /// The kernel element, down and right.
    pub(super) tap: [usize; 2],
    /// Slots by which the rotation goes on each level: columns, rows, blocks.
    pub(super) left: [usize; LEVELS],
}

/// Levels of sums.
pub(super) const LEVELS: usize = 3;

/// What follows the product of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Turn {
    /// Sums below this level are complete and join those above; the sum of this level is rotated.
    pub(super) level: usize,
    /// How, if at all.
    pub(super) rotation: Option<Rotation>,
    /// Whether that was the last step with rows swapped.
    pub(super) swap: bool,
}

/// What follows each of some steps, which come in falling order of what they rotate.
pub(super) fn turns<'a>(steps: impl Iterator<Item = &'a Step> + Clone) -> impl Iterator<Item = Turn> {
    let next = steps.clone().skip(1).map(Some).chain([None]);
    steps.zip(next).map(|(step, next)| {
        let following = next.filter(|next| next.swap == step.swap);
        // The highest level on which the next step differs: all below start anew there.
        let differs = |next: &Step| (0..LEVELS).rev().find(|&level| next.left[level] != step.left[level]).unwrap_or(0);
        let level = following.map_or(LEVELS - 1, differs);
        let left = step.left[level] - following.map_or(0, |next| next.left[level]);
        let rotation = (left > 0).then_some(Rotation::Left(left));
        Turn { level, rotation, swap: step.swap && following.is_none() }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How far the product of each step is rotated in the end.
    fn travelled(steps: &[Step]) -> Vec<usize> {
        let mut levels: [Vec<(usize, usize)>; LEVELS] = Default::default();
        for (index, turn) in turns(steps.iter()).enumerate() {
            levels[0].push((index, 0));
            for level in 0..turn.level {
                let complete = std::mem::take(&mut levels[level]);
                levels[level + 1].extend(complete);
            }
            if let Some(Rotation::Left(left)) = turn.rotation {
                levels[turn.level].iter_mut().for_each(|(_, so_far)| *so_far += left);
            }
        }
        let [.., mut all] = levels;
        all.sort_unstable();
        all.into_iter().map(|(_, left)| left).collect()
    }

    #[test]
    fn every_product_is_rotated_as_far_as_its_step_says() {
        for (blocks, rows, columns) in [(1, 1, 1), (4, 1, 1), (1, 3, 3), (3, 2, 1), (2, 1, 3), (5, 3, 2)] {
            let mut steps = Vec::new();
            for ahead in (0..blocks).rev() {
                for down in (0..rows).rev() {
                    for right in (0..columns).rev() {
                        let left = [right, 10 * down, 100 * ahead];
                        steps.push(Step { swap: false, ahead, tap: [down, right], left });
                    }
                }
            }
            let expected: Vec<usize> = steps.iter().map(|step| step.left.iter().sum()).collect();
            assert_eq!(travelled(&steps), expected);
            let rotations = turns(steps.iter()).filter(|turn| turn.rotation.is_some()).count();
            assert_eq!(rotations, steps.len() - 1, "the last product stays where it is");
        }
    }

    #[test]
    fn rows_are_swapped_once_between_the_two_chains() {
        let step = |swap, ahead| Step { swap, ahead, tap: [0, 0], left: [0, 0, ahead] };
        let steps = [step(true, 2), step(true, 1), step(false, 1), step(false, 0)];
        let turns: Vec<Turn> = turns(steps.iter()).collect();
        assert_eq!(turns.iter().map(|turn| turn.swap).collect::<Vec<_>>(), [false, true, false, false]);
        // The swapped chain ends one block ahead, and is rotated by it.
        let lefts: Vec<_> = turns.iter().map(|turn| turn.rotation).collect();
        let one = Some(Rotation::Left(1));
        assert_eq!(lefts, [one, one, one, None]);
    }
}
