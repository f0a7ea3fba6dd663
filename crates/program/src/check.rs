//! Consistency of a whole program file: bounds first, so that nothing later multiplies or allocates unchecked.

use crate::operation::Operator;
use crate::program::File;
use crate::{Error, shape};

/// Largest number of elements of one value; far above any image model, far below what would exhaust memory by itself.
const MAX_ELEMENTS: usize = 1 << 28;
const MAX_OPERATIONS: usize = 1 << 16;

pub(crate) fn file(file: &File) -> Result<(), Error> {
    header(file)?;
    let mut written = vec![false; file.values.len()];
    for input in &file.inputs {
        write(&mut written, input.value, || format!("input {}", input.name))?;
    }
    for operation in &file.operations {
        let place = || format!("operation {} ({})", operation.name, operation.operator.name());
        for &id in &operation.inputs {
            read(&written, id, place)?;
        }
        write(&mut written, operation.output, place)?;

        let inputs: Vec<&[usize]> = operation.inputs.iter().map(|&id| file.values[id].shape.as_slice()).collect();
        let declared = &file.values[operation.output].shape;
        let inferred =
            shape::infer(&operation.operator, &inputs, declared).map_err(|why| Error::inconsistent(place(), why))?;
        if inferred != *declared {
            return Err(Error::inconsistent(place(), format!("gives {inferred:?}, not {declared:?}")));
        }
        widths(file, &operation.operator).map_err(|why| Error::inconsistent(place(), why))?;
    }
    for output in &file.outputs {
        read(&written, output.value, || format!("output {}", output.name))?;
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
    if file.inputs.is_empty() || file.outputs.is_empty() {
        return Err(Error::inconsistent("inputs and outputs", "a program needs at least one of each"));
    }
    for (id, value) in file.values.iter().enumerate() {
        let elements = value.shape.iter().try_fold(1usize, |product, &dim| product.checked_mul(dim));
        if value.shape.len() > 8 || !elements.is_some_and(|count| (1..=MAX_ELEMENTS).contains(&count)) {
            return Err(Error::inconsistent(
                format!("value {id}"),
                format!("shape {:?} is out of bounds", value.shape),
            ));
        }
        if value.scale >= file.ring_bits {
            return Err(Error::inconsistent(format!("value {id}"), format!("scale {} leaves no ring", value.scale)));
        }
    }
    Ok(())
}

fn widths(file: &File, operator: &Operator) -> Result<(), String> {
    match operator {
        Operator::Truncate { bits } | Operator::ShiftLeft { bits } if *bits + 4 > file.ring_bits => {
            Err(format!("{bits} bits of a ring of {}", file.ring_bits))
        }
        _ => Ok(()),
    }
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
