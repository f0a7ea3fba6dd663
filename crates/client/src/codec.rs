//! Between a client's reals and a program's integers. It is what `privet.compiler.executor.codec` does in Python, but for
//! heads and fronts: those are graphs of ONNX operators that the client computes in the clear, and Python computes them.

use privet_program::Program;
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::{Error, Tensor};

/// The place of a missing value among those of all float32.
const MISSING: i64 = 0x7FFF_FFFF;

/// How the client's numbers become those of a program, and back.
#[derive(Debug)]
pub(crate) struct Codec {
    /// For each input and output, with its shape.
    inputs: Vec<(Entry, Vec<usize>)>,
    outputs: Vec<(Exit, Vec<usize>)>,
    batch: usize,
    /// What the program's ranges rest on.
    pub(crate) calibration: String,
}

/// What a public half says beside what both parties read ([`Program`]).
#[derive(Deserialize)]
struct Ends {
    inputs: Vec<Entry>,
    outputs: Vec<Exit>,
    #[serde(default = "random")]
    calibration: String,
    head: Option<IgnoredAny>,
    front: Option<IgnoredAny>,
}

fn random() -> String {
    "random".into()
}

#[derive(Debug, Deserialize)]
struct Entry {
    name: String,
    magnitude: f64,
    /// The program takes places in the order of all float32.
    #[serde(default)]
    order: bool,
    /// Any number may be NaN.
    #[serde(default)]
    missing: bool,
    /// The client gives rows of a table, by their numbers.
    #[serde(default)]
    one_hot: bool,
    /// Of the value that it becomes.
    #[serde(skip)]
    scale: u32,
    /// Elements of the value for each number that is given.
    #[serde(skip)]
    rows: usize,
}

#[derive(Debug, Deserialize)]
struct Exit {
    name: String,
    client: Option<Softmax>,
    #[serde(skip)]
    scale: u32,
}

/// A softmax or its logarithm, which the client computes of its result.
#[derive(Debug, Deserialize)]
struct Softmax {
    op: Form,
    axis: i64,
    /// Over this axis and all that follow.
    #[serde(default)]
    flatten: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Form {
    Softmax,
    LogSoftmax,
}

impl Codec {
    /// Of the program that `public` is the public half of. Fails with [`Error::Unsupported`] if the client must compute
    /// more than a softmax; [`Error::PeerMisbehaved`].
    pub(crate) fn new(program: &Program, public: &[u8]) -> Result<Self, Error> {
        let malformed = |problem: String| Error::PeerMisbehaved(format!("the program is not readable: {problem}"));
        let ends: Ends = serde_json::from_slice(public).map_err(|error| malformed(error.to_string()))?;
        let refused = |what: &str| {
            let model = program.model();
            Err(Error::Unsupported(format!(
                "model {model} has {what}, which this crate does not compute: ask through `privet gateway`, which does, or \
                 serve the model without"
            )))
        };
        if ends.front.is_some() {
            return refused("operators before its first private one (client_side = true)");
        }
        if ends.head.is_some() {
            return refused("a head, such as labels or probabilities of its classes");
        }
        if !program.state().is_empty() {
            return refused("state from one inference to the next");
        }
        let batch = program.batch() as usize;
        let fits = |shape: &[usize]| match batch == 1 || shape.first() == Some(&batch) {
            true => Ok(()),
            false => Err(malformed(format!("shape {shape:?} in a program for {batch} samples"))),
        };
        let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
        for (mut entry, input) in ends.inputs.into_iter().zip(program.inputs()) {
            let value = program.value(input.value);
            let mut shape = value.shape.clone();
            entry.scale = value.scale;
            entry.rows = if entry.one_hot { shape.pop().unwrap_or(1) } else { 1 };
            fits(&shape)?;
            inputs.push((entry, shape));
        }
        for (mut exit, output) in ends.outputs.into_iter().zip(program.outputs()) {
            let value = program.value(output.value);
            exit.scale = value.scale;
            fits(&value.shape)?;
            if let Some(softmax) = &exit.client
                && softmax.start(&value.shape).is_none()
            {
                return Err(malformed(format!("output {} has no axis {}", exit.name, softmax.axis)));
            }
            outputs.push((exit, value.shape.clone()));
        }
        Ok(Self { inputs, outputs, batch, calibration: ends.calibration })
    }

    /// Names and shapes of what the client gives.
    pub(crate) fn inputs(&self) -> impl Iterator<Item = (&str, &[usize])> {
        self.inputs.iter().map(|(entry, shape)| (entry.name.as_str(), shape.as_slice()))
    }

    /// Names and shapes of what it gets.
    pub(crate) fn outputs(&self) -> impl Iterator<Item = (&str, &[usize])> {
        self.outputs.iter().map(|(exit, shape)| (exit.name.as_str(), shape.as_slice()))
    }

    /// The inputs as integers, and how many samples there are; the last takes the place of those that are missing.
    /// Fails with [`Error::Input`].
    pub(crate) fn encode(&self, given: &[Tensor]) -> Result<(Vec<Vec<i64>>, usize), Error> {
        if given.len() != self.inputs.len() {
            let names: Vec<&str> = self.inputs().map(|(name, _)| name).collect();
            return Err(Error::Input(format!("{} inputs given; the model's are {}", given.len(), names.join(", "))));
        }
        let mut samples = None;
        let mut encoded = Vec::with_capacity(given.len());
        for ((entry, shape), tensor) in self.inputs.iter().zip(given) {
            let count = self.samples(entry, shape, tensor)?;
            if *samples.get_or_insert(count) != count {
                return Err(Error::Input("the inputs hold different numbers of samples along their first axis".into()));
            }
            let mut integers = entry.encode(tensor.data())?;
            let row = integers.len() / count;
            for _ in count..self.batch {
                integers.extend_from_within(integers.len() - row..);
            }
            encoded.push(integers);
        }
        Ok((encoded, samples.unwrap_or(1)))
    }

    /// How many samples a tensor holds, which must fit.
    fn samples(&self, entry: &Entry, shape: &[usize], tensor: &Tensor) -> Result<usize, Error> {
        let (given, name) = (tensor.shape(), &entry.name);
        if self.batch == 1 {
            let problem = || Error::Input(format!("input {name} has shape {given:?}, not {shape:?}"));
            return if given == shape { Ok(1) } else { Err(problem()) };
        }
        match given.split_first() {
            Some((count, rest)) if rest == &shape[1..] && (1..=self.batch).contains(count) => Ok(*count),
            _ => Err(Error::Input(format!(
                "input {name} has shape {given:?}, not {shape:?}: the first axis counts up to {} samples, and more are more \
                 than one inference",
                self.batch
            ))),
        }
    }

    /// The revealed integers as reals, with what the client computes of them.
    pub(crate) fn decode(&self, revealed: &[Vec<i64>], samples: usize) -> Vec<(String, Tensor<f64>)> {
        let one = |((exit, shape), integers): (&(Exit, Vec<usize>), &Vec<i64>)| {
            let mut reals: Vec<f64> = integers.iter().map(|&integer| integer as f64 / power(exit.scale)).collect();
            if let Some(softmax) = &exit.client {
                softmax.apply(&mut reals, shape);
            }
            let mut shape = shape.clone();
            if self.batch > 1 {
                reals.truncate(reals.len() / self.batch * samples);
                shape[0] = samples;
            }
            (exit.name.clone(), Tensor::new(shape, reals).expect("a program's outputs have its shapes"))
        };
        self.outputs.iter().zip(revealed).map(one).collect()
    }
}

impl Entry {
    fn encode(&self, numbers: &[f32]) -> Result<Vec<i64>, Error> {
        let name = &self.name;
        if numbers.iter().any(|x| x.is_infinite() || (x.is_nan() && !self.missing)) {
            return Err(Error::Input(format!("input {name} holds NaN or infinity")));
        }
        if self.order {
            return Ok(numbers.iter().map(|&x| place(x)).collect());
        }
        if self.one_hot {
            return self.one_hot(numbers);
        }
        let largest = numbers.iter().fold(0.0, |largest: f64, x| largest.max(f64::from(x.abs())));
        if largest > self.magnitude {
            return Err(Error::Input(format!(
                "input {name} reaches {largest:.6}, and the program was compiled for magnitudes up to {:.6}: scale the \
                 input, or compile with calibration inputs or an input range that cover it",
                self.magnitude
            )));
        }
        Ok(numbers.iter().map(|&x| (f64::from(x) * power(self.scale)).round_ties_even() as i64).collect())
    }

    fn one_hot(&self, numbers: &[f32]) -> Result<Vec<i64>, Error> {
        let rows = self.rows;
        if numbers.iter().any(|&x| x.fract() != 0.0 || x < 0.0 || x >= rows as f32) {
            let name = &self.name;
            return Err(Error::Input(format!(
                "input {name} takes whole numbers from 0 to {}, rows of a table",
                rows - 1
            )));
        }
        let row = |&x: &f32| (0..rows).map(move |at| i64::from(at == x as usize));
        Ok(numbers.iter().flat_map(row).collect())
    }
}

/// The place of a number in the order of all float32: its bits read as sign and magnitude. NaN is behind all others.
fn place(x: f32) -> i64 {
    let magnitude = i64::from(x.abs().to_bits());
    match x {
        _ if x.is_nan() => MISSING,
        _ if x.is_sign_negative() => -magnitude,
        _ => magnitude,
    }
}

fn power(scale: u32) -> f64 {
    // A program's scales are below the 64 bits of the largest ring.
    2f64.powi(scale as i32)
}

impl Softmax {
    /// The axis counted from the front, if there is one.
    fn start(&self, shape: &[usize]) -> Option<usize> {
        let rank = shape.len() as i64;
        let axis = if self.axis < 0 { self.axis + rank } else { self.axis };
        // Flattening before the first axis takes all of them, and a number has no axis to sum over.
        let last = if self.flatten || rank == 0 { rank } else { rank - 1 };
        (0..=last).contains(&axis).then_some(axis as usize)
    }

    fn apply(&self, reals: &mut [f64], shape: &[usize]) {
        let axis = self.start(shape).expect("checked when the program was read");
        let (behind, rows) =
            shape[axis..].split_first().map_or((1, 1), |(&rows, behind)| (behind.iter().product(), rows));
        let (count, step) = if self.flatten { (rows * behind, 1) } else { (rows, behind) };
        for block in reals.chunks_mut(count * step) {
            for first in 0..step {
                let places = || (0..count).map(move |at| first + at * step);
                let largest = places().map(|at| block[at]).fold(f64::NEG_INFINITY, f64::max);
                let total: f64 = places().map(|at| (block[at] - largest).exp()).sum();
                for at in places() {
                    let shifted = block[at] - largest;
                    block[at] = match self.op {
                        Form::Softmax => shifted.exp() / total,
                        Form::LogSoftmax => shifted - total.ln(),
                    };
                }
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The public half of a program for `batch` samples with a ReLU, whose input and output have this shape and scale 4.
    fn public(batch: usize, shape: &[usize], input: &str, client: &str, more: &str) -> Vec<u8> {
        let commitment = "00".repeat(32);
        format!(
            r#"{{"format":"privet-program","version":1,"model":"m","ring_bits":40,"scale_bits":4,"weight_bits":12,
            "weights_commitment":"{commitment}","batch":{batch},{more}
            "inputs":[{{"name":"x","value":0,"magnitude":8.0{input}}}],"outputs":[{{"name":"y","value":1,"client":{client}}}],
            "values":[{{"scale":4,"shape":{shape:?}}},{{"scale":4,"shape":{shape:?}}}],
            "operations":[{{"op":"relu","name":"r","inputs":[0],"output":1}}]}}"#
        )
        .into_bytes()
    }

    pub(crate) fn program(batch: usize, shape: &[usize], input: &str, client: &str, more: &str) -> Program {
        Program::parse(&public(batch, shape, input, client, more)).unwrap()
    }

    fn codec(batch: usize, shape: &[usize], input: &str, client: &str, more: &str) -> Result<Codec, Error> {
        Codec::new(&program(batch, shape, input, client, more), &public(batch, shape, input, client, more))
    }

    fn encoded(codec: &Codec, shape: &[usize], data: &[f32]) -> Result<Vec<i64>, Error> {
        codec.encode(&[Tensor::new(shape, data).unwrap()]).map(|(mut integers, _)| integers.remove(0))
    }

    #[test]
    fn reals_are_rounded_to_even_at_the_scale_and_come_back() {
        let codec = codec(1, &[1, 4], "", "null", "").unwrap();
        let x = [1.0, -2.5, 1.0 / 32.0, 3.0 / 32.0];
        let integers = encoded(&codec, &[1, 4], &x).unwrap();
        assert_eq!(integers, [16, -40, 0, 2]);
        let outputs = codec.decode(&[integers], 1);
        assert_eq!(outputs, [("y".into(), Tensor::new([1, 4], [1.0, -2.5, 0.0, 0.125]).unwrap())]);
    }

    #[test]
    fn what_does_not_fit_is_refused_with_the_reason() {
        let codec = codec(1, &[1, 2], "", "null", "").unwrap();
        for (shape, data, why) in [
            ([2, 1], [0.0, 0.0], "has shape [2, 1], not [1, 2]"),
            ([1, 2], [0.0, 9.0], "magnitudes up to 8"),
            ([1, 2], [0.0, f32::NAN], "NaN or infinity"),
            ([1, 2], [f32::NEG_INFINITY, 0.0], "NaN or infinity"),
        ] {
            let error = encoded(&codec, &shape, &data).unwrap_err();
            assert!(matches!(&error, Error::Input(text) if text.contains(why)), "{error}");
        }
        assert!(matches!(codec.encode(&[]), Err(Error::Input(_))));
        assert!(matches!(Tensor::new([2, 2], [0f32; 3]), Err(Error::Input(_))));
    }

    #[test]
    fn fewer_samples_than_a_batch_are_filled_up_and_cut_off_again() {
        let codec = codec(3, &[3, 2], "", "null", "").unwrap();
        let (integers, samples) = codec.encode(&[Tensor::new([2, 2], [1.0, 2.0, 3.0, 4.0]).unwrap()]).unwrap();
        assert_eq!((integers[0].as_slice(), samples), ([16, 32, 48, 64, 48, 64].as_slice(), 2));
        let (_, output) = codec.decode(&integers, samples).remove(0);
        assert_eq!(output, Tensor::new([2, 2], [1.0, 2.0, 3.0, 4.0]).unwrap());
        for shape in [[0, 2], [4, 2], [2, 1]] {
            assert!(encoded(&codec, &shape, &vec![0.0; shape[0] * shape[1]]).is_err());
        }
    }

    #[test]
    fn places_follow_the_order_of_numbers() {
        let codec = codec(1, &[1, 6], r#","order":true,"missing":true"#, "null", "").unwrap();
        let x = [-1e30, -1.0, 0.0, f32::MIN_POSITIVE, 1e30, f32::NAN];
        let places = encoded(&codec, &[1, 6], &x).unwrap();
        assert!(places.is_sorted_by(|a, b| a < b), "{places:?}");
        assert_eq!(places[2], 0);
        assert_eq!(place(-0.0), 0);
        assert_eq!(place(1.0), 0x3F80_0000);
    }

    #[test]
    fn rows_of_a_table_become_zeros_and_a_one() {
        let codec = codec(1, &[1, 2, 3], r#","one_hot":true"#, "null", "").unwrap();
        assert_eq!(codec.inputs().next(), Some(("x", &[1, 2][..])));
        assert_eq!(encoded(&codec, &[1, 2], &[2.0, 0.0]).unwrap(), [0, 0, 1, 1, 0, 0]);
        for wrong in [3.0, -1.0, 0.5] {
            assert!(encoded(&codec, &[1, 2], &[wrong, 0.0]).is_err());
        }
    }

    #[test]
    fn a_softmax_is_computed_along_its_axis() {
        let integers: Vec<i64> = [0.0, 1.0, 2.0, 4.0].iter().map(|x: &f64| (x * 16.0) as i64).collect();
        let softmax = |client: &str| {
            codec(1, &[1, 2, 2], "", client, "").unwrap().decode(std::slice::from_ref(&integers), 1).remove(0).1
        };
        let two = |a: f64, b: f64| b.exp() / (a.exp() + b.exp());
        let close = |left: &[f64], right: &[f64]| {
            assert!(left.iter().zip(right).all(|(a, b)| (a - b).abs() < 1e-12), "{left:?} {right:?}");
        };
        let last = [two(1.0, 0.0), two(0.0, 1.0), two(4.0, 2.0), two(2.0, 4.0)];
        close(softmax(r#"{"op":"softmax","axis":-1}"#).data(), &last);
        let middle = [two(2.0, 0.0), two(4.0, 1.0), two(0.0, 2.0), two(1.0, 4.0)];
        close(softmax(r#"{"op":"softmax","axis":1}"#).data(), &middle);
        close(softmax(r#"{"op":"log_softmax","axis":1}"#).data(), &middle.map(f64::ln));
        let total: f64 = [0.0f64, 1.0, 2.0, 4.0].iter().map(|x| x.exp()).sum();
        let all = [0.0f64, 1.0, 2.0, 4.0].map(|x| x.exp() / total);
        close(softmax(r#"{"op":"softmax","axis":1,"flatten":true}"#).data(), &all);
        assert!(matches!(codec(1, &[1, 2], "", r#"{"op":"softmax","axis":2}"#, ""), Err(Error::PeerMisbehaved(_))));
    }

    #[test]
    fn what_only_python_computes_at_the_client_is_refused() {
        for (more, what) in [(r#""head":{"nodes":[]},"#, "a head"), (r#""front":{},"#, "client_side")] {
            let error = codec(1, &[1, 2], "", "null", more).unwrap_err();
            assert!(matches!(&error, Error::Unsupported(text) if text.contains(what)), "{error}");
        }
    }
}
