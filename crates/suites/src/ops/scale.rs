//! Products with a private constant, element by element.

use privet_ring::Modulus;

use super::{LinearMap, Node, Products};

/// A weight for each element.
pub(super) struct Scale<'a> {
    pub node: Node<'a>,
    pub weight: &'a str,
}

impl LinearMap for Scale<'_> {
    fn weight(&self) -> &str {
        self.weight
    }

    fn bias(&self) -> Option<(&str, usize)> {
        None
    }

    fn encrypted(&self) -> privet_linear::Layer {
        privet_linear::Layer::Diagonal(privet_linear::Diagonal { len: self.node.output().len() })
    }

    fn authenticated(&self) -> privet_shark::Layer {
        privet_shark::Layer::Diagonal { len: self.node.output().len() }
    }

    fn products(&self, _wanted: &[usize]) -> Products {
        Products::Elementwise
    }

    fn row(&self, weights: &[i64], output: usize) -> Vec<i64> {
        vec![weights[output]]
    }

    fn apply(&self, x: &[u64], weights: &[i64], _ring: Modulus) -> Vec<u64> {
        x.iter().zip(weights).map(|(x, &weight)| x.wrapping_mul(weight as u64)).collect()
    }
}
