//! Convolutions of images.

use privet_ring::{Modulus, linear};

use super::{LinearMap, Node, Rules};

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
}

impl Rules for Conv2d<'_> {
    fn computes_in_ring(&self) -> bool {
        true
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

    fn apply(&self, x: &[u64], weights: &[i64], ring: Modulus) -> Vec<u64> {
        self.shape().apply(x, weights, self.images(), ring)
    }
}
