//! From a program to the steps of suite `gmw`.
//!
//! A truncation drops the low bits of each share, which also shrinks the ring that the value is shared in. Comparisons
//! then run on the small ring, and a value is extended back to Z_2^l only where a step needs the wide ring. So the
//! planner follows each value's width and puts an [`Step::Extend`] where one is needed: that is all there is to
//! "truncate, then compare, then extend".

use std::collections::HashMap;

use privet_channel::Link;
use privet_gmw::{Truncation, cost};
use privet_linear::{Conv2d, Diagonal, Layer, MatMul};
use privet_program::{Operation, Operator, Program, Window};
use privet_ring::window::Windows;

use super::Options;
use super::turns::Turns;
use crate::Error;

/// One step of the online phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Brings the value to the program's ring.
    Extend {
        /// Value id.
        value: usize,
        /// Width of the ring it is in, in bits.
        from: u32,
    },
    /// Lets the server learn the value behind the client's mask; linear layers that read the value share the opening.
    Open {
        /// Value id.
        value: usize,
        /// Which of the client's masks hides it.
        mask: usize,
    },
    /// Runs the operation with this index.
    Operation(usize),
}

/// The offline half of a linear operation.
#[derive(Debug)]
pub struct LinearLayer {
    /// Index of the operation.
    pub operation: usize,
    /// Which of the client's masks hides the layer's input.
    pub mask: usize,
    /// Name of the weights.
    pub weight: String,
    /// How its weights and the mask meet under BFV.
    pub plan: privet_linear::Plan,
}

/// The steps of a program and what they need.
#[derive(Debug)]
pub struct Plan {
    program: Program,
    options: Options,
    link: Link,
    steps: Vec<Step>,
    /// Ring width of each value when it is written, in bits; operations that need the wide ring extend it first.
    written: Vec<u32>,
    /// Number of elements that each of the client's masks hides.
    masks: Vec<usize>,
    linear: Vec<LinearLayer>,
    cost: cost::Cost,
}

impl Plan {
    /// Plans `program` with these options; a bare [`privet_gmw::Rounds`] will do.
    ///
    /// # Errors
    /// [`Error::Linear`] if a linear layer does not fit BFV's secure parameters.
    pub fn new(program: Program, options: impl Into<Options>) -> Result<Self, Error> {
        let options = options.into();
        let mut planner = Planner::new(&program, options);
        for index in 0..program.operations().len() {
            planner.operation(index);
        }
        for output in program.outputs() {
            let (len, width) = (program.value(output.value).len(), planner.widths[output.value]);
            planner.cost = planner.cost + cost::open_to_client(len, width);
            planner.turns.server_sends();
        }
        let Planner { steps, written, masks, linear, layers, cost, turns, .. } = planner;
        let cost = cost::Cost { rounds: turns.rounds(), ..cost };
        let plans = match layers.is_empty() {
            true => Vec::new(),
            false => privet_linear::Plan::for_program(
                &layers,
                program.ring_bits(),
                program.weight_bits(),
                privet_linear::Resharing::Approximate,
            )?,
        };
        let place = |((operation, mask, weight), plan)| LinearLayer { operation, mask, weight, plan };
        let linear = linear.into_iter().zip(plans).map(place).collect();
        Ok(Self { options, link: Link::LAN, steps, written, masks, linear, cost, program })
    }

    /// The same plan for material that is made over `link` instead of a local network. The steps do not change.
    #[must_use]
    pub fn over(self, link: Link) -> Self {
        Self { link, ..self }
    }

    /// The link that material is made over.
    pub fn link(&self) -> Link {
        self.link
    }

    /// The program.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// What both parties chose.
    pub fn options(&self) -> Options {
        self.options
    }

    /// The steps in order.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Sizes of the client's masks.
    pub fn masks(&self) -> &[usize] {
        &self.masks
    }

    /// Linear layers in order.
    pub fn linear(&self) -> &[LinearLayer] {
        &self.linear
    }

    /// Width of the ring in which value `id` is when its operation has run, in bits.
    pub fn width(&self, id: usize) -> u32 {
        self.written[id]
    }

    /// Correlations that one inference consumes, and its online traffic; the rounds are those of the party that counts
    /// more.
    pub fn online_cost(&self) -> cost::Cost {
        self.cost
    }

    /// The operation with index `index`.
    pub fn operation(&self, index: usize) -> &Operation {
        &self.program.operations()[index]
    }
}

struct Planner<'a> {
    program: &'a Program,
    options: Options,
    steps: Vec<Step>,
    /// Current width of each value.
    widths: Vec<u32>,
    written: Vec<u32>,
    masks: Vec<usize>,
    opened: HashMap<usize, usize>,
    /// Operation, mask and weights of each linear layer.
    linear: Vec<(usize, usize, String)>,
    layers: Vec<Layer>,
    cost: cost::Cost,
    turns: Turns,
}

impl<'a> Planner<'a> {
    fn new(program: &'a Program, options: Options) -> Self {
        let widths = vec![program.ring_bits(); program.values().len()];
        Self {
            program,
            options,
            steps: Vec::new(),
            written: widths.clone(),
            widths,
            masks: Vec::new(),
            opened: HashMap::new(),
            linear: Vec::new(),
            layers: Vec::new(),
            cost: cost::Cost::default(),
            turns: Turns::new(),
        }
    }

    fn operation(&mut self, index: usize) {
        let operation = &self.program.operations()[index];
        self.align(operation);
        let input = operation.inputs[0];
        let width = self.widths[input];
        let len = self.program.value(input).len();
        let out = self.program.value(operation.output).len();
        let output_width = match &operation.operator {
            Operator::Truncate { bits } => width - bits,
            Operator::Argmax { .. } => self.program.ring_bits(),
            _ => width,
        };
        let Options { rounds, truncation, .. } = self.options;
        let cost = match &operation.operator {
            Operator::Truncate { bits } if truncation == Truncation::Exact => {
                cost::truncate_exactly(len, *bits, width, rounds)
            }
            Operator::Relu => cost::relu(len, width, rounds),
            Operator::MaxPool2d { window } => {
                let stages = pooling_stages(self.program, operation, window);
                stages.iter().map(|groups| cost::max_pool(groups.iter().map(Vec::len), width, rounds)).sum()
            }
            Operator::Argmax { .. } => cost::argmax(out, len / out, width, self.program.ring_bits(), rounds),
            _ => cost::Cost::default(),
        };
        self.exchange(cost);
        if let Some((weight, layer)) = linear_layer(self.program, operation) {
            let mask = self.open(input);
            self.linear.push((index, mask, weight.to_owned()));
            self.layers.push(layer);
        }
        self.steps.push(Step::Operation(index));
        self.widths[operation.output] = output_width;
        self.written[operation.output] = output_width;
    }

    /// Extends the inputs of `operation` where it needs the wide ring, or all of one width.
    fn align(&mut self, operation: &Operation) {
        let widths: Vec<u32> = operation.inputs.iter().map(|&id| self.widths[id]).collect();
        let needs_ring = match operation.operator {
            Operator::Conv2d { .. }
            | Operator::Dense { .. }
            | Operator::Scale { .. }
            | Operator::ShiftLeft { .. }
            | Operator::AvgPool2d { .. } => true,
            // A second drop of bits would leave too little room for comparisons.
            Operator::Truncate { .. } => widths[0] < self.program.ring_bits(),
            _ => widths.iter().any(|&width| width != widths[0]),
        };
        if needs_ring {
            for &id in &operation.inputs {
                self.extend(id);
            }
        }
    }

    fn extend(&mut self, value: usize) {
        let (from, to) = (self.widths[value], self.program.ring_bits());
        if from < to {
            self.steps.push(Step::Extend { value, from });
            self.exchange(cost::extend(self.program.value(value).len(), from, to));
            self.widths[value] = to;
        }
    }

    /// Books a step all of whose rounds are exchanges.
    fn exchange(&mut self, cost: cost::Cost) {
        self.cost = self.cost + cost;
        self.turns.exchange(cost.rounds);
    }

    /// The mask behind which the server learns `value`.
    fn open(&mut self, value: usize) -> usize {
        if let Some(&mask) = self.opened.get(&value) {
            return mask;
        }
        let (mask, len) = (self.masks.len(), self.program.value(value).len());
        self.masks.push(len);
        self.opened.insert(value, mask);
        self.steps.push(Step::Open { value, mask });
        self.cost = self.cost + cost::open_to_server(len, self.program.ring_bits());
        self.turns.client_sends();
        mask
    }
}

/// The weights' name and the shape of a linear operation; `None` for any other.
fn linear_layer<'a>(program: &Program, operation: &'a Operation) -> Option<(&'a str, Layer)> {
    let shape = &program.value(operation.inputs[0]).shape;
    match &operation.operator {
        Operator::Conv2d { weight, weight_shape, stride, padding, dilation, groups, .. } => {
            let layer = Conv2d {
                batch: shape[0],
                in_channels: shape[1],
                height: shape[2],
                width: shape[3],
                out_channels: weight_shape[0],
                kernel: [weight_shape[2], weight_shape[3]],
                stride: *stride,
                padding: *padding,
                dilation: *dilation,
                groups: *groups,
            };
            Some((weight, Layer::Conv2d(layer)))
        }
        Operator::Dense { weight, weight_shape: [inner, columns], .. } => {
            Some((weight, Layer::MatMul(MatMul { rows: shape[0], inner: *inner, columns: *columns })))
        }
        Operator::Scale { weight, weight_shape } => {
            Some((weight, Layer::Diagonal(Diagonal { len: weight_shape.iter().product() })))
        }
        _ => None,
    }
}

/// The windows of a pooling on one image plane.
fn windows(program: &Program, operation: &Operation, window: &Window) -> Windows {
    let input = &program.value(operation.inputs[0]).shape;
    let output = &program.value(operation.output).shape;
    Windows {
        image: [input[2], input[3]],
        positions: [output[2], output[3]],
        kernel: window.kernel,
        stride: window.stride,
        origin: [window.padding[0], window.padding[1]],
        dilation: window.dilation,
    }
}

/// Indices into a pooling's input that each of its outputs reads.
pub(crate) fn window_groups(program: &Program, operation: &Operation, window: &Window) -> Vec<Vec<usize>> {
    let input = &program.value(operation.inputs[0]).shape;
    on_every_plane(&windows(program, operation, window).elements(), input[0] * input[1], input[2] * input[3])
}

/// How a max pooling is computed: indices into its input, and into what each stage leaves to the next
/// ([`Windows::maxima`]).
pub(crate) fn pooling_stages(program: &Program, operation: &Operation, window: &Window) -> Vec<Vec<Vec<usize>>> {
    let input = &program.value(operation.inputs[0]).shape;
    let mut plane = input[2] * input[3];
    let on_planes = |groups: Vec<Vec<usize>>| {
        on_every_plane(&groups, input[0] * input[1], std::mem::replace(&mut plane, groups.len()))
    };
    windows(program, operation, window).maxima().into_iter().map(on_planes).collect()
}

/// Groups of indices into one plane, for `planes` planes of `len` elements that follow one another.
fn on_every_plane(groups: &[Vec<usize>], planes: usize, len: usize) -> Vec<Vec<usize>> {
    let on_plane = |plane| groups.iter().map(move |group| group.iter().map(|&at| plane * len + at).collect());
    (0..planes).flat_map(on_plane).collect()
}
