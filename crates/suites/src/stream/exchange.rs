//! Exchanges: what the client computes on values that the server sends it.

use std::sync::OnceLock;

use privet_program::{Operator, Program};
use privet_ring::window::Groups;

use super::function::Function;
use crate::ops::{self, Node};

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

fn pooling(node: Node<'_>) -> ops::Pooling<'_> {
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

    /// What the client computes on the values as they came.
    pub fn compute(&self, program: &Program, mut values: Vec<i64>) -> Vec<i64> {
        for &index in &self.operations {
            let node = Node::at(program, index);
            let operation = node.operation;
            match &operation.operator {
                Operator::Truncate { bits } => values.iter_mut().for_each(|value| *value >>= bits),
                Operator::Relu => values.iter_mut().for_each(|value| *value = (*value).max(0)),
                Operator::Function { steps } => {
                    let [from, to] = [operation.inputs[0], operation.output].map(|id| program.value(id).scale);
                    Function { steps, from, to, ring_bits: program.ring_bits() }.apply(&mut values);
                }
                Operator::Reshape => {}
                Operator::MaxPool2d { .. } => {
                    values = match &self.order {
                        Order::Windows(pooling) => values.chunks(pooling.longest).map(largest).collect(),
                        _ => {
                            let groups = pooling(node).groups();
                            groups.iter().map(|group| largest(group.map(|at| &values[at]))).collect()
                        }
                    };
                }
                Operator::Argmax { select_last, .. } => {
                    let groups = node.argmax().expect("an argmax").groups();
                    let of_group = |group: Vec<usize>| group.into_iter().map(|at| values[at]).collect::<Vec<_>>();
                    values = groups.into_iter().map(|group| place(&of_group(group), *select_last)).collect();
                }
                other => unreachable!("{} is the server's", other.name()),
            }
        }
        values
    }
}

fn largest<'a>(values: impl IntoIterator<Item = &'a i64>) -> i64 {
    values.into_iter().copied().max().unwrap_or(0)
}

/// Where the largest element is; the first or last of equals.
fn place(values: &[i64], last: bool) -> i64 {
    let largest = largest(values);
    let is_largest = |value: &i64| *value == largest;
    let found = if last { values.iter().rposition(is_largest) } else { values.iter().position(is_largest) };
    found.unwrap_or(0) as i64
}
