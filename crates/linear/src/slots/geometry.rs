//! An image plane as slots: rows of pixels one behind the other, without padding, whole or in strips.
//!
//! Output pixel `(i, j)` lies at slot `i pitch + j` of its block and reads, for a kernel element shifted by `(down, right)`, the
//! slot that is a fixed offset away. Where that is beyond the image, the weight is zero.

use crate::correlation::Correlation;

/// How the planes of one layer lie in blocks of slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Geometry {
    /// Slots of a block, a power of two.
    pub(super) block: usize,
    /// Slots from one row to the next.
    pitch: usize,
    /// The first padded position that holds input, down and right; down it is that of a whole image only.
    first: [usize; 2],
    /// Rows and columns of input in a block.
    input: [usize; 2],
    /// Output rows of an image, and of a strip of it.
    outputs: usize,
    strip: usize,
    /// Output columns.
    columns: usize,
}

impl Geometry {
    /// In blocks of this many slots; `None` if they are too small even for one row of outputs.
    pub(super) fn new(correlation: &Correlation, block: usize) -> Option<Self> {
        let [rows, columns] = &correlation.axes;
        // Positions that hold input in some phase.
        let extent = |axis: &crate::axis::Axis| {
            let holds = |&at: &usize| (0..axis.phases.len()).any(|phase| axis.source(phase, at).is_some());
            let positions = axis.outputs + axis.reach;
            let first = (0..positions).find(holds).unwrap_or(0);
            let last = (0..positions).rev().find(holds).unwrap_or(0);
            (first, last + 1 - first)
        };
        let ((top, height), (left, width)) = (extent(rows), extent(columns));
        let pitch = width.max(columns.outputs);
        let whole = pitch.checked_mul(height.max(rows.outputs))? <= block;
        let strip = match whole {
            true => rows.outputs,
            false => (block / pitch).checked_sub(rows.reach).filter(|&strip| strip > 0)?.min(rows.outputs),
        };
        let (top, height) = if whole { (top, height) } else { (0, strip + rows.reach) };
        Some(Self {
            block,
            pitch,
            first: [top, left],
            input: [height, width],
            outputs: rows.outputs,
            strip,
            columns: columns.outputs,
        })
    }

    /// Strips of an image.
    pub(super) fn strips(&self) -> usize {
        self.outputs.div_ceil(self.strip)
    }

    /// How far an output reads ahead for a kernel element.
    pub(super) fn offset(&self, [down, right]: [usize; 2]) -> isize {
        let signed = |x: usize| x as isize;
        (signed(down) - signed(self.first[0])) * signed(self.pitch) + signed(right) - signed(self.first[1])
    }

    /// The padded row of a row of a strip's block.
    pub(super) fn input_row(&self, strip: usize, row: usize) -> usize {
        strip * self.strip + self.first[0] + row
    }

    /// The padded column of a column of a block.
    pub(super) fn input_column(&self, column: usize) -> usize {
        self.first[1] + column
    }

    /// Rows and columns of input in a block.
    pub(super) fn input(&self) -> [usize; 2] {
        self.input
    }

    /// The slot of a pixel in its block.
    pub(super) fn slot(&self, [row, column]: [usize; 2]) -> usize {
        row * self.pitch + column
    }

    /// Output rows of a strip: the first, and how many.
    pub(super) fn output_rows(&self, strip: usize) -> (usize, usize) {
        let first = strip * self.strip;
        (first, self.strip.min(self.outputs - first))
    }

    /// Output columns.
    pub(super) fn columns(&self) -> usize {
        self.columns
    }

    /// Outputs of a strip that a kernel element gives input to: rows and columns, from and to, within the block.
    pub(super) fn reading(&self, strip: usize, [down, right]: [usize; 2]) -> [std::ops::Range<usize>; 2] {
        let (_, rows) = self.output_rows(strip);
        let within = |count: usize, shift: usize, first: usize, extent: usize| {
            let from = first.saturating_sub(shift);
            from..count.min((first + extent).saturating_sub(shift)).max(from)
        };
        [within(rows, down, self.first[0], self.input[0]), within(self.columns, right, self.first[1], self.input[1])]
    }
}
