//! Convolutions of images.

use std::collections::BTreeSet;

use privet_ring::{Modulus, linear};

use super::{Block, LinearMap, Node, Products};

/// `[N, C, H, W] -> [N, O, H', W']` with weights `[O, C / groups, kh, kw]`.
pub(super) struct Conv2d<'a> {
    pub node: Node<'a>,
    pub weight: &'a str,
    pub bias: Option<&'a str>,
    pub kernel: [usize; 2],
    pub stride: [usize; 2],
    /// Top, left, bottom, right.
    pub padding: [usize; 4],
    pub dilation: [usize; 2],
    pub groups: usize,
}

impl Conv2d<'_> {
    /// Its shape, but for the number of images.
    fn shape(&self) -> linear::Conv2d {
        let (input, output) = (&self.node.input().shape, &self.node.output().shape);
        linear::Conv2d {
            in_channels: input[1],
            image: [input[2], input[3]],
            out_channels: output[1],
            positions: [output[2], output[3]],
            kernel: self.kernel,
            stride: self.stride,
            origin: [self.padding[0], self.padding[1]],
            dilation: self.dilation,
            groups: self.groups,
        }
    }

    fn images(&self) -> usize {
        self.node.input().shape[0]
    }

    /// Input channels of a group.
    fn depth(&self) -> usize {
        self.node.input().shape[1] / self.groups
    }

    /// The elements of one group of channels that a position of an image reads, `[kh, kw, C]`: positions that overlap read the
    /// same channels together. None where padding is read.
    fn patch(&self, group: usize, position: usize) -> impl Iterator<Item = Option<usize>> {
        let (input, output) = (&self.node.input().shape, &self.node.output().shape);
        let (image, position) = (position / (output[2] * output[3]), position % (output[2] * output[3]));
        let at = [position / output[3], position % output[3]];
        let along = move |axis: usize, tap: usize| {
            let place = at[axis] * self.stride[axis] + tap * self.dilation[axis];
            place.checked_sub(self.padding[axis]).filter(|&place| place < input[2 + axis])
        };
        let depth = self.depth();
        (0..self.kernel[0] * self.kernel[1] * depth).map(move |tap| {
            let (place, channel) = (tap / depth, group * depth + tap % depth);
            let (row, column) = (along(0, place / self.kernel[1])?, along(1, place % self.kernel[1])?);
            Some(((image * input[1] + channel) * input[2] + row) * input[3] + column)
        })
    }
}

impl LinearMap for Conv2d<'_> {
    fn weight(&self) -> &str {
        self.weight
    }

    fn bias(&self) -> Option<(&str, usize)> {
        self.bias.map(|bias| (bias, self.node.output().shape[1]))
    }

    fn bias_run(&self) -> usize {
        self.node.output().shape[2..].iter().product()
    }

    fn encrypted(&self) -> privet_linear::Layer {
        let input = &self.node.input().shape;
        privet_linear::Layer::Conv2d(privet_linear::Conv2d {
            batch: self.images(),
            in_channels: input[1],
            height: input[2],
            width: input[3],
            out_channels: self.node.output().shape[1],
            kernel: self.kernel,
            stride: self.stride,
            padding: self.padding,
            dilation: self.dilation,
            groups: self.groups,
        })
    }

    fn authenticated(&self) -> privet_shark::Layer {
        privet_shark::Layer::Conv2d { shape: self.shape(), batch: self.images() }
    }

    /// A block for each group of channels: outputs and positions that cover what is wanted of it.
    fn products(&self, indices: &[usize]) -> Products {
        let output = &self.node.output().shape;
        let (channels, area) = (output[1], output[2] * output[3]);
        let of = |index: usize| (index / area % channels, index / (area * channels) * area + index % area);
        let group_of = |channel: usize| channel / (channels / self.groups);
        let mut covers = vec![(BTreeSet::new(), BTreeSet::new()); self.groups];
        for (channel, position) in indices.iter().map(|&index| of(index)) {
            let (outputs, positions) = &mut covers[group_of(channel)];
            outputs.insert(channel);
            positions.insert(position);
        }
        let covers: Vec<[Vec<usize>; 2]> =
            covers.into_iter().map(|(rows, columns)| [rows, columns].map(Vec::from_iter)).collect();
        let mut starts = vec![0];
        starts.extend(covers.iter().scan(0, |end, [outputs, positions]| {
            *end += outputs.len() * positions.len();
            Some(*end)
        }));
        let place = |&index: &usize| {
            let (channel, position) = of(index);
            let [outputs, positions] = &covers[group_of(channel)];
            let rank = |of: &[usize], value: usize| of.partition_point(|&other| other < value);
            starts[group_of(channel)] + rank(outputs, channel) * positions.len() + rank(positions, position)
        };
        let places = indices.iter().map(place).collect();
        let (run, inner) = (self.depth(), self.kernel[0] * self.kernel[1] * self.depth());
        let block = |(group, [outputs, positions]): (usize, &[Vec<usize>; 2])| {
            let windows = positions.iter().flat_map(|&at| self.patch(group, at)).collect();
            (!outputs.is_empty()).then(|| Block { outputs: outputs.clone(), inner, run, windows })
        };
        Products::Windows { blocks: covers.iter().enumerate().filter_map(block).collect(), places }
    }

    fn row(&self, weights: &[i64], output: usize) -> Vec<i64> {
        let (taps, depth) = (self.kernel[0] * self.kernel[1], self.depth());
        let of_output = &weights[output * taps * depth..][..taps * depth];
        (0..taps * depth).map(|at| of_output[at % depth * taps + at / depth]).collect()
    }

    fn apply(&self, x: &[u64], weights: &[i64], ring: Modulus) -> Vec<u64> {
        self.shape().apply(x, weights, self.images(), ring)
    }
}
