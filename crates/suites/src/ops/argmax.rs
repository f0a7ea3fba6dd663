//! Positions of maxima along an axis.

use super::{Node, Rules};

pub(crate) struct Argmax<'a> {
    pub node: Node<'a>,
    pub axis: usize,
    /// The last of equals, or else the first.
    pub select_last: bool,
}

impl Argmax<'_> {
    /// Elements that are compared with one another.
    pub fn size(&self) -> usize {
        self.node.input().shape[self.axis]
    }

    /// How many such groups there are.
    pub fn count(&self) -> usize {
        self.node.output().len()
    }

    /// Indices of each group's elements, in the order of the output.
    pub fn groups(&self) -> Vec<Vec<usize>> {
        let (shape, size) = (&self.node.input().shape, self.size());
        let inner: usize = shape[self.axis + 1..].iter().product();
        let place = |group: usize, i: usize| (group / inner * size + i) * inner + group % inner;
        (0..self.count()).map(|group| (0..size).map(|i| place(group, i)).collect()).collect()
    }
}

impl Rules for Argmax<'_> {
    fn needs_ring(&self, _result: bool) -> bool {
        false
    }
}
