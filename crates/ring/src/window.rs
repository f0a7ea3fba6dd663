//! Windows that slide over images: which elements each output position of a pooling reads.

use std::collections::{BTreeMap, BTreeSet};

/// Groups of elements of a tensor: the same ones on each of several planes that follow one another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Groups {
    on_plane: Vec<Vec<usize>>,
    planes: usize,
    plane_len: usize,
}

impl Groups {
    /// Groups of indices into one plane, on `planes` planes of `plane_len` elements.
    pub fn on_planes(on_plane: Vec<Vec<usize>>, planes: usize, plane_len: usize) -> Self {
        Self { on_plane, planes, plane_len }
    }

    /// How many groups there are.
    pub fn count(&self) -> usize {
        self.planes * self.on_plane.len()
    }

    /// The number of members of each group, in order.
    pub fn sizes(&self) -> impl Iterator<Item = usize> {
        (0..self.planes).flat_map(move |_| self.on_plane.iter().map(Vec::len))
    }

    /// All members' indices, group by group.
    pub fn indices(&self) -> impl Iterator<Item = usize> {
        (0..self.planes)
            .flat_map(move |plane| self.on_plane.iter().flatten().map(move |at| plane * self.plane_len + at))
    }

    /// The indices of each group.
    pub fn iter(&self) -> impl Iterator<Item = impl Iterator<Item = usize>> {
        let on_plane = move |plane| {
            let place = move |&at: &usize| plane * self.plane_len + at;
            self.on_plane.iter().map(move |group| group.iter().map(place))
        };
        (0..self.planes).flat_map(on_plane)
    }
}

impl From<Vec<Vec<usize>>> for Groups {
    /// Groups on a single plane.
    fn from(groups: Vec<Vec<usize>>) -> Self {
        Self::on_planes(groups, 1, 0)
    }
}

/// Geometry of a pooling over an image of `image` height and width with `positions` windows along each axis.
#[derive(Clone, Copy, Debug)]
pub struct Windows {
    /// Height and width of the image.
    pub image: [usize; 2],
    /// Output height and width.
    pub positions: [usize; 2],
    /// Window height and width.
    pub kernel: [usize; 2],
    /// Vertical and horizontal step.
    pub stride: [usize; 2],
    /// Padding above and to the left.
    pub origin: [usize; 2],
    /// Distance between neighbouring elements of a window.
    pub dilation: [usize; 2],
}

impl Windows {
    /// For each output position in row-major order, the indices into one image plane of the elements that its window
    /// holds; positions on the padding hold none.
    pub fn elements(&self) -> Vec<Vec<usize>> {
        let [rows, columns] = [self.along(0), self.along(1)];
        rows.iter()
            .flat_map(|ys| columns.iter().map(move |xs| (ys, xs)))
            .map(|(ys, xs)| ys.iter().flat_map(|y| xs.iter().map(move |x| y * self.image[1] + x)).collect())
            .collect()
    }

    /// How to find the maximum of every window in the fewest comparisons: groups of indices, stage by stage. The first
    /// stage reads one image plane, each other what the stage before it left.
    ///
    /// Overlapping windows share their parts along an axis, so it may be less to shrink the rows of the image first and
    /// the columns of what is left then, or the other way round. A group of `n` takes `n - 1` comparisons.
    pub fn maxima(&self) -> Vec<Vec<Vec<usize>>> {
        let ways = [vec![self.elements()], self.by_axes(true), self.by_axes(false)];
        let comparisons = |stages: &Vec<Vec<Vec<usize>>>| -> usize {
            stages.iter().flatten().map(|group| group.len().saturating_sub(1)).sum()
        };
        ways.into_iter().min_by_key(comparisons).expect("there are three ways")
    }

    /// Windows along one axis, then windows of their maxima along the other.
    fn by_axes(&self, rows_first: bool) -> Vec<Vec<Vec<usize>>> {
        let (first, second) = if rows_first { (self.along(1), self.along(0)) } else { (self.along(0), self.along(1)) };
        // The lines on which the first stage works: those that some window of the second reads.
        let lines: BTreeSet<usize> = second.iter().flatten().copied().collect();
        let place =
            |line: usize, at: usize| if rows_first { line * self.image[1] + at } else { at * self.image[1] + line };
        let stage = |line: usize| first.iter().map(move |group| group.iter().map(|&at| place(line, at)).collect());
        let firsts: Vec<Vec<usize>> = lines.iter().flat_map(|&line| stage(line)).collect();
        let order: BTreeMap<usize, usize> = lines.iter().enumerate().map(|(index, &line)| (line, index)).collect();
        let seconds = (0..self.positions[0]).flat_map(|row| (0..self.positions[1]).map(move |column| (row, column)));
        let seconds = seconds.map(|(row, column)| {
            let (group, other) = if rows_first { (&second[row], column) } else { (&second[column], row) };
            group.iter().map(|line| order[line] * first.len() + other).collect()
        });
        vec![firsts, seconds.collect()]
    }

    fn along(&self, axis: usize) -> Vec<Vec<usize>> {
        let inside = |at: usize| at.checked_sub(self.origin[axis]).filter(|at| *at < self.image[axis]);
        (0..self.positions[axis])
            .map(|position| {
                let start = position * self.stride[axis];
                (0..self.kernel[axis]).filter_map(|k| inside(start + k * self.dilation[axis])).collect()
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn edges_hold_fewer_elements() {
        let windows = Windows {
            image: [2, 3],
            positions: [1, 2],
            kernel: [3, 2],
            stride: [1, 2],
            origin: [1, 1],
            dilation: [1, 1],
        };
        assert_eq!(windows.elements(), [vec![0, 3], vec![1, 2, 4, 5]]);
    }

    fn comparisons(stages: &[Vec<Vec<usize>>]) -> usize {
        stages.iter().flatten().map(|group| group.len() - 1).sum()
    }

    #[test]
    fn overlapping_windows_are_taken_by_axes() {
        // docs/protocols/maxpool.md: 3x3 windows with a step of 2 take 2 * 55 * 27 + 2 * 27 * 27 comparisons, not 8.
        let mut windows = Windows {
            image: [55, 55],
            positions: [27, 27],
            kernel: [3, 3],
            stride: [2, 2],
            origin: [0, 0],
            dilation: [1, 1],
        };
        let stages = windows.maxima();
        assert_eq!((stages.len(), comparisons(&stages)), (2, 2 * 55 * 27 + 2 * 27 * 27));
        windows = Windows { kernel: [2, 2], ..windows };
        assert_eq!((windows.maxima().len(), comparisons(&windows.maxima())), (1, 3 * 27 * 27));
    }

    proptest! {
        #[test]
        fn stages_find_the_maximum_of_every_window(
            image in [1usize..9, 1usize..9], kernel in [1usize..5, 1usize..5], stride in [1usize..4, 1usize..4],
            origin in [0usize..2, 0usize..2], dilation in [1usize..3, 1usize..3], seed: u64,
        ) {
            let span = |axis: usize| (image[axis] + 2 * origin[axis]).checked_sub((kernel[axis] - 1) * dilation[axis] + 1);
            let (Some(tall), Some(wide)) = (span(0), span(1)) else { return Ok(()) };
            let positions = [tall / stride[0] + 1, wide / stride[1] + 1];
            let windows = Windows { image, positions, kernel, stride, origin, dilation };
            let x: Vec<u64> = (1..=image[0] as u64 * image[1] as u64).map(|i| i.wrapping_mul(seed | 1) >> 40).collect();
            let maxima = |x: &[u64], groups: &[Vec<usize>]| -> Vec<u64> {
                groups.iter().map(|group| group.iter().map(|&at| x[at]).max().unwrap_or(0)).collect()
            };
            let expected = maxima(&x, &windows.elements());
            for stages in [windows.by_axes(true), windows.by_axes(false), windows.maxima()] {
                prop_assert_eq!(stages.iter().fold(x.clone(), |x, groups| maxima(&x, groups)), expected.clone());
            }
            let fewest = [windows.by_axes(true), windows.by_axes(false), vec![windows.elements()]];
            prop_assume!(fewest.iter().flatten().flatten().all(|group| !group.is_empty()));
            let fewest = fewest.iter().map(|stages| comparisons(stages)).min();
            prop_assert_eq!(Some(comparisons(&windows.maxima())), fewest);
        }
    }
}
