//! Which elements a pooling reads.

use privet_program::Window;
use privet_ring::window::{Groups, Sizes, Windows};

use super::Node;

/// A pooling and the window that slides over its images.
#[derive(Clone, Copy)]
pub(crate) struct Pooling<'a> {
    pub node: Node<'a>,
    pub window: &'a Window,
}

impl Pooling<'_> {
    /// The windows on one image plane.
    pub fn windows(self) -> Windows {
        let (input, output) = (&self.node.input().shape, &self.node.output().shape);
        Windows {
            image: [input[2], input[3]],
            positions: [output[2], output[3]],
            kernel: self.window.kernel,
            stride: self.window.stride,
            origin: [self.window.padding[0], self.window.padding[1]],
            dilation: self.window.dilation,
        }
    }

    /// Indices into the input that each output reads.
    pub fn groups(self) -> Groups {
        let input = &self.node.input().shape;
        self.windows().on_planes(input[0] * input[1])
    }

    /// How maxima are computed: indices into the input, and into what each stage leaves to the next ([`Windows::maxima`]).
    pub fn stages(self) -> Vec<Groups> {
        let input = &self.node.input().shape;
        let mut plane = input[2] * input[3];
        let on_planes = |groups: Vec<Vec<usize>>| {
            let outputs = groups.len();
            Groups::on_planes(groups, input[0] * input[1], std::mem::replace(&mut plane, outputs))
        };
        self.windows().maxima().into_iter().map(on_planes).collect()
    }

    /// How many groups of each size the stages have, without the groups.
    pub fn sizes(self) -> Vec<Sizes> {
        let input = &self.node.input().shape;
        let planes = input[0] * input[1];
        let on_planes = |sizes: Sizes| sizes.into_iter().map(|(size, count)| (size, planes * count)).collect();
        self.windows().stages().into_iter().map(on_planes).collect()
    }
}
