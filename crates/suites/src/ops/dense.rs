//! Matrix products.

use std::collections::BTreeSet;

use privet_ring::{Modulus, linear};

use super::{Block, LinearMap, Node, Products};

/// `[M, K] -> [M, N]` with weights `[K, N]`.
pub(super) struct Dense<'a> {
    pub node: Node<'a>,
    pub weight: &'a str,
    pub bias: Option<&'a str>,
    /// K and N.
    pub weight_shape: [usize; 2],
}

impl Dense<'_> {
    fn rows(&self) -> usize {
        self.node.input().shape[0]
    }
}

impl LinearMap for Dense<'_> {
    fn weight(&self) -> &str {
        self.weight
    }

    fn bias(&self) -> Option<(&str, usize)> {
        self.bias.map(|bias| (bias, self.weight_shape[1]))
    }

    fn encrypted(&self) -> privet_linear::Layer {
        let [inner, columns] = self.weight_shape;
        privet_linear::Layer::MatMul(privet_linear::MatMul { rows: self.rows(), inner, columns })
    }

    fn authenticated(&self) -> privet_shark::Layer {
        let [inner, columns] = self.weight_shape;
        privet_shark::Layer::MatMul { rows: self.rows(), inner, columns }
    }

    /// A window for each row wanted, an output for each column.
    fn products(&self, indices: &[usize]) -> Products {
        let [inner, columns] = self.weight_shape;
        let all = |of: fn(usize, usize) -> usize| {
            indices.iter().map(|&index| of(index, columns)).collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>()
        };
        let (rows, outputs) = (all(|index, columns| index / columns), all(|index, columns| index % columns));
        let place = |index: &usize| {
            let output = outputs.partition_point(|&output| output < index % columns);
            output * rows.len() + rows.partition_point(|&row| row < index / columns)
        };
        let places = indices.iter().map(place).collect();
        let windows = rows.iter().flat_map(|row| row * inner..(row + 1) * inner).map(Some).collect();
        Products::Windows { blocks: vec![Block { outputs, inner, run: inner, windows }], places }
    }

    fn row(&self, weights: &[i64], output: usize) -> Vec<i64> {
        weights[output..].iter().step_by(self.weight_shape[1]).copied().collect()
    }

    fn apply(&self, x: &[u64], weights: &[i64], ring: Modulus) -> Vec<u64> {
        let [inner, columns] = self.weight_shape;
        linear::matmul(x, weights, [self.rows(), inner, columns], ring)
    }
}
