//! Exchanges: what the client computes on values that the server sends it.

use std::sync::OnceLock;

use privet_program::Program;
use privet_ring::window::Groups;

use super::ops;
use crate::ops::{Node, Pooling as Windows};

/// In which order the elements of a tensor are sent.
pub(super) enum Order {
    /// In a random one; all operations work on single elements.
    Elements,
    /// Windows of a max pooling in a random one, and the elements of each.
    Windows(Pooling),
    /// As they are: the program's output of this number.
    Output(usize),
}

/// The windows of a max pooling: how many there are, and which elements each holds once somebody asks.
pub(super) struct Pooling {
    /// Index of the operation.
    operation: usize,
    /// How many windows there are.
    pub count: usize,
    /// Elements of the longest.
    pub longest: usize,
    groups: OnceLock<Groups>,
}

impl Pooling {
    /// The windows of the operation with this index; none if two share an element.
    pub fn new(program: &Program, operation: usize) -> Option<Self> {
        let (longest, apart) = pooling(Node::at(program, operation)).windows().spread();
        let output = program.operations()[operation].output;
        let count = program.value(output).len();
        apart.then(|| Self { operation, count, longest, groups: OnceLock::new() })
    }

    /// The elements of each.
    pub fn groups(&self, program: &Program) -> &Groups {
        self.groups.get_or_init(|| pooling(Node::at(program, self.operation)).groups())
    }
}

fn pooling(node: Node<'_>) -> Windows<'_> {
    node.max_pool2d().expect("windows are a max pooling's").0
}

/// Operations of the client from a value of the server's to one that it returns, or to an output.
pub(super) struct Exchange {
    /// The value sent.
    pub source: usize,
    /// What is computed on it, one after the other.
    pub operations: Vec<usize>,
    /// The value that it becomes.
    pub target: usize,
    /// How its elements lie.
    pub order: Order,
}

impl Exchange {
    /// Elements that the server sends. All windows are as long as the longest.
    pub fn sent(&self, program: &Program) -> usize {
        match &self.order {
            Order::Windows(pooling) => pooling.count * pooling.longest,
            Order::Elements | Order::Output(_) => program.value(self.source).len(),
        }
    }

    /// Elements that the client returns.
    pub fn returned(&self, program: &Program) -> usize {
        match self.order {
            Order::Output(_) => 0,
            Order::Elements | Order::Windows(_) => program.value(self.target).len(),
        }
    }

    /// A name for people: the first operation, or the output.
    pub fn name<'a>(&self, program: &'a Program) -> &'a str {
        match (self.operations.first(), &self.order) {
            (Some(&first), _) => &program.operations()[first].name,
            (None, Order::Output(index)) => &program.outputs()[*index].name,
            (None, _) => "exchange",
        }
    }

    /// The operators, joined by signs of addition; `reveal` for none.
    pub fn operators(&self, program: &Program) -> String {
        let names: Vec<_> = self.operations.iter().map(|&index| program.operations()[index].operator.name()).collect();
        if names.is_empty() { "reveal".into() } else { names.join(" + ") }
    }

    /// What the client computes on the values as they came; an operation that is not its own only changes their shape.
    pub fn compute(&self, program: &Program, values: Vec<i64>) -> Vec<i64> {
        let run = |values, &index: &usize| match ops::of(Node::at(program, index)) {
            Some(operation) => operation.compute(values, &self.order),
            None => values,
        };
        self.operations.iter().fold(values, run)
    }
}
