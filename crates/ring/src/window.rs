//! Windows that slide over images: which elements each output position of a pooling reads.

use std::collections::{BTreeMap, BTreeSet};

/// How many groups there are of each size, as pairs of a size and a number.
pub type Sizes = Vec<(usize, usize)>;

/// Groups of elements of a tensor: the same ones on each of several planes that follow one another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Groups {
    /// All members on a plane, group by group.
    members: Vec<usize>,
    /// How many each group has.
    sizes: Vec<usize>,
    planes: usize,
    plane_len: usize,
}

impl Groups {
    /// Groups of indices into one plane, on `planes` planes of `plane_len` elements.
    pub fn on_planes<G: IntoIterator<Item = usize>>(
        on_plane: impl IntoIterator<Item = G>,
        planes: usize,
        plane_len: usize,
    ) -> Self {
        let mut members = Vec::new();
        let size = |group: G| {
            let begin = members.len();
            members.extend(group);
            members.len() - begin
        };
        let sizes = on_plane.into_iter().map(size).collect();
        Self { members, sizes, planes, plane_len }
    }

    /// How many groups there are.
    pub fn count(&self) -> usize {
        self.planes * self.sizes.len()
    }

    /// The number of members of each group, in order.
    pub fn sizes(&self) -> impl Iterator<Item = usize> {
        (0..self.planes).flat_map(move |_| self.sizes.iter().copied())
    }

    /// Groups of one size that follow each other, as pairs of the size and how many there are.
    pub fn runs(&self) -> Sizes {
        let on_plane: Sizes = self.sizes.chunk_by(|a, b| a == b).map(|run| (run[0], run.len())).collect();
        match on_plane[..] {
            [(size, count)] => vec![(size, count * self.planes)],
            _ => on_plane.repeat(self.planes),
        }
    }

    /// All members' indices, group by group.
    pub fn indices(&self) -> impl Iterator<Item = usize> {
        (0..self.planes).flat_map(move |plane| self.members.iter().map(move |at| plane * self.plane_len + at))
    }

    /// All members of a tensor's groups, group by group.
    pub fn gather<T: Copy>(&self, x: &[T]) -> Vec<T> {
        // Windows that are whole planes.
        if self.members.iter().copied().eq(0..self.plane_len) {
            return x[..self.planes * self.plane_len].to_vec();
        }
        let Some(&some) = x.first() else { return Vec::new() };
        let mut gathered = vec![some; self.planes * self.members.len()];
        for (plane, gathered) in gathered.chunks_exact_mut(self.members.len().max(1)).enumerate() {
            let plane = &x[plane * self.plane_len..];
            self.members.iter().zip(gathered).for_each(|(&at, member)| *member = plane[at]);
        }
        gathered
    }

    /// The indices of each group.
    pub fn iter(&self) -> impl Iterator<Item = impl Iterator<Item = usize>> {
        let on_plane = move |plane| {
            let place = move |&at: &usize| plane * self.plane_len + at;
            let mut rest = &self.members[..];
            self.sizes.iter().map(move |&size| {
                let (group, after) = rest.split_at(size);
                rest = after;
                group.iter().map(place)
            })
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
        self.on_planes(1).iter().map(Iterator::collect).collect()
    }

    /// The same on `planes` planes.
    pub fn on_planes(&self, planes: usize) -> Groups {
        let ([rows, columns], width) = ([self.along(0), self.along(1)], self.image[1]);
        let windows = rows.iter().flat_map(|ys| columns.iter().map(move |xs| (ys, xs)));
        let elements = windows.map(|(ys, xs)| ys.iter().flat_map(move |y| xs.iter().map(move |x| y * width + x)));
        Groups::on_planes(elements, planes, self.image[0] * width)
    }

    /// How to find the maximum of every window in the fewest comparisons: groups of indices, stage by stage. The first
    /// stage reads one image plane, each other what the stage before it left.
    ///
    /// Overlapping windows share their parts along an axis, so it may be less to shrink the rows of the image first and
    /// the columns of what is left then, or the other way round. A group of `n` takes `n - 1` comparisons.
    pub fn maxima(&self) -> Vec<Vec<Vec<usize>>> {
        match self.way().0 {
            Way::Whole => vec![self.elements()],
            Way::ByAxes { rows_first } => self.by_axes(rows_first),
        }
    }

    /// The sizes of the groups of each stage of [`Windows::maxima`] on one plane. Takes time and memory by the kernel's
    /// height and width, whatever the size of the image.
    pub fn stages(&self) -> Vec<Sizes> {
        self.way().1
    }

    /// The size of the largest window, and whether no two windows share an element; in time as [`Windows::stages`].
    pub fn spread(&self) -> (usize, bool) {
        let axes = [0, 1].map(|axis| self.lengths(axis));
        let longest = axes.each_ref().map(|lengths| lengths.iter().map(|(length, _)| *length).max().unwrap_or(0));
        let read = |axis: usize| axes[axis].iter().map(|(length, count)| length * count).sum::<usize>();
        (longest[0] * longest[1], [0, 1].into_iter().all(|axis| read(axis) == self.lines(axis)))
    }

    /// The way with the fewest comparisons, and the sizes of its stages.
    fn way(&self) -> (Way, Vec<Sizes>) {
        let [rows, columns] = [0, 1].map(|axis| self.lengths(axis));
        let mut whole = BTreeMap::new();
        for (height, above) in &rows {
            for (width, beside) in &columns {
                *whole.entry(height * width).or_insert(0) += above * beside;
            }
        }
        let times =
            |lengths: &Sizes, factor: usize| lengths.iter().map(|&(size, count)| (size, count * factor)).collect();
        let by_axes = |rows_first: bool| {
            let (first, second) = if rows_first { (&columns, &rows) } else { (&rows, &columns) };
            let (inner, outer) = if rows_first { (1, 0) } else { (0, 1) };
            vec![times(first, self.lines(outer)), times(second, self.positions[inner])]
        };
        let comparisons = |(_, stages): &(Way, Vec<Sizes>)| -> usize {
            stages.iter().flatten().map(|(size, count)| size.saturating_sub(1) * count).sum()
        };
        let mut ways = vec![(Way::Whole, vec![whole.into_iter().collect()])];
        ways.extend([true, false].map(|rows_first| (Way::ByAxes { rows_first }, by_axes(rows_first))));
        ways.into_iter().min_by_key(comparisons).expect("there are three ways")
    }

    /// How many windows hold how many elements along an axis. Lengths change only where a window's edge passes the image's.
    fn lengths(&self, axis: usize) -> Sizes {
        let (step, gap, kernel) = (self.stride[axis], self.dilation[axis], self.kernel[axis]);
        let (begin, end) = (self.origin[axis], self.origin[axis] + self.image[axis]);
        // Elements of the window at a position that lie before `place`, and the first position with fewer.
        let before = |place: usize, position: usize| {
            let count = place.saturating_sub(position * step).div_ceil(gap).min(kernel);
            let next = count.checked_sub(1).map(|fewer| place.saturating_sub(fewer * gap).div_ceil(step));
            (count, next.unwrap_or(usize::MAX))
        };
        let (mut lengths, mut position) = (BTreeMap::new(), 0);
        while position < self.positions[axis] {
            let ((outside, one), (inside, other)) = (before(begin, position), before(end, position));
            let next = one.min(other).min(self.positions[axis]);
            *lengths.entry(inside - outside).or_insert(0) += next - position;
            position = next;
        }
        lengths.into_iter().collect()
    }

    /// How many lines of an axis some window reads: the union of a progression for each element of the kernel.
    fn lines(&self, axis: usize) -> usize {
        let (step, gap) = (self.stride[axis], self.dilation[axis]);
        let (begin, end) = (self.origin[axis], self.origin[axis] + self.image[axis]);
        // For each remainder modulo the step, up to where its lines are counted, in steps.
        let mut counted: BTreeMap<usize, usize> = BTreeMap::new();
        let mut lines = 0;
        for place in (0..self.kernel[axis]).map(|k| k * gap) {
            let (remainder, start) = (place % step, place / step);
            let upto = counted.entry(remainder).or_insert(begin.saturating_sub(remainder).div_ceil(step));
            let last = (start + self.positions[axis]).min(end.saturating_sub(remainder).div_ceil(step));
            lines += last.saturating_sub(start.max(*upto));
            *upto = last.max(*upto);
        }
        lines
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

/// How maxima of windows are found: window by window, or along one axis and then along the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Whole,
    ByAxes { rows_first: bool },
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

    #[test]
    fn groups_are_gathered_from_every_plane_and_counted_in_runs() {
        let x: Vec<u64> = (0..12).collect();
        let whole = Groups::on_planes([[0, 1], [2, 3]], 3, 4);
        assert_eq!((whole.gather(&x), whole.runs()), (x.clone(), vec![(2, 6)]));
        let uneven = Groups::on_planes([vec![3], vec![0, 1], vec![2, 0]], 2, 4);
        assert_eq!(uneven.gather(&x), [3, 0, 1, 2, 0, 7, 4, 5, 6, 4]);
        assert_eq!(uneven.runs(), [(1, 1), (2, 2), (1, 1), (2, 2)]);
        for groups in [whole, uneven] {
            assert_eq!(groups.gather(&x), groups.indices().map(|at| x[at]).collect::<Vec<_>>());
            let runs = groups.runs().into_iter().flat_map(|(size, count)| vec![size; count]);
            assert_eq!(runs.collect::<Vec<_>>(), groups.sizes().collect::<Vec<_>>());
        }
        let none = Groups::on_planes([[0; 0]; 0], 3, 4);
        assert_eq!((none.gather(&x), none.runs()), (vec![], vec![]));
    }

    fn comparisons(stages: &[Vec<Vec<usize>>]) -> usize {
        stages.iter().flatten().map(|group| group.len() - 1).sum()
    }

    #[test]
    fn overlapping_windows_are_taken_by_axes() {
        // docs/reference/protocols/maxpool.md: 3x3 windows with a step of 2 take 2 * 55 * 27 + 2 * 27 * 27 comparisons, not 8.
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

    #[test]
    fn sizes_take_no_time_by_the_size_of_the_image() {
        let windows = Windows {
            image: [1 << 14; 2],
            positions: [1 << 13; 2],
            kernel: [2, 3],
            stride: [2; 2],
            origin: [0, 1],
            dilation: [1; 2],
        };
        let began = std::time::Instant::now();
        let mut most = 0;
        for _ in 0..1000 {
            most += windows.stages().iter().flatten().map(|(size, count)| size * count).sum::<usize>();
        }
        assert!(most > 1000 << 26);
        // The elements of these windows, once, would take gigabytes and seconds.
        assert!(began.elapsed().as_secs() < 1, "{:?}", began.elapsed());
    }

    /// The control: a plan by the windows themselves grows with the image that a peer names, one by their sizes does not.
    #[test]
    fn windows_grow_with_the_image_and_sizes_do_not() {
        let windows = |side: usize| Windows {
            image: [side; 2],
            positions: [side / 2; 2],
            kernel: [2, 2],
            stride: [2; 2],
            origin: [0; 2],
            dilation: [1; 2],
        };
        let entries = |side: usize| windows(side).maxima().iter().flatten().map(Vec::len).sum::<usize>();
        let sizes = |side: usize| windows(side).stages().iter().map(Vec::len).sum::<usize>();
        assert!(entries(256) >= 4 * entries(128));
        assert_eq!(sizes(256), sizes(128));
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
            let sizes = |groups: &Vec<Vec<usize>>| {
                let mut sizes = BTreeMap::new();
                groups.iter().for_each(|group| *sizes.entry(group.len()).or_insert(0_usize) += 1);
                sizes.into_iter().collect::<Sizes>()
            };
            let merged = |sizes: Sizes| {
                let mut merged = BTreeMap::new();
                sizes.into_iter().for_each(|(size, count)| *merged.entry(size).or_insert(0) += count);
                merged.into_iter().filter(|(_, count)| *count > 0).collect::<Sizes>()
            };
            let stages: Vec<Sizes> = windows.stages().into_iter().map(merged).collect();
            prop_assert_eq!(stages, windows.maxima().iter().map(sizes).collect::<Vec<_>>());
            let elements = windows.elements();
            let all: Vec<usize> = elements.iter().flatten().copied().collect();
            if elements.iter().all(|window| !window.is_empty()) {
                let longest = elements.iter().map(Vec::len).max().unwrap_or(0);
                let apart = all.iter().collect::<BTreeSet<_>>().len() == all.len();
                prop_assert_eq!(windows.spread(), (longest, apart));
            }
            let fewest = [windows.by_axes(true), windows.by_axes(false), vec![windows.elements()]];
            prop_assume!(fewest.iter().flatten().flatten().all(|group| !group.is_empty()));
            let fewest = fewest.iter().map(|stages| comparisons(stages)).min();
            prop_assert_eq!(Some(comparisons(&windows.maxima())), fewest);
        }
    }
}
