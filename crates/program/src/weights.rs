//! The private half of a program: the server's tensors.

use std::collections::HashMap;

use safetensors::{Dtype, SafeTensors};
use sha2::{Digest, Sha256};

use crate::operation::Operator;
use crate::{Error, Program};

/// Private integer tensors by name, checked against the program that uses them.
pub struct Weights {
    tensors: HashMap<String, Vec<i64>>,
}

impl Weights {
    /// Reads a safetensors file and checks that it is the one `program` was compiled with, and that every tensor is
    /// there with its shape and within `weight_bits`.
    ///
    /// # Errors
    /// [`Error::WrongWeights`] if the hash differs; [`Error::Weights`] names the tensor at fault.
    pub fn parse(bytes: &[u8], program: &Program) -> Result<Self, Error> {
        let hash: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        if hash != program.file.weights_commitment {
            return Err(Error::WrongWeights);
        }
        let file = SafeTensors::deserialize(bytes).map_err(|error| Error::Weights(error.to_string()))?;
        let mut tensors = HashMap::new();
        for operation in program.operations() {
            for (name, len, bits) in private_tensors(program, &operation.operator, operation.output) {
                if !tensors.contains_key(name) {
                    tensors.insert(name.to_owned(), read(&file, name, len, bits)?);
                }
            }
        }
        Ok(Self { tensors })
    }

    /// The tensor `name`; panics if no operation of the program names it.
    pub fn tensor(&self, name: &str) -> &[i64] {
        &self.tensors[name]
    }
}

/// Name, number of elements and bound (in bits) of each private tensor that an operator reads.
fn private_tensors<'a>(program: &Program, operator: &'a Operator, output: usize) -> Vec<(&'a str, usize, u32)> {
    let (weight_bits, ring_bits) = (program.weight_bits(), program.ring_bits());
    let bias_of = |bias: &'a Option<String>, len| bias.as_deref().map(|name| (name, len, ring_bits - 1));
    match operator {
        Operator::Conv2d { weight, weight_shape, bias, .. } => {
            let weight = (weight.as_str(), weight_shape.iter().product(), weight_bits);
            std::iter::once(weight).chain(bias_of(bias, weight_shape[0])).collect()
        }
        Operator::Dense { weight, weight_shape, bias } => {
            let weight = (weight.as_str(), weight_shape.iter().product(), weight_bits);
            std::iter::once(weight).chain(bias_of(bias, weight_shape[1])).collect()
        }
        Operator::Scale { weight, .. } => vec![(weight, program.value(output).len(), weight_bits)],
        Operator::Polynomial { coefficients, bound, degree } => {
            vec![(coefficients, degree + 1, ring_bits - 1), (bound, 1, ring_bits - 1)]
        }
        Operator::AddConstant { bias, bias_shape } => vec![(bias, bias_shape.iter().product(), ring_bits - 1)],
        _ => Vec::new(),
    }
}

fn read(file: &SafeTensors<'_>, name: &str, len: usize, bits: u32) -> Result<Vec<i64>, Error> {
    let fault = |problem: String| Error::Weights(format!("tensor {name}: {problem}"));
    let tensor = file.tensor(name).map_err(|error| fault(error.to_string()))?;
    if tensor.dtype() != Dtype::I64 || tensor.shape().iter().product::<usize>() != len {
        return Err(fault(format!(
            "{:?} {:?} where int64 with {len} elements belongs",
            tensor.dtype(),
            tensor.shape()
        )));
    }
    let (words, _) = tensor.data().as_chunks::<8>();
    let values: Vec<i64> = words.iter().map(|word| i64::from_le_bytes(*word)).collect();
    match values.iter().find(|value| value.unsigned_abs() >> bits != 0) {
        Some(value) => Err(fault(format!("{value} needs more than {bits} bits"))),
        None => Ok(values),
    }
}
