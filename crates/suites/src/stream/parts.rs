//! Linear operations on hidden tensors, whole or in part: some elements of a result from only the elements that they read
//! (PP-Stream, Section IV-D).
//!
//! There is nothing here for single operators. Without weights, an operation is evaluated on two more kinds of shares: on
//! lengths, which tells what it reads, and on parts. A linear layer says which products with weights give its results.

use std::collections::BTreeSet;
use std::marker::PhantomData;

use privet_program::Weights;
use privet_ring::layout;
use privet_ring::window::Groups;

use super::elements::{Elements, Matrix};
use crate::Error;
use crate::ops::{Algebra, Block, LinearMap, Local, Movement, Node, Products, sources};

/// Some elements of a tensor.
pub(super) struct Part<E> {
    /// Elements of the tensor.
    pub len: usize,
    /// The indices of those that are there, ascending.
    pub indices: Vec<usize>,
    /// As many hidden elements.
    pub elements: E,
}

impl<E: Elements> Part<E> {
    /// All of a tensor.
    pub fn whole(elements: E) -> Self {
        let len = elements.count();
        Self { len, indices: (0..len).collect(), elements }
    }

    fn is_whole(&self) -> bool {
        self.indices.len() == self.len
    }

    /// The place of an element among these.
    fn place(&self, index: usize) -> Result<usize, Error> {
        if self.is_whole() {
            return Ok(index);
        }
        let missing = |_| format!("element {index} is needed for this part of a stage and was not given");
        self.indices.binary_search(&index).map_err(|at| Error::Misuse(missing(at)))
    }

    /// Some of the elements, in the order of `wanted`.
    pub fn select(&self, wanted: &[usize]) -> Result<E, Error> {
        let places = wanted.iter().map(|&index| self.place(index)).collect::<Result<Vec<_>, _>>()?;
        self.elements.pick(&places)
    }

    /// Windows of elements by places among these.
    fn windows(&self, windows: impl Iterator<Item = Option<usize>>) -> Result<Vec<Option<usize>>, Error> {
        windows.map(|index| index.map(|index| self.place(index)).transpose()).collect()
    }
}

/// Which elements of each of its inputs an operation reads for `wanted` (ascending) of its output, input by input.
pub(super) fn needs(node: Node<'_>, wanted: &[usize]) -> Vec<Vec<usize>> {
    let Some(map) = node.linear() else {
        let lengths: Vec<usize> = node.operation.inputs.iter().map(|&id| node.program.value(id).len()).collect();
        let local: Box<dyn Local<Reading<'_>>> = node.local().expect("a linear operation");
        return local.evaluate(&Reading(wanted), &lengths.iter().collect::<Vec<_>>(), None);
    };
    match map.products(wanted) {
        Products::Elementwise => vec![wanted.to_vec()],
        Products::Windows { blocks, .. } => {
            vec![ascending(blocks.into_iter().flat_map(|block| block.windows.into_iter().flatten()))]
        }
    }
}

fn ascending(indices: impl Iterator<Item = usize>) -> Vec<usize> {
    indices.collect::<BTreeSet<_>>().into_iter().collect()
}

/// The elements `wanted` (ascending) of an operation's output. Fails with [`Error::Misuse`] if `inputs` lack an element
/// that [`needs`] names, or a weight does not have the program's width.
pub(super) fn compute<E: Elements>(
    node: Node<'_>,
    inputs: &[&Part<E>],
    weights: &Weights,
    wanted: &[usize],
) -> Result<E, Error> {
    if wanted.len() == node.output().len() && inputs.iter().all(|part| part.is_whole()) {
        let whole: Vec<&E> = inputs.iter().map(|part| &part.elements).collect();
        if let Some(elements) = E::whole(node, &whole, weights) {
            return Ok(elements);
        }
    }
    let Some(map) = node.linear() else {
        let local: Box<dyn Local<Computing<'_, E>>> = node.local().expect("a linear operation");
        let constant = local.constant().map(|(name, _)| weights.tensor(name));
        return local.evaluate(&Computing { wanted, hidden: PhantomData }, inputs, constant);
    };
    let product = product(node, &*map, inputs[0], weights, wanted)?;
    match map.bias() {
        Some((name, len)) => {
            let (bias, run) = (weights.tensor(name), map.bias_run());
            product.plus_constants(&wanted.iter().map(|index| bias[index / run % len]).collect::<Vec<_>>())
        }
        None => Ok(product),
    }
}

/// A part of a linear layer without its bias.
fn product<E: Elements>(
    node: Node<'_>,
    map: &dyn LinearMap,
    x: &Part<E>,
    weights: &Weights,
    wanted: &[usize],
) -> Result<E, Error> {
    let (weights, bits) = (weights.tensor(map.weight()), node.program.weight_bits() as usize + 1);
    let rows = |outputs: &[usize]| outputs.iter().flat_map(|&output| map.row(weights, output)).collect();
    let (blocks, places) = match map.products(wanted) {
        Products::Windows { blocks, places } => (blocks, places),
        Products::Elementwise => {
            let factors = Matrix { rows: 1, inner: wanted.len(), run: wanted.len(), bits, values: rows(wanted) };
            return x.select(wanted)?.times(&factors);
        }
    };
    let mut products: Option<E> = None;
    for Block { outputs, inner, run, windows } in blocks {
        let matrix = Matrix { rows: outputs.len(), inner, run, bits, values: rows(&outputs) };
        let product = x.elements.dot(&matrix, x.windows(windows.into_iter())?)?;
        products = Some(match products {
            Some(products) => products.join(&product)?,
            None => product,
        });
    }
    let products = products.ok_or_else(|| Error::Misuse("a part of a linear layer without elements".into()))?;
    products.pick(&places)
}

/// What an operation reads for some elements of its result. Instead of shares it has the lengths of tensors.
struct Reading<'a>(&'a [usize]);

impl Algebra for Reading<'_> {
    type Shares = usize;
    type Owned = Vec<Vec<usize>>;
    type Constant = [i64];

    fn keep(&self, _x: &usize) -> Vec<Vec<usize>> {
        vec![self.0.to_vec()]
    }

    fn add(&self, _x: &usize, _y: &usize) -> Vec<Vec<usize>> {
        vec![self.0.to_vec(); 2]
    }

    fn sub(&self, x: &usize, y: &usize) -> Vec<Vec<usize>> {
        self.add(x, y)
    }

    fn negate(&self, x: &usize) -> Vec<Vec<usize>> {
        self.keep(x)
    }

    fn shift_left(&self, x: &usize, _bits: u32) -> Vec<Vec<usize>> {
        self.keep(x)
    }

    fn add_constant(&self, x: &usize, _constant: Option<&[i64]>, _shapes: [&[usize]; 2]) -> Vec<Vec<usize>> {
        self.keep(x)
    }

    fn sum_windows(&self, _x: &usize, groups: &Groups, _factors: &[i64]) -> Vec<Vec<usize>> {
        let groups = members(groups);
        vec![ascending(self.0.iter().flat_map(|&index| groups[index].iter().copied()))]
    }

    fn rearrange(&self, inputs: &[&usize], movement: &Movement) -> Vec<Vec<usize>> {
        let from = sources(inputs.iter().map(|len| **len), movement);
        let mut read: BTreeSet<usize> = self.0.iter().map(|&index| from[index]).collect();
        if movement.fill().is_some() {
            // The constant is made from an element, whichever.
            read.insert(0);
        }
        let mut end = 0;
        let of_input = |len: &&usize| {
            end += **len;
            read.range(end - **len..end).map(|index| index - (end - **len)).collect()
        };
        inputs.iter().map(of_input).collect()
    }
}

/// Some elements of an operation's result, from parts of its inputs.
struct Computing<'a, E> {
    wanted: &'a [usize],
    hidden: PhantomData<E>,
}

impl<E: Elements> Computing<'_, E> {
    /// The same factor for each.
    fn by(&self, factor: i64) -> Matrix {
        Matrix::public(1, vec![factor; self.wanted.len()])
    }
}

impl<E: Elements> Algebra for Computing<'_, E> {
    type Shares = Part<E>;
    type Owned = Result<E, Error>;
    type Constant = [i64];

    fn keep(&self, x: &Part<E>) -> Result<E, Error> {
        x.select(self.wanted)
    }

    fn add(&self, x: &Part<E>, y: &Part<E>) -> Result<E, Error> {
        x.select(self.wanted)?.plus(&y.select(self.wanted)?)
    }

    fn sub(&self, x: &Part<E>, y: &Part<E>) -> Result<E, Error> {
        self.negate(y)?.plus(&x.select(self.wanted)?)
    }

    fn negate(&self, x: &Part<E>) -> Result<E, Error> {
        x.select(self.wanted)?.times(&self.by(-1))
    }

    fn shift_left(&self, x: &Part<E>, bits: u32) -> Result<E, Error> {
        (0..bits).try_fold(x.select(self.wanted)?, |x, _| x.plus(&x))
    }

    fn add_constant(&self, x: &Part<E>, constant: Option<&[i64]>, [from, to]: [&[usize]; 2]) -> Result<E, Error> {
        let constant = layout::broadcast(constant.unwrap_or_default(), from, to);
        let wanted: Vec<i64> = self.wanted.iter().map(|&index| constant[index]).collect();
        x.select(self.wanted)?.plus_constants(&wanted)
    }

    fn sum_windows(&self, x: &Part<E>, groups: &Groups, factors: &[i64]) -> Result<E, Error> {
        let groups = members(groups);
        let size = groups.iter().map(Vec::len).max().unwrap_or(1);
        let window = |&index: &usize| groups[index].iter().copied().map(Some).chain(std::iter::repeat(None)).take(size);
        let windows = x.windows(self.wanted.iter().flat_map(window))?;
        let each = if let [factor] = factors[..] { factor } else { 1 };
        let sums = x.elements.dot(&Matrix::public(1, vec![each; size]), windows)?;
        if factors.len() == 1 {
            return Ok(sums);
        }
        let by = self.wanted.iter().map(|index| factors[index % factors.len()]).collect();
        sums.times(&Matrix::public(1, by))
    }

    fn rearrange(&self, inputs: &[&Part<E>], movement: &Movement) -> Result<E, Error> {
        let from = sources(inputs.iter().map(|part| part.len), movement);
        let [first, others @ ..] = inputs else { return Err(Error::Misuse("an operation without inputs".into())) };
        let mut pool = others.iter().try_fold(first.elements.clone(), |pool, part| pool.join(&part.elements))?;
        if let Some(fill) = movement.fill() {
            let zero = pool.pick(&[0])?.times(&Matrix::public(1, vec![0]))?;
            pool = pool.join(&zero.plus_constants(&[fill])?)?;
        }
        // Where each input begins among all elements, and among those that are there.
        let (mut begins, mut there) = (vec![0], vec![0]);
        for (at, part) in inputs.iter().enumerate() {
            begins.push(begins[at] + part.len);
            there.push(there[at] + part.indices.len());
        }
        let place = |&index: &usize| {
            let from = from[index];
            let input = begins.partition_point(|&begin| begin <= from) - 1;
            let within = inputs.get(input).map_or(Ok(0), |part| part.place(from - begins[input]))?;
            Ok(there[input] + within)
        };
        pool.pick(&self.wanted.iter().map(place).collect::<Result<Vec<_>, Error>>()?)
    }
}

fn members(groups: &Groups) -> Vec<Vec<usize>> {
    groups.iter().map(Iterator::collect).collect()
}
