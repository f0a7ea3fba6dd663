//! Poolings that see the same values.
//!
//! A pooling's windows travel whole, so the client knows which values share one. If it finds the same values in the windows of
//! another pooling, it lays both side by side: a pooling along rows and one along columns of an image give the whole image but
//! for the order of its rows and of its columns. Values are told by their size, whatever order they come in, so a value stays
//! itself through all that the client computes and all that only moves elements, and is another one behind a layer with weights,
//! a sum of two values or a private constant.

use privet_program::{Operator, Program};

use super::ops;
use crate::ops::Node;

/// The index of the first pooling whose values, or what they were made of, went into another pooling before.
pub(super) fn second_pooling(program: &Program) -> Option<usize> {
    let words = program.values().len().div_ceil(64);
    // For each value those that it can be told to be; none for what the client gave, whose places it knows.
    let mut origins = vec![vec![0_u64; words]; program.values().len()];
    let mut pooled = vec![0_u64; words];
    for (index, operation) in program.operations().iter().enumerate() {
        let mut own = vec![0; words];
        if stays(Node::at(program, index)) {
            for &input in &operation.inputs {
                own.iter_mut().zip(&origins[input]).for_each(|(own, other)| *own |= other);
            }
        } else {
            own[operation.output / 64] |= 1 << (operation.output % 64);
        }
        if matches!(operation.operator, Operator::MaxPool2d { .. }) {
            if own.iter().zip(&pooled).any(|(own, pooled)| own & pooled != 0) {
                return Some(index);
            }
            pooled.iter_mut().zip(&own).for_each(|(pooled, own)| *pooled |= own);
        }
        origins[operation.output] = own;
    }
    None
}

/// Whether the client can tell what comes out by what went in.
fn stays(node: Node<'_>) -> bool {
    let moves = matches!(
        node.operation.operator,
        Operator::Reshape
            | Operator::Broadcast
            | Operator::Transpose { .. }
            | Operator::Slice { .. }
            | Operator::Concat { .. }
            | Operator::Pad { .. }
            | Operator::Negate
            | Operator::ShiftLeft { .. }
    );
    moves || ops::of(node).is_some()
}

#[cfg(test)]
mod tests {
    use privet_prg::{Prg, Seed};
    use privet_ring::window::Groups;

    use super::*;
    use crate::stream::arrangement::Arrangement;
    use crate::stream::{Cipher, Plan};

    const SIDE: usize = 8;

    /// What a client sees of an image whose values are its places, pooled over these windows.
    fn seen(windows: Vec<Vec<usize>>, prg: &mut Prg) -> Vec<Vec<usize>> {
        let groups = Groups::on_planes(windows, 1, SIDE * SIDE);
        Arrangement::groups(&groups, prg).sent.chunks(SIDE).map(<[usize]>::to_vec).collect()
    }

    #[test]
    fn poolings_along_rows_and_columns_give_an_image_but_for_the_order_of_both() {
        let mut prg = Prg::from_seed(&Seed::from_block(11));
        let rows = seen((0..SIDE).map(|row| (row * SIDE..(row + 1) * SIDE).collect()).collect(), &mut prg);
        let columns = seen((0..SIDE).map(|at| (0..SIDE).map(|row| row * SIDE + at).collect()).collect(), &mut prg);
        // The one value that a row and a column share.
        let shared = |row: &Vec<usize>, column: &Vec<usize>| {
            let mut both = row.iter().filter(|value| column.contains(value));
            (*both.next().expect("one"), both.next()).0
        };
        let values_of: Vec<Vec<usize>> =
            rows.iter().map(|row| columns.iter().map(|column| shared(row, column)).collect()).collect();
        for (row, values) in values_of.iter().enumerate() {
            assert!(values.iter().all(|value| value / SIDE == values[0] / SIDE), "row {row}");
            assert!(values.iter().zip(&values_of[0]).all(|(value, first)| value % SIDE == first % SIDE), "row {row}");
        }
    }

    /// Why a program is refused, of whose operations each has a name, the value that it reads, and the sides of its result. Value 0 is
    /// the input, 1 what a convolution makes of it, 2 the first result.
    fn refused(operations: &[(&str, usize, [usize; 2])]) -> Option<String> {
        let conv = r#""op":"conv2d","weight":"w","weight_shape":[1,1,1,1],"bias":null,"stride":[1,1],"padding":[0,0,0,0],"dilation":[1,1],"groups":1"#;
        let pool = |[high, wide]: [usize; 2]| {
            format!(
                r#""op":"max_pool2d","kernel":[{high},{wide}],"stride":[{high},{wide}],"padding":[0,0,0,0],"dilation":[1,1]"#
            )
        };
        let mut sides = vec![[SIDE, SIDE]; 2];
        let mut steps = vec![(conv.to_owned(), 0)];
        for &(name, reads, side) in operations {
            let from = sides[reads];
            steps.push(match name {
                "pool" => (pool([from[0] / side[0], from[1] / side[1]]), reads),
                "relu" => (r#""op":"relu""#.into(), reads),
                _ => (conv.into(), reads),
            });
            sides.push(side);
        }
        // Every result goes on at the server.
        let results = 2..sides.len();
        for result in results.clone() {
            steps.push((conv.into(), result));
            sides.push(sides[result]);
        }
        let values = sides.iter().map(|[high, wide]| format!(r#"{{"scale":12,"shape":[1,1,{high},{wide}]}}"#));
        let operations = steps.iter().enumerate().map(|(index, (text, reads))| {
            format!(r#"{{{text},"name":"{}","inputs":[{reads}],"output":{}}}"#, index + 1, index + 1)
        });
        let outputs = results.clone().map(|result| {
            let value = result + results.len();
            format!(r#"{{"name":"y{value}","value":{value},"client":null}}"#)
        });
        let public = format!(
            r#"{{"format":"privet-program","version":1,"model":"pools","ring_bits":37,"scale_bits":12,"weight_bits":12,
            "weights_commitment":"{}","inputs":[{{"name":"x","value":0,"magnitude":8.0}}],"outputs":[{}],"values":[{}],
            "operations":[{}]}}"#,
            "00".repeat(32),
            outputs.collect::<Vec<_>>().join(","),
            values.collect::<Vec<_>>().join(","),
            operations.collect::<Vec<_>>().join(",")
        );
        let program = Program::parse(public.as_bytes()).expect("a program");
        Plan::new(program, Cipher::Bfv).err().map(|error| error.to_string())
    }

    #[test]
    fn values_are_pooled_once() {
        let (rows, columns, half) = ([SIDE, 1], [1, SIDE], [SIDE / 2, SIDE / 2]);
        for (what, operations) in [
            ("rows and columns", vec![("pool", 1, rows), ("pool", 1, columns)]),
            ("columns behind a ReLU", vec![("pool", 1, rows), ("relu", 1, [SIDE, SIDE]), ("pool", 3, columns)]),
            ("windows of windows", vec![("pool", 1, half), ("pool", 2, [SIDE / 4, SIDE / 4])]),
        ] {
            let error = refused(&operations).unwrap_or_else(|| panic!("{what} is planned"));
            assert!(error.contains("its windows overlap those of another pooling"), "{what}: {error}");
        }
        for (what, operations) in [
            ("one pooling", vec![("pool", 1, half)]),
            ("another one behind a layer", vec![("pool", 1, half), ("conv", 2, half), ("pool", 3, [2, 2])]),
            ("the client's own input", vec![("pool", 0, rows), ("pool", 0, columns)]),
        ] {
            assert_eq!(refused(&operations), None, "{what}");
        }
    }
}
