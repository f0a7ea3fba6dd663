//! Matrix products.

use privet_ring::{Modulus, linear};

use super::{LinearMap, Node, Rules};

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

impl Rules for Dense<'_> {
    fn computes_in_ring(&self) -> bool {
        true
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

    fn apply(&self, x: &[u64], weights: &[i64], _ring: Modulus) -> Vec<u64> {
        let [inner, columns] = self.weight_shape;
        linear::matmul(x, weights, self.rows(), inner, columns)
    }
}
