//! Consistency of a whole program file: bounds first, so that nothing later multiplies or allocates unchecked.
//!
//! A file may come from a server that means ill, and a client reads it, plans it and tells what it would take before anybody
//! decides to run it. So the limits are far above any image model, and at all of them together reading and planning still
//! take fractions of a second (`crates/suites/tests/limits.rs`): no time or memory is spent by the number of elements.

use crate::program::File;
use crate::{Error, Operator};

/// Longest file, in bytes.
pub const MAX_BYTES: usize = 4 << 20;

/// Largest number of elements of one value, and of one tensor of weights.
pub const MAX_ELEMENTS: usize = 1 << 28;

/// Largest number of elements of all values together, and of all tensors of weights.
pub const MAX_TOTAL: usize = 1 << 32;

/// Most operations; there are at most twice as many values.
pub const MAX_OPERATIONS: usize = 1 << 12;

/// Most operations with weights: convolutions, matrix products and scalings.
pub const MAX_LINEAR: usize = 1 << 9;

/// Most lines of all functions made of them: a plan holds them.
pub const MAX_LINES: usize = 1 << 19;

/// Most inputs of all operations together.
const MAX_INPUTS: usize = 4 * MAX_OPERATIONS;

/// Most inputs, outputs and tensors of state of a program.
const MAX_ENDS: usize = 1 << 8;

pub(crate) fn file(file: &File) -> Result<(), Error> {
    header(file)?;
    let (mut written, mut lines) = (vec![false; file.values.len()], 0);
    for input in &file.inputs {
        write(&mut written, input.value, || format!("input {}", input.name))?;
    }
    for state in &file.state {
        write(&mut written, state.input, || format!("state {}", state.name))?;
    }
    for operation in &file.operations {
        let place = || format!("operation {} ({})", operation.name, operation.operator.name());
        for &id in &operation.inputs {
            read(&written, id, place)?;
        }
        write(&mut written, operation.output, place)?;

        let inputs: Vec<&[usize]> = operation.inputs.iter().map(|&id| file.values[id].shape.as_slice()).collect();
        let declared = &file.values[operation.output].shape;
        let inferred = operation.operator.shape(&inputs, declared).map_err(|why| Error::inconsistent(place(), why))?;
        if inferred != *declared {
            return Err(Error::inconsistent(place(), format!("gives {inferred:?}, not {declared:?}")));
        }
        operation.operator.check_bits(file.ring_bits).map_err(|why| Error::inconsistent(place(), why))?;
        if let Operator::Piecewise { index_bits, .. } = operation.operator {
            lines += 1 << index_bits;
        }
    }
    if lines > MAX_LINES {
        return Err(Error::inconsistent("functions", format!("{lines} lines in all, more than {MAX_LINES}")));
    }
    for output in &file.outputs {
        read(&written, output.value, || format!("output {}", output.name))?;
    }
    for state in &file.state {
        let place = || format!("state {}", state.name);
        read(&written, state.output, place)?;
        if file.values[state.input] != file.values[state.output] {
            return Err(Error::inconsistent(place(), "leaves another shape or scale than it begins with"));
        }
    }
    Ok(())
}

fn header(file: &File) -> Result<(), Error> {
    if !(8..=64).contains(&file.ring_bits) {
        return Err(Error::inconsistent("ring_bits", format!("{} is not between 8 and 64", file.ring_bits)));
    }
    if !(1..=31).contains(&file.weight_bits) || file.weight_bits > file.ring_bits {
        return Err(Error::inconsistent("weight_bits", format!("{} does not fit the ring", file.weight_bits)));
    }
    if file.batch == 0 {
        return Err(Error::inconsistent("batch", "a run computes at least one sample"));
    }
    if file.operations.len() > MAX_OPERATIONS || file.values.len() > 2 * MAX_OPERATIONS {
        return Err(Error::inconsistent("operations", format!("more than {MAX_OPERATIONS}")));
    }
    if file.operations.iter().map(|operation| operation.inputs.len()).sum::<usize>() > MAX_INPUTS {
        return Err(Error::inconsistent("operations", format!("more than {MAX_INPUTS} inputs of operations")));
    }
    weights(file)?;
    if file.inputs.len().max(file.outputs.len()).max(file.state.len()) > MAX_ENDS {
        return Err(Error::inconsistent("inputs, outputs and state", format!("more than {MAX_ENDS}")));
    }
    if file.inputs.is_empty() || file.outputs.is_empty() {
        return Err(Error::inconsistent("inputs and outputs", "a program needs at least one of each"));
    }
    let mut total = 0;
    for (id, value) in file.values.iter().enumerate() {
        let elements = elements(&value.shape);
        total += elements.unwrap_or(0);
        if value.shape.len() > 8 || elements.is_none() {
            return Err(Error::inconsistent(
                format!("value {id}"),
                format!("shape {:?} is out of bounds", value.shape),
            ));
        }
        if value.scale >= file.ring_bits {
            return Err(Error::inconsistent(format!("value {id}"), format!("scale {} leaves no ring", value.scale)));
        }
    }
    match total <= MAX_TOTAL {
        true => Ok(()),
        false => Err(Error::inconsistent("values", format!("{total} elements in all, more than {MAX_TOTAL}"))),
    }
}

/// Bounds the tensors that operations name.
fn weights(file: &File) -> Result<(), Error> {
    let (mut total, mut layers) = (0, 0);
    for operation in &file.operations {
        let Some(shape) = operation.operator.weight_shape() else { continue };
        let Some(count) = elements(shape).filter(|_| shape.len() <= 8) else {
            let place = format!("operation {} ({})", operation.name, operation.operator.name());
            return Err(Error::inconsistent(place, format!("weights of shape {shape:?} are out of bounds")));
        };
        (total, layers) = (total + count, layers + 1);
    }
    if total > MAX_TOTAL {
        return Err(Error::inconsistent("weights", format!("{total} elements in all, more than {MAX_TOTAL}")));
    }
    match layers <= MAX_LINEAR {
        true => Ok(()),
        false => Err(Error::inconsistent("operations", format!("{layers} have weights, more than {MAX_LINEAR}"))),
    }
}

/// The number of elements of a shape, if it is neither zero nor beyond [`MAX_ELEMENTS`].
fn elements(shape: &[usize]) -> Option<usize> {
    let elements = shape.iter().try_fold(1usize, |product, &dim| product.checked_mul(dim));
    elements.filter(|count| (1..=MAX_ELEMENTS).contains(count))
}

fn read(written: &[bool], id: usize, place: impl Fn() -> String) -> Result<(), Error> {
    match written.get(id) {
        Some(true) => Ok(()),
        _ => Err(Error::inconsistent(place(), format!("reads value {id} before it is written"))),
    }
}

fn write(written: &mut [bool], id: usize, place: impl Fn() -> String) -> Result<(), Error> {
    match written.get_mut(id) {
        Some(slot @ false) => {
            *slot = true;
            Ok(())
        }
        _ => Err(Error::inconsistent(place(), format!("writes value {id}, which is taken or does not exist"))),
    }
}
