//! What it takes to compute some elements of a value.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, PoisonError};

use super::super::cipher::Cipher;
use super::super::parts::needs;
use super::super::plan::Step;
use super::Stages;
use crate::ops::Node;

/// Demands kept: a worker has one part of one stage, of which it is asked for the same elements again and again.
const KEPT: usize = 16;

/// Demands by the value and the elements of it.
pub(super) type Known = HashMap<(usize, Vec<usize>), Arc<Demand>>;

/// Linear operations with the elements wanted of each, in the order of the program, and the elements of each base and of
/// each share that they read.
pub(super) struct Demand {
    pub operations: Vec<(usize, Vec<usize>)>,
    pub bases: BTreeMap<usize, Vec<usize>>,
    pub shares: BTreeMap<usize, Vec<usize>>,
}

impl Stages {
    /// What it takes to compute elements of a value.
    pub(super) fn demand(&self, source: usize, elements: &[usize]) -> Demand {
        let program = self.plan.program();
        let mut wanted: BTreeMap<usize, BTreeSet<usize>> =
            BTreeMap::from([(source, elements.iter().copied().collect())]);
        let (mut operations, mut shares) = (Vec::new(), BTreeMap::new());
        for step in self.plan.steps().iter().rev() {
            let Step::Linear(index) = step else { continue };
            let node = Node::at(program, *index);
            let operation = node.operation;
            let Some(elements) = wanted.remove(&operation.output) else { continue };
            let elements: Vec<usize> = elements.into_iter().collect();
            for (&input, read) in operation.inputs.iter().zip(needs(node, &elements)) {
                wanted.entry(input).or_default().extend(read);
            }
            if self.plan.cipher() == Cipher::Bfv && node.linear().is_some() {
                shares.insert(operation.output, elements.clone());
            }
            operations.push((*index, elements));
        }
        operations.reverse();
        let bases = wanted.into_iter().map(|(value, elements)| (value, elements.into_iter().collect())).collect();
        Demand { operations, bases, shares }
    }

    /// The same for ascending elements, from memory if they were asked for before.
    pub(super) fn demand_again(&self, source: usize, elements: Vec<usize>) -> Arc<Demand> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let asked = (source, elements);
        if let Some(demand) = known.get(&asked) {
            return Arc::clone(demand);
        }
        if known.len() >= KEPT {
            known.clear();
        }
        let demand = Arc::new(self.demand(source, &asked.1));
        known.insert(asked, Arc::clone(&demand));
        demand
    }
}
