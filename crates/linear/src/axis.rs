//! One axis of a convolution, its stride turned into channels.
//!
//! A convolution with stride `s` reads, for output `i` and kernel element `k`, the padded input at `i s + k d`. With
//! `k d = s shift + phase`, that is element `i + shift` of the subsampled input that starts at `phase`. So each phase that
//! occurs becomes a channel of its own, and the stride is gone: nothing is computed that is then thrown away, and input
//! that no kernel element touches is not sent.

use crate::error::{Error, Misuse};

/// An axis with stride 1 whose elements come in phases.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Axis {
    /// Output positions.
    pub(crate) outputs: usize,
    /// The phases that occur, rising.
    pub(crate) phases: Vec<usize>,
    /// For each kernel element, the index of its phase and its shift.
    pub(crate) taps: Vec<(usize, usize)>,
    /// The largest shift.
    pub(crate) reach: usize,
    size: usize,
    stride: usize,
    before: usize,
}

impl Axis {
    /// An axis of `size` elements with zeros `before` and `after` it.
    pub(crate) fn new(
        size: usize,
        kernel: usize,
        stride: usize,
        dilation: usize,
        [before, after]: [usize; 2],
    ) -> Result<Self, Error> {
        let sizes = [("the size", size), ("the kernel", kernel), ("the stride", stride), ("the dilation", dilation)];
        if let Some((what, _)) = sizes.into_iter().find(|(_, value)| *value == 0) {
            return Err(Misuse::Zero { what }.into());
        }
        let too_large = Misuse::TooLarge { what: "inputs" };
        let bounded = |x: Option<usize>| x.filter(|&x| x <= 1 << 40).ok_or(too_large.clone());
        let padded = bounded(size.checked_add(before).and_then(|sum| sum.checked_add(after)))?;
        let span = bounded((kernel - 1).checked_mul(dilation))? + 1;
        if span > padded {
            return Err(Misuse::KernelBeyondImage { span, padded }.into());
        }
        let mut phases: Vec<usize> = (0..kernel).map(|k| k * dilation % stride).collect();
        phases.sort_unstable();
        phases.dedup();
        let tap = |k: usize| (phases.partition_point(|&phase| phase < k * dilation % stride), k * dilation / stride);
        let taps: Vec<_> = (0..kernel).map(tap).collect();
        let reach = (span - 1) / stride;
        Ok(Self { outputs: (padded - span) / stride + 1, phases, taps, reach, size, stride, before })
    }

    /// An axis of `size` positions that stand alone.
    pub(crate) fn plain(size: usize) -> Result<Self, Error> {
        Self::new(size, 1, 1, 1, [0, 0])
    }

    /// The input element at `position` of a phase, unless it is padding.
    pub(crate) fn source(&self, phase: usize, position: usize) -> Option<usize> {
        let padded = position * self.stride + self.phases[phase];
        padded.checked_sub(self.before).filter(|&at| at < self.size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stride_of_two_gives_two_phases() {
        let axis = Axis::new(5, 3, 2, 1, [1, 1]).unwrap();
        assert_eq!((axis.outputs, axis.reach), (3, 1));
        assert_eq!((axis.phases.as_slice(), axis.taps.as_slice()), (&[0, 1][..], &[(0, 0), (1, 0), (0, 1)][..]));
        // Padded positions 0, 2, 4, 6 are phase 0: the zero, then elements 1, 3 and the zero behind.
        let even: Vec<_> = (0..4).map(|i| axis.source(0, i)).collect();
        assert_eq!(even, [None, Some(1), Some(3), None]);
        let odd: Vec<_> = (0..4).map(|i| axis.source(1, i)).collect();
        assert_eq!(odd, [Some(0), Some(2), Some(4), None]);
    }

    #[test]
    fn a_dilation_equal_to_the_stride_needs_one_phase() {
        let axis = Axis::new(9, 3, 2, 2, [0, 0]).unwrap();
        assert_eq!((axis.phases.as_slice(), axis.taps.as_slice()), (&[0][..], &[(0, 0), (0, 1), (0, 2)][..]));
    }

    #[test]
    fn a_single_element_kernel_skips_what_it_does_not_read() {
        let axis = Axis::new(7, 1, 3, 1, [0, 0]).unwrap();
        assert_eq!((axis.outputs, axis.reach, axis.phases.len()), (3, 0, 1));
        assert_eq!((0..4).map(|i| axis.source(0, i)).collect::<Vec<_>>(), [Some(0), Some(3), Some(6), None]);
    }

    #[test]
    fn impossible_axes_are_refused() {
        assert!(matches!(Axis::new(0, 1, 1, 1, [0, 0]), Err(Error::Misuse(Misuse::Zero { what: "the size" }))));
        assert!(matches!(Axis::new(3, 1, 0, 1, [0, 0]), Err(Error::Misuse(Misuse::Zero { what: "the stride" }))));
        let beyond = Axis::new(3, 3, 1, 2, [0, 1]);
        assert_eq!(beyond, Err(Misuse::KernelBeyondImage { span: 5, padded: 4 }.into()));
        for (size, kernel, dilation, before) in
            [(usize::MAX, 1, 1, 1), (1, 3, usize::MAX, 0), (1, 1, 1, usize::MAX), (1 << 41, 1, 1, 0)]
        {
            let refused = Axis::new(size, kernel, 1, dilation, [before, 0]);
            assert!(matches!(refused, Err(Error::Misuse(Misuse::TooLarge { .. }))), "{refused:?}");
        }
    }
}
