//! The one form that every layer is brought to: a grouped, stride-1 correlation of images with channels.
//!
//! A matrix product is a 1 x 1 correlation of an image of one row (the rows of the input are its pixels); an elementwise
//! product is a correlation of single pixels with as many groups as elements. They differ in where elements lie in memory.

use crate::axis::Axis;
use crate::error::{Error, Misuse};
use crate::layer::{Conv2d, Diagonal, Layer, MatMul};

/// How far apart neighbours lie in a flat tensor.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Steps {
    image: usize,
    group: usize,
    /// Channel within the group.
    channel: usize,
    row: usize,
    column: usize,
}

/// A layer in its common form.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Correlation {
    pub(crate) images: usize,
    pub(crate) groups: usize,
    /// Channels per group, phases included.
    pub(crate) channels: usize,
    /// Output channels per group.
    pub(crate) outputs: usize,
    /// Rows and columns.
    pub(crate) axes: [Axis; 2],
    pub(crate) input_len: usize,
    pub(crate) weights_len: usize,
    pub(crate) output_len: usize,
    /// Products that are summed up in one result.
    pub(crate) inner: usize,
    input: Steps,
    output: Steps,
    /// Steps of the weights: group, output channel, input channel (without phases). Kernel elements are neighbours.
    weights: [usize; 3],
}

impl Correlation {
    pub(crate) fn new(layer: &Layer) -> Result<Self, Error> {
        match layer {
            Layer::Conv2d(layer) => Self::convolution(layer),
            Layer::MatMul(layer) => Self::matrix_product(layer),
            Layer::Diagonal(layer) => Self::elementwise(layer),
        }
    }

    fn convolution(layer: &Conv2d) -> Result<Self, Error> {
        let &Conv2d { batch, in_channels, height, width, out_channels, kernel, stride, padding, dilation, groups } =
            layer;
        positive([
            ("the batch", batch),
            ("the channels", in_channels),
            ("the outputs", out_channels),
            ("the groups", groups),
        ])?;
        for channels in [in_channels, out_channels] {
            if channels % groups != 0 {
                return Err(Misuse::Groups { channels, groups }.into());
            }
        }
        let [top, left, bottom, right] = padding;
        let rows = Axis::new(height, kernel[0], stride[0], dilation[0], [top, bottom])?;
        let columns = Axis::new(width, kernel[1], stride[1], dilation[1], [left, right])?;
        let (channels, outputs) = (in_channels / groups, out_channels / groups);
        let (out_rows, out_columns) = (rows.outputs, columns.outputs);
        let inner = length("weights", [channels, kernel[0], kernel[1], 1])?;
        Ok(Self {
            images: batch,
            groups,
            channels: channels * rows.phases.len() * columns.phases.len(),
            outputs,
            input_len: length("inputs", [batch, in_channels, height, width])?,
            weights_len: length("weights", [out_channels, inner, 1, 1])?,
            output_len: length("results", [batch, out_channels, out_rows, out_columns])?,
            inner,
            input: Steps::planar(in_channels, channels, height, width),
            output: Steps::planar(out_channels, outputs, out_rows, out_columns),
            weights: [outputs * inner, inner, kernel[0] * kernel[1]],
            axes: [rows, columns],
        })
    }

    fn matrix_product(layer: &MatMul) -> Result<Self, Error> {
        let &MatMul { rows, inner, columns } = layer;
        positive([("the rows", rows), ("the inner size", inner), ("the columns", columns)])?;
        Ok(Self {
            images: 1,
            groups: 1,
            channels: inner,
            outputs: columns,
            axes: [Axis::plain(1)?, Axis::plain(rows)?],
            input_len: length("inputs", [rows, inner, 1, 1])?,
            weights_len: length("weights", [inner, columns, 1, 1])?,
            output_len: length("results", [rows, columns, 1, 1])?,
            inner,
            input: Steps { image: 0, group: 0, channel: 1, row: 0, column: inner },
            output: Steps { image: 0, group: 0, channel: 1, row: 0, column: columns },
            weights: [0, 1, columns],
        })
    }

    fn elementwise(layer: &Diagonal) -> Result<Self, Error> {
        let len = length("inputs", [layer.len, 1, 1, 1])?;
        positive([("the length", len)])?;
        let steps = Steps { image: 0, group: 1, channel: 0, row: 0, column: 0 };
        Ok(Self {
            images: 1,
            groups: len,
            channels: 1,
            outputs: 1,
            axes: [Axis::plain(1)?, Axis::plain(1)?],
            input_len: len,
            weights_len: len,
            output_len: len,
            inner: 1,
            input: steps.clone(),
            output: steps,
            weights: [1, 0, 0],
        })
    }

    /// Splits a channel into the channel of the layer and its phases, down and right.
    pub(crate) fn phases(&self, channel: usize) -> (usize, [usize; 2]) {
        let [rows, columns] = self.axes.each_ref().map(|axis| axis.phases.len());
        (channel / (rows * columns), [channel / columns % rows, channel % columns])
    }

    /// The input element at `position` of an image and channel, unless it is padding. Rows first: they are the outer loop.
    pub(crate) fn row<'a>(
        &'a self,
        image: usize,
        group: usize,
        channel: usize,
        row: usize,
    ) -> Option<impl Fn(usize) -> Option<usize> + use<'a>> {
        let (channel, [down, right]) = self.phases(channel);
        let row = self.axes[0].source(down, row)?;
        let steps = &self.input;
        let start = image * steps.image + group * steps.group + channel * steps.channel + row * steps.row;
        Some(move |column| self.axes[1].source(right, column).map(|column| start + column * steps.column))
    }

    /// The kernel elements that read a channel: shift down, shift right, index of the weight.
    pub(crate) fn taps(
        &self,
        group: usize,
        output: usize,
        channel: usize,
    ) -> impl Iterator<Item = (usize, usize, usize)> + '_ {
        let (channel, [down, right]) = self.phases(channel);
        let start = group * self.weights[0] + output * self.weights[1] + channel * self.weights[2];
        let [rows, columns] = &self.axes;
        let width = columns.taps.len();
        let rows = rows.taps.iter().enumerate().filter(move |(_, tap)| tap.0 == down);
        rows.flat_map(move |(i, &(_, down))| {
            let columns = columns.taps.iter().enumerate().filter(move |(_, tap)| tap.0 == right);
            columns.map(move |(j, &(_, right))| (down, right, start + i * width + j))
        })
    }

    /// The place of a result in the flat output.
    pub(crate) fn result(&self, image: usize, group: usize, output: usize, [row, column]: [usize; 2]) -> usize {
        let steps = &self.output;
        image * steps.image + group * steps.group + output * steps.channel + row * steps.row + column * steps.column
    }

    /// Places from one result of a row to the next.
    pub(crate) fn column_step(&self) -> usize {
        self.output.column
    }
}

impl Steps {
    /// Channels as planes of rows: NCHW.
    fn planar(channels: usize, per_group: usize, height: usize, width: usize) -> Self {
        let plane = height * width;
        Self { image: channels * plane, group: per_group * plane, channel: plane, row: width, column: 1 }
    }
}

fn positive<const N: usize>(sizes: [(&'static str, usize); N]) -> Result<(), Error> {
    match sizes.into_iter().find(|(_, size)| *size == 0) {
        Some((what, _)) => Err(Misuse::Zero { what }.into()),
        None => Ok(()),
    }
}

/// The product of dimensions, each a size of a tensor that fits in memory.
fn length(what: &'static str, sizes: [usize; 4]) -> Result<usize, Error> {
    let product = sizes.into_iter().try_fold(1_usize, usize::checked_mul);
    product.filter(|&len| len <= 1 << 40).ok_or(Misuse::TooLarge { what }.into())
}
