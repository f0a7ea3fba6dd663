//! Operations at their place in a program, apart from how a suite computes them: a file for each operator or family.
//!
//! What every suite on shares must know before it plans is in [`Rules`]. What needs no message is computed by all of them alike, on an
//! [`Algebra`] ([`Local`]); a linear layer is a [`LinearMap`] with private weights; poolings and argmax say which elements
//! they compare. Protocols for the rest are the suites' (`sharing/ops`, `malicious/ops`, `stream/ops`).

mod additive;
mod algebra;
mod argmax;
mod avg_pool2d;
mod conv2d;
mod dense;
mod max_pool2d;
mod movement;
mod piecewise;
mod pooling;
mod product;
mod products;
mod relu;
mod scale;
mod step;
mod truncate;

use std::sync::OnceLock;

use privet_gmw::Sign;
use privet_program::{Operation, Operator, Program, Value, Weights};
use privet_ring::Modulus;

use crate::{Error, sharing, stream};

pub(crate) use algebra::{Algebra, InRing};
pub(crate) use argmax::Argmax;
pub(crate) use max_pool2d::MaxPool2d;
pub(crate) use movement::{Movement, sources};
pub(crate) use piecewise::Piecewise;
pub(crate) use pooling::Pooling;
pub(crate) use product::{Origin, Product};
pub(crate) use products::{Block, Products};
pub(crate) use relu::Relu;
pub(crate) use step::{Leaves, Step};
pub(crate) use truncate::Truncate;

use additive::{AddConstant, Additive};
use avg_pool2d::AvgPool2d;
use conv2d::Conv2d;
use dense::Dense;
use scale::Scale;

/// An operation and the program that it is part of.
#[derive(Clone, Copy)]
pub(crate) struct Node<'a> {
    pub program: &'a Program,
    pub operation: &'a Operation,
}

impl<'a> Node<'a> {
    /// The operation with index `index`.
    pub fn at(program: &'a Program, index: usize) -> Self {
        Self { program, operation: &program.operations()[index] }
    }

    /// All of a program's, in order.
    pub fn all(program: &'a Program) -> impl Iterator<Item = Self> {
        program.operations().iter().map(move |operation| Self { program, operation })
    }

    /// The first value that it reads.
    pub fn input(self) -> &'a Value {
        self.program.value(self.operation.inputs[0])
    }

    /// Shapes of all values that it reads.
    pub fn input_shapes(self) -> impl Iterator<Item = &'a [usize]> {
        self.operation.inputs.iter().map(move |&id| self.program.value(id).shape.as_slice())
    }

    /// The value that it writes.
    pub fn output(self) -> &'a Value {
        self.program.value(self.operation.output)
    }

    /// The max pooling that it is, if it is one.
    pub fn max_pool2d(self) -> Option<MaxPool2d<'a>> {
        match &self.operation.operator {
            Operator::MaxPool2d { window } => Some(MaxPool2d(Pooling { node: self, window })),
            _ => None,
        }
    }

    /// The argmax that it is, if it is one.
    pub fn argmax(self) -> Option<Argmax<'a>> {
        match self.operation.operator {
            Operator::Argmax { axis, select_last, .. } => Some(Argmax { node: self, axis, select_last }),
            _ => None,
        }
    }

    /// The product of two values that it is, if it is one.
    pub fn product(self) -> Option<Product<'a>> {
        matches!(self.operation.operator, Operator::Mul | Operator::Matmul).then_some(Product(self))
    }

    /// The function of lines that it is, if it is one.
    pub fn piecewise(self) -> Option<Piecewise<'a>> {
        match &self.operation.operator {
            &Operator::Piecewise { ref steps, low, bits, index_bits, rises, nonnegative } => {
                Some(Piecewise { node: self, steps, low, bits, index_bits, rises, nonnegative, table: OnceLock::new() })
            }
            _ => None,
        }
    }

    /// The linear layer that it is, if it is one.
    pub fn linear(self) -> Option<Box<dyn LinearMap + 'a>> {
        Some(match &self.operation.operator {
            Operator::Conv2d { weight, weight_shape, bias, stride, padding, dilation, groups } => Box::new(Conv2d {
                node: self,
                weight,
                bias: bias.as_deref(),
                kernel: [weight_shape[2], weight_shape[3]],
                stride: *stride,
                padding: *padding,
                dilation: *dilation,
                groups: *groups,
            }),
            Operator::Dense { weight, weight_shape, bias } => {
                Box::new(Dense { node: self, weight, bias: bias.as_deref(), weight_shape: *weight_shape })
            }
            Operator::Scale { weight, .. } => Box::new(Scale { node: self, weight }),
            _ => return None,
        })
    }

    /// How each party computes it on its own shares, if that is so.
    pub fn local<A: Algebra>(self) -> Option<Box<dyn Local<A> + 'a>> {
        Some(match &self.operation.operator {
            Operator::Add => Box::new(Additive::Add),
            Operator::Sub => Box::new(Additive::Sub),
            Operator::Negate => Box::new(Additive::Negate),
            Operator::ShiftLeft { bits } => Box::new(Additive::ShiftLeft { bits: *bits }),
            Operator::AddConstant { bias, bias_shape } => Box::new(AddConstant { node: self, bias, bias_shape }),
            Operator::AvgPool2d { window, factors } => {
                Box::new(AvgPool2d { pooling: Pooling { node: self, window }, factors })
            }
            _ => Box::new(Movement::of(self)?),
        })
    }

    /// Whether its result has the input's elements in their order.
    pub fn keeps_order(self) -> bool {
        self.operation.operator == Operator::Reshape
    }

    /// Refuses what only other suites compute: those whose lists of operations have it.
    pub fn unsupported(self) -> Error {
        let (name, operator) = (&self.operation.name, self.operation.operator.name());
        let suites = if sharing::computes(self) {
            "gmw or fss against a party that keeps to the protocol"
        } else if stream::ops::computes(self) {
            "stream"
        } else {
            "ckks"
        };
        let instead = "compile the model for it, or put a ReLU in its place";
        Error::Misuse(format!("layer {name} ({operator}) runs only in suite {suites}: {instead}"))
    }
}

/// What holds of an operation in every suite on shares: the rings that it works in, and the sign of its result.
pub(crate) trait Rules {
    /// Whether its inputs must be in the program's ring.
    fn computes_in_ring(&self) -> bool {
        false
    }

    /// Whether its inputs had better be in the program's ring, if a later step needs its `result` there or not.
    fn needs_ring(&self, result: bool) -> bool {
        self.computes_in_ring() || result
    }

    /// Whether it takes inputs with guard bits below their last place as they are, if `guarded` of them have such.
    fn takes_guard_bits(&self, _guarded: usize) -> bool {
        false
    }

    /// How many low bits of its inputs count, if it takes them in any ring with these; `result`: the same of its result.
    fn reads(&self, _result: Option<u32>) -> Option<u32> {
        None
    }

    /// How many low bits of its inputs decide so many of its `result`, in whatever ring it takes them; nothing where all of them may.
    fn counts(&self, result: Option<u32>) -> Option<u32> {
        self.reads(result)
    }

    /// Whether it takes a value that a ring of `width` bits holds in that ring, if it counts all of the bits that the ring has.
    fn takes(&self, _width: u32) -> bool {
        true
    }

    /// Whether its inputs may be in any ring that holds them, if its result may be or not: it moves them, drops their low bits, or extends
    /// them to the program's ring before it computes. A sum in their ring may not fit there, nor may a difference that is compared.
    fn takes_any_ring(&self, _result: bool) -> bool {
        self.computes_in_ring()
    }

    /// Bounds of its result as a whole number in a ring that holds them, whatever the input; `inputs`: of what it reads, of which the first
    /// is in a ring of `width` bits.
    fn bounds(&self, _inputs: &[Bounds], _width: u32) -> Bounds {
        None
    }

    /// What is known of its result's sign, in whatever ring it is and whatever the input; `inputs`: of what it reads.
    fn sign(&self, _inputs: &[Sign]) -> Sign {
        Sign::Unknown
    }
}

/// An operation of a family at its place.
pub(crate) struct At<'a, O: ?Sized> {
    pub node: Node<'a>,
    pub operation: Box<O>,
}

impl<A: Algebra> Rules for At<'_, dyn Local<A> + '_> {
    fn computes_in_ring(&self) -> bool {
        self.operation.computes_in_ring()
    }

    fn needs_ring(&self, result: bool) -> bool {
        self.operation.needs_ring(result)
    }

    fn takes_guard_bits(&self, guarded: usize) -> bool {
        self.operation.takes_guard_bits(guarded)
    }

    fn reads(&self, result: Option<u32>) -> Option<u32> {
        self.operation.reads(result)
    }

    fn counts(&self, result: Option<u32>) -> Option<u32> {
        self.operation.counts(result)
    }

    fn takes(&self, width: u32) -> bool {
        self.operation.takes(width)
    }

    fn takes_any_ring(&self, result: bool) -> bool {
        self.operation.takes_any_ring(result)
    }

    fn bounds(&self, inputs: &[Bounds], width: u32) -> Bounds {
        self.operation.bounds(inputs, width)
    }

    fn sign(&self, inputs: &[Sign]) -> Sign {
        self.operation.sign(inputs)
    }
}

/// The least and the largest number that a value can be, if that is known.
pub(crate) type Bounds = Option<[i64; 2]>;

/// Bits of the smallest ring of signed numbers that holds these bounds.
pub(crate) fn signed_bits(bounds: &[i64; 2]) -> u32 {
    let bits = |x: &i64| 65 - (x ^ (x >> 63)).leading_zeros();
    bounds.iter().map(bits).max().unwrap_or(0)
}

/// Bits of the smallest one of which half has as many numbers as there are between these bounds: from there an extension is cheap.
pub(crate) fn roomy_bits(bounds: &[i64; 2]) -> u32 {
    let [low, high] = bounds;
    signed_bits(bounds).max(65 - high.abs_diff(*low).leading_zeros())
}

/// Bounds of whatever a ring of `width` bits has.
pub(crate) fn all_of(width: u32) -> [i64; 2] {
    let high = i64::MAX >> (64 - width);
    [!high, high]
}

/// Bounds of what is chosen from values with these bounds.
fn widest(inputs: &[Bounds]) -> Bounds {
    let widen = |one: Bounds, other: &Bounds| one.zip(*other).map(|([a, b], [c, d])| [a.min(c), b.max(d)]);
    inputs.iter().copied().reduce(|one, other| widen(one, &other)).flatten()
}

/// The sign of what is chosen from or made up of values with these signs.
fn chosen(inputs: &[Sign]) -> Sign {
    match inputs.iter().all(|&sign| sign == Sign::NonNegative) {
        true => Sign::NonNegative,
        false => Sign::Unknown,
    }
}

/// An operation that each party does on its own shares, without a message.
pub(crate) trait Local<A: Algebra>: Rules {
    /// The result's shares, of shares of all inputs; `constant`: the private tensor that it adds, at a party that has it.
    fn evaluate(&self, algebra: &A, inputs: &[&A::Shares], constant: Option<&A::Constant>) -> A::Owned;

    /// The private tensor that it adds, and its number of elements.
    fn constant(&self) -> Option<(&str, usize)> {
        None
    }

    /// How many elements it looks up by an index.
    fn indices(&self) -> usize {
        0
    }

    /// Public factors that it multiplies with.
    fn factors(&self) -> &[i64] {
        &[]
    }
}

/// A product with private weights, and perhaps a private bias.
pub(crate) trait LinearMap {
    /// Name of the weights.
    fn weight(&self) -> &str;

    /// Name and length of the bias.
    fn bias(&self) -> Option<(&str, usize)>;

    /// How many results that follow one another an element of the bias is added to; elements take turns.
    fn bias_run(&self) -> usize {
        1
    }

    /// Its shape as products under BFV take it.
    fn encrypted(&self) -> privet_linear::Layer;

    /// Its shape as products on authenticated values take it.
    fn authenticated(&self) -> privet_shark::Layer;

    /// What gives some results without the bias; `wanted`: their indices, ascending.
    fn products(&self, indices: &[usize]) -> Products;

    /// The weights of one output of a [`Block`], in the order of a window; of an element-wise product that of one element.
    fn row(&self, weights: &[i64], output: usize) -> Vec<i64>;

    /// `W x` modulo `ring` or a larger one, without the bias.
    fn apply(&self, x: &[u64], weights: &[i64], ring: Modulus) -> Vec<u64>;

    /// Adds the bias, if there is one.
    fn add_bias(&self, out: &mut [u64], weights: &Weights) {
        if let Some((bias, _)) = self.bias() {
            for (run, &bias) in out.chunks_mut(self.bias_run()).zip(weights.tensor(bias).iter().cycle()) {
                run.iter_mut().for_each(|x| *x = x.wrapping_add(bias as u64));
            }
        }
    }

    /// `W x` modulo `ring` or a larger one, and the bias.
    fn affine(&self, x: &[u64], weights: &Weights, ring: Modulus) -> Vec<u64> {
        let mut out = self.apply(x, weights.tensor(self.weight()), ring);
        self.add_bias(&mut out, weights);
        out
    }
}

impl Rules for At<'_, dyn LinearMap + '_> {
    fn computes_in_ring(&self) -> bool {
        true
    }
}

/// Refuses a program with state, in suites that keep none. Fails with [`Error::Misuse`] with what to do.
pub(crate) fn check_stateless(program: &Program) -> Result<(), Error> {
    match program.state() {
        [] => Ok(()),
        [state, ..] => Err(Error::Misuse(format!(
            "this suite keeps no state, such as {}, from one inference to the next: choose suite gmw or fss without authentication",
            state.name
        ))),
    }
}

/// For each value, whether a step that reads it, perhaps rearranged, or a later inference needs it in the wide ring. `rules`: of each operation.
pub(crate) fn needs_ring<R: Rules + ?Sized>(program: &Program, rules: &[Box<R>]) -> Vec<bool> {
    let mut needs = vec![false; program.values().len()];
    program.state().iter().for_each(|state| needs[state.output] = true);
    for (reader, rules) in program.operations().iter().zip(rules).rev() {
        let needed = rules.needs_ring(needs[reader.output]);
        reader.inputs.iter().for_each(|&input| needs[input] |= needed);
    }
    needs
}

/// For each value, whether it may be in any ring that holds it. `rules`: of each operation.
pub(crate) fn fits_any_ring<R: Rules + ?Sized>(program: &Program, rules: &[Box<R>]) -> Vec<bool> {
    let mut fits = vec![true; program.values().len()];
    let outputs = program.outputs().iter().map(|output| output.value);
    outputs.chain(program.state().iter().map(|state| state.output)).for_each(|value| fits[value] = false);
    for (reader, rules) in program.operations().iter().zip(rules).rev() {
        let takes = rules.takes_any_ring(fits[reader.output]);
        reader.inputs.iter().for_each(|&input| fits[input] &= takes);
    }
    fits
}

/// Bounds of an operation's result, given those of all values and the ring of its first input. By `off` truncations may be off, and so may
/// products of matrices.
pub(crate) fn bounds_of<R: Rules + ?Sized>(
    operation: &Operation,
    rules: &R,
    bounds: &[Bounds],
    width: u32,
    off: i64,
) -> Bounds {
    let inputs: Vec<Bounds> = operation.inputs.iter().map(|&id| bounds[id]).collect();
    let [low, high] = rules.bounds(&inputs, width)?;
    match operation.operator {
        Operator::Truncate { .. } | Operator::Matmul => Some([low.saturating_sub(off), high.saturating_add(off)]),
        _ => Some([low, high]),
    }
}

/// For each value that a truncation leaves, the ring from which an extension takes no comparison, if the value's bounds are known and it is
/// wider than the ring that the program says. None where no step needs the value in the wide ring.
///
/// A truncation to such a ring reads more bits, so this comes before widths are known: they are taken to be those that the program says.
/// `rules`: of each operation; `needs_ring`: of each value; `off`: by how much a truncation may be off.
pub(crate) fn rooms<R: Rules + ?Sized>(
    program: &Program,
    rules: &[Box<R>],
    needs_ring: &[bool],
    off: i64,
) -> Vec<Option<u32>> {
    let (ring_bits, count) = (program.ring_bits(), program.values().len());
    let (mut widths, mut bounds) = (vec![ring_bits; count], vec![Some(all_of(ring_bits)); count]);
    let mut rooms = vec![None; count];
    for (operation, rules) in program.operations().iter().zip(rules) {
        let (inputs, output) = (&operation.inputs, operation.output);
        if rules.computes_in_ring() || inputs.iter().any(|&id| widths[id] != widths[inputs[0]]) {
            inputs.iter().for_each(|&id| widths[id] = ring_bits);
        }
        let output_bounds = bounds_of(operation, &**rules, &bounds, widths[inputs[0]], off);
        let width = match operation.operator {
            Operator::Truncate { bits, width } => {
                let bits_left = ring_bits - bits;
                let narrow = width.map_or(bits_left, |width| width.min(bits_left));
                rooms[output] = output_bounds
                    .as_ref()
                    .map(roomy_bits)
                    .filter(|room| needs_ring[output] && (narrow + 1..=bits_left).contains(room));
                rooms[output].unwrap_or(narrow)
            }
            Operator::Piecewise { .. } => ring_bits,
            Operator::Reshape | Operator::Broadcast if needs_ring[output] => ring_bits,
            _ => widths[inputs[0]],
        };
        widths[output] = width;
        bounds[output] = output_bounds.filter(|bounds| signed_bits(bounds) <= width).or(Some(all_of(width)));
    }
    rooms
}

/// For each value, how many low bits count to what reads it, in whatever ring; nothing where all of them may. `rules`: of each operation;
/// `rooms`: of each value.
pub(crate) fn bits_read<R: Rules + ?Sized>(
    program: &Program,
    rules: &[Box<R>],
    rooms: &[Option<u32>],
) -> Vec<Option<u32>> {
    backwards(program, rules, rooms, |rules, result| rules.reads(result))
}

/// The same where each operation gets its inputs in the ring that it asks for: bits above may be anything, as no later step looks at them.
pub(crate) fn bits_counted<R: Rules + ?Sized>(
    program: &Program,
    rules: &[Box<R>],
    rooms: &[Option<u32>],
) -> Vec<Option<u32>> {
    backwards(program, rules, rooms, |rules, result| rules.counts(result))
}

/// What readers ask of each value, from the last operation to the first.
fn backwards<R: Rules + ?Sized>(
    program: &Program,
    rules: &[Box<R>],
    rooms: &[Option<u32>],
    asked: impl Fn(&R, Option<u32>) -> Option<u32>,
) -> Vec<Option<u32>> {
    let mut read = vec![Some(0); program.values().len()];
    let outputs = program.outputs().iter().map(|output| output.value);
    outputs.chain(program.state().iter().map(|state| state.output)).for_each(|value| read[value] = None);
    for (reader, rules) in program.operations().iter().zip(rules).rev() {
        let bits = match (rooms[reader.output], &reader.operator) {
            (Some(room), Operator::Truncate { bits, .. }) => Some(room + bits),
            _ => asked(rules, read[reader.output]),
        };
        reader.inputs.iter().for_each(|&input| read[input] = read[input].zip(bits).map(|(one, other)| one.max(other)));
    }
    read
}

/// What is known of each value's sign. A sum may wrap, and a linear layer, so theirs is unknown.
pub(crate) fn signs<R: Rules + ?Sized>(program: &Program, rules: &[Box<R>]) -> Vec<Sign> {
    let mut signs = vec![Sign::Unknown; program.values().len()];
    for (operation, rules) in program.operations().iter().zip(rules) {
        let inputs: Vec<Sign> = operation.inputs.iter().map(|&input| signs[input]).collect();
        signs[operation.output] = rules.sign(&inputs);
    }
    signs
}

/// The steps at which values are read or written for the last time: for each step, the values that no later step, no output and
/// no later inference touches. `touched`: by each step.
pub(crate) fn last_uses(program: &Program, touched: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let mut last: Vec<Option<usize>> = vec![None; program.values().len()];
    for (step, values) in touched.iter().enumerate() {
        values.iter().for_each(|&value| last[value] = Some(step));
    }
    program.outputs().iter().for_each(|output| last[output.value] = None);
    program.state().iter().for_each(|state| last[state.output] = None);
    let mut of_step = vec![Vec::new(); touched.len()];
    for (value, step) in last.into_iter().enumerate() {
        if let Some(step) = step {
            of_step[step].push(value);
        }
    }
    of_step
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// Bounds of both inputs, of which some have one sign alone.
    const GIVEN: [[[i64; 2]; 2]; 4] = [[[-9, 7], [-3, 5]], [[2, 6], [1, 4]], [[-8, -2], [3, 11]], [[-5, 0], [-7, -7]]];

    #[test]
    fn results_stay_within_their_bounds_and_whole_tensors_at_an_end_reach_them() {
        let mut reached = Vec::new();
        for fixture in ["residual", "products", "smooth", "gram", "overflow", "choice"] {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fixtures/{fixture}/program.json"));
            let program = Program::parse(&std::fs::read(path).expect("a fixture")).expect("a program");
            for (node, extremes) in Node::all(&program).flat_map(|node| GIVEN.map(|extremes| (node, extremes))) {
                let (ring, inputs) = (Modulus::new(64), &node.operation.inputs);
                let bounds = &extremes.map(Some)[..inputs.len().min(2)];
                let (product, local) = (node.product(), node.local::<InRing>());
                let of_product = product.as_ref().map(|product| product.bounds(bounds, 64));
                let interval = of_product.or(local.as_ref().map(|local| local.bounds(bounds, 64)));
                let Some([low, high]) = interval.flatten() else { continue };
                // Of each input all elements are at one end, or they take turns.
                let ends = (0..9).map(|way| {
                    let tensor = |(at, &id): (usize, &usize)| -> Vec<u64> {
                        let turn = [way % 3, way / 3][at.min(1)];
                        let end = |i: usize| extremes[at.min(1)][if turn == 2 { i % 2 } else { turn }].cast_unsigned();
                        (0..program.value(id).len()).map(end).collect()
                    };
                    inputs.iter().enumerate().map(tensor).collect::<Vec<_>>()
                });
                for inputs in ends {
                    let inputs: Vec<&[u64]> = inputs.iter().map(Vec::as_slice).collect();
                    let result = match (&product, &local) {
                        (Some(product), _) => product.apply(inputs[0], inputs[1], ring),
                        (None, Some(local)) => InRing::run(ring, &**local, &inputs, None),
                        (None, None) => unreachable!("one of them has bounds"),
                    };
                    let result: Vec<i64> = result.into_iter().map(u64::cast_signed).collect();
                    let name = node.operation.operator.name();
                    assert!(result.iter().all(|x| (low..=high).contains(x)), "{name}: {result:?}");
                    reached.extend(result.contains(&low).then_some((name, 0)));
                    reached.extend(result.contains(&high).then_some((name, 1)));
                }
            }
        }
        let operators = ["add", "sub", "shift_left", "avg_pool2d", "mul", "matmul", "reshape"];
        for end in operators.iter().flat_map(|name| [(*name, 0), (*name, 1)]) {
            assert!(reached.contains(&end), "{end:?}");
        }
    }

    /// Without a dealer and without carries a product of matrices is off by one, like a truncation.
    #[test]
    fn where_carries_are_lost_bounds_of_truncations_and_products_of_matrices_are_wider() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/products/program.json");
        let program = Program::parse(&std::fs::read(path).expect("a fixture")).expect("a program");
        let bounds = vec![Some([-9, 7]); program.values().len()];
        let mut wider = Vec::new();
        for node in Node::all(&program) {
            let Some(product) = node.product() else { continue };
            let of = |off| bounds_of(node.operation, &product, &bounds, 37, off).expect("bounds");
            let ([low, high], name) = (of(0), node.operation.operator.name());
            wider.extend((of(1) == [low - 1, high + 1]).then_some(name));
            assert!(name == "matmul" || of(1) == [low, high], "{name}");
        }
        assert!(!wider.is_empty() && wider.iter().all(|&name| name == "matmul"), "{wider:?}");
    }
}
