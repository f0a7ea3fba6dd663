//! Functions of single elements in the clear, at the client: exactly those of the program.
//!
//! An integer `x` at scale `s` stands for `x / 2^s`. Steps are rounded one by one to f64, and kept to magnitudes of
//! `2^500`, so that none is infinite. The value times `2^t`, for the output's scale `t`, is rounded to a whole number
//! (halves to even) and kept within the ring. The plaintext reference does the same
//! (`python/privet/compiler/executor/function.py`).

use privet_program::{Constant, Primitive, Step};

use super::elementary::{atan, cos, erf, exp, log, power_of_two, reciprocal, sigmoid, sin, softplus, sqrt, tanh};
use super::{Order, Revealed};
use crate::ops::Node;

/// The binary logarithm of the largest magnitude of a step's result.
const MOST: i32 = 500;

/// A function from integers at one scale to integers at another.
pub(crate) struct Function<'a> {
    /// What the program says.
    steps: &'a [Step],
    /// Fractional bits of arguments.
    from: u32,
    /// Fractional bits of values.
    to: u32,
    /// The ring that they stay in.
    ring_bits: u32,
}

impl Revealed for Function<'_> {
    fn compute(&self, mut values: Vec<i64>, _order: &Order) -> Vec<i64> {
        self.apply(&mut values);
        values
    }
}

impl<'a> Function<'a> {
    /// The function at its place.
    pub fn new(node: Node<'a>, steps: &'a [Step]) -> Self {
        Self { steps, from: node.input().scale, to: node.output().scale, ring_bits: node.program.ring_bits() }
    }

    /// Replaces each argument by its value.
    fn apply(&self, values: &mut [i64]) {
        let mut results = Vec::with_capacity(self.steps.len() + 1);
        values.iter_mut().for_each(|value| *value = self.value(*value, &mut results));
    }

    fn value(&self, x: i64, results: &mut Vec<f64>) -> i64 {
        self.whole(self.real(x, results) * power_of_two(self.to as i32))
    }

    /// The value before it is rounded.
    fn real(&self, x: i64, results: &mut Vec<f64>) -> f64 {
        results.clear();
        results.push(x as f64 * power_of_two(-(self.from as i32)));
        for step in self.steps {
            let operand = |at: usize| results[step.operands[at]];
            let result = match step.name {
                Primitive::Add => operand(0) + operand(1),
                Primitive::Sub => operand(0) - operand(1),
                Primitive::Mul => operand(0) * operand(1),
                Primitive::Scale => operand(0) * real(step.constant),
                Primitive::Shift => operand(0) + real(step.constant),
                Primitive::Exp => exp(operand(0)),
                Primitive::Sigmoid => sigmoid(operand(0)),
                Primitive::Tanh => tanh(operand(0)),
                Primitive::Softplus => softplus(operand(0)),
                Primitive::Erf => erf(operand(0)),
                Primitive::Relu => operand(0).max(0.0),
                Primitive::Log => log(operand(0)),
                Primitive::Sqrt => sqrt(operand(0)),
                Primitive::Reciprocal => reciprocal(operand(0)),
                Primitive::Sin => sin(operand(0)),
                Primitive::Cos => cos(operand(0)),
                Primitive::Atan => atan(operand(0)),
            };
            results.push(result.clamp(-power_of_two(MOST), power_of_two(MOST)));
        }
        results[self.steps.len()]
    }

    /// Slopes and offsets of `2^index_bits` lines over `2^bits` arguments from `low` on. A line's slope is that of the chord; it goes
    /// through the middle between the chord and the function, half-way along.
    pub fn lines(&self, low: i64, [bits, index_bits]: [u32; 2]) -> [Vec<i64>; 2] {
        let (results, step) = (&mut Vec::new(), 1_i64 << (bits - index_bits));
        let mut at = |x: i64| self.real(low + x, results);
        let unit = power_of_two(self.to as i32);
        let line = |index: i64| {
            let [first, middle, last] = [0, step / 2, step].map(|x| at(index * step + x));
            let slope = self.whole((last - first) * unit / step as f64);
            let chord = (first + last) * 0.5;
            let height = (chord + (middle - chord) * 0.5) * unit;
            (slope, self.whole(height - slope as f64 * (step / 2) as f64))
        };
        let (slopes, offsets) = (0..1 << index_bits).map(line).unzip();
        [slopes, offsets]
    }

    /// The nearest integer of the ring; none beyond `2^62`.
    fn whole(&self, value: f64) -> i64 {
        let room = 1_i64 << (self.ring_bits.min(63) - 1);
        let kept = value.round_ties_even().clamp(-(room as f64), room as f64);
        (kept as i64).min(room - 1)
    }
}

/// A constant; a checked program has one wherever it is needed.
fn real(constant: Option<Constant>) -> f64 {
    constant.map_or(0.0, |constant| constant.mantissa as f64 * power_of_two(constant.exponent))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(name: Primitive, operands: &[usize]) -> Step {
        Step { name, operands: operands.to_vec(), constant: None }
    }

    fn by(name: Primitive, mantissa: i64, exponent: i32) -> Step {
        Step { name, operands: vec![0], constant: Some(Constant { mantissa, exponent }) }
    }

    fn values(steps: &[Step], from: u32, to: u32, x: &[i64]) -> Vec<i64> {
        let mut values = x.to_vec();
        Function { steps, from, to, ring_bits: 37 }.apply(&mut values);
        values
    }

    #[test]
    fn halves_go_to_the_even_neighbour() {
        assert_eq!(values(&[], 1, 0, &[-3, -2, -1, 0, 1, 2, 3, 5]), [-2, -1, 0, 0, 0, 1, 2, 2]);
        assert_eq!(values(&[], 4, 12, &[-5, 7]), [-5 << 8, 7 << 8]);
    }

    #[test]
    fn values_stay_in_the_ring() {
        let cube = [step(Primitive::Mul, &[0, 0]), step(Primitive::Mul, &[0, 1])];
        let most = (1_i64 << 36) - 1;
        assert_eq!(values(&cube, 0, 0, &[-1 << 35, -3, 1 << 35]), [-most - 1, -27, most]);
        let doubled = vec![step(Primitive::Exp, &[0]); 4];
        assert_eq!(values(&doubled, 0, 0, &[100]).len(), 1);
        let huge = [by(Primitive::Scale, 1, 400), step(Primitive::Mul, &[1, 1]), step(Primitive::Sub, &[2, 2])];
        assert_eq!(values(&huge, 0, 0, &[5, -5]), [0, 0]);
    }

    #[test]
    fn steps_read_the_results_they_name() {
        let steps = [by(Primitive::Shift, -3, -1), step(Primitive::Mul, &[0, 1]), step(Primitive::Sub, &[2, 0])];
        // x (x - 3/2) - x
        assert_eq!(values(&steps, 2, 4, &[8, -2]), [-16, 24]);
    }

    /// The plaintext reference's values, to nearly the last bit of an f64: `tests/fixtures/functions.py` made them.
    #[test]
    fn values_are_the_references() {
        #[derive(serde::Deserialize)]
        struct Case {
            name: String,
            from: u32,
            to: u32,
            steps: Vec<Step>,
            x: Vec<i64>,
            y: Vec<i64>,
        }
        let file = include_str!("../../../tests/fixtures/functions.json");
        let cases: Vec<Case> = serde_json::from_str(file).expect("cases");
        assert_eq!(cases.len(), 15);
        for Case { name, from, to, steps, x, y } in cases {
            let mut values = x;
            Function { steps: &steps, from, to, ring_bits: 64 }.apply(&mut values);
            assert_eq!(values, y, "{name}");
        }
    }
}
