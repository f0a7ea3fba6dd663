//! Poolings that see the same values.
//!
//! A pooling's windows travel whole, so the client knows which values share one. If it finds the same values in the windows of
//! another pooling, it lays both side by side: a pooling along rows and one along columns of an image give the whole image but
//! for the order of its rows and of its columns. Values are told by their size, whatever order they come in, so a value stays
//! itself through all that the client computes and all that only moves elements. It can be told as well behind a private
//! constant or factor, which the client finds because one number explains all values, behind a number that is broadcast, likewise, in
//! an average, whose terms shared a window, and in a sum of values that the client has seen. It is another one behind a layer that adds
//! up products with weights, and in a sum that has such a one in every place. But two sums with the same unseen value differ by values
//! that the client has seen, so what tells them is the unseen one.

use std::collections::HashSet;

use privet_program::{Operator, Program};

use super::ops;
use super::plan::Step;
use crate::ops::Node;

/// The index of the first pooling whose values, or what they were made of, went into another pooling before.
pub(super) fn second_pooling(program: &Program, steps: &[Step]) -> Option<usize> {
    let words = program.values().len().div_ceil(64);
    let seen = steps.iter().filter_map(|step| match step {
        Step::Exchange(exchange) => Some(exchange.source),
        Step::Linear(_) => None,
    });
    let seen: HashSet<usize> = seen.collect();
    // The values that the client neither has nor could compute if it knew private constants and factors and a few numbers.
    let mut unseen: HashSet<usize> = HashSet::new();
    // For each value those that it can be told to be; none for what the client gave, whose places it knows.
    let mut origins = vec![vec![0_u64; words]; program.values().len()];
    let mut pooled = vec![0_u64; words];
    for (index, operation) in program.operations().iter().enumerate() {
        let all = operation.inputs.clone();
        let hidden: Vec<usize> = all.iter().copied().filter(|input| unseen.contains(input)).collect();
        let (tell, is_unseen) = match Results::of(Node::at(program, index)) {
            Results::Others => (Vec::new(), true),
            Results::Sums if !hidden.is_empty() => (hidden, true),
            Results::Moved => (all.clone(), hidden == all),
            Results::Sums | Results::Told => (all, false),
        };
        let mut own = vec![0; words];
        for &input in &tell {
            own.iter_mut().zip(&origins[input]).for_each(|(own, other)| *own |= other);
        }
        if tell.is_empty() {
            own[operation.output / 64] |= 1 << (operation.output % 64);
        }
        unseen.extend((is_unseen && !seen.contains(&operation.output)).then_some(operation.output));
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

/// What the results of an operation are to a client that has seen what went in, or may find it.
enum Results {
    /// What went in, moved or each behind a private number.
    Moved,
    /// Sums and differences.
    Sums,
    /// Made of it in ways that the client knows or finds, maybe of few numbers for many results.
    Told,
    /// Other values.
    Others,
}

impl Results {
    fn of(node: Node<'_>) -> Self {
        match &node.operation.operator {
            Operator::Reshape
            | Operator::Transpose { .. }
            | Operator::Slice { .. }
            | Operator::Concat { .. }
            | Operator::Negate
            | Operator::ShiftLeft { .. }
            | Operator::AddConstant { .. }
            | Operator::Scale { .. } => Self::Moved,
            Operator::Add | Operator::Sub => Self::Sums,
            Operator::Broadcast | Operator::Pad { .. } | Operator::AvgPool2d { .. } => Self::Told,
            // A single weight for each result is a factor.
            Operator::Conv2d { weight_shape: [_, terms @ ..], .. } if terms.iter().product::<usize>() == 1 => {
                Self::Told
            }
            Operator::Dense { weight_shape: [1, _], .. } => Self::Told,
            _ if ops::of(node).is_some() => Self::Told,
            _ => Self::Others,
        }
    }
}

#[cfg(test)]
mod tests {
    use privet_prg::{Prg, Seed};
    use privet_ring::window::Groups;

    use super::*;
    use crate::stream::arrangement::Arrangement;
    use crate::stream::{Cipher, Plan};

    const SIDE: usize = 8;

    /// What a client sees of a square image, a value for each place, pooled over these windows.
    fn seen(values: &[i64], windows: Vec<Vec<usize>>, prg: &mut Prg) -> Vec<Vec<i64>> {
        let length = windows[0].len();
        let groups = Groups::on_planes(windows, 1, values.len());
        let sent = Arrangement::groups(&groups, prg).sent;
        sent.chunks(length).map(|window| window.iter().map(|&place| values[place]).collect()).collect()
    }

    /// Windows of so many rows and columns that lie side by side on a square image.
    fn windows(side: usize, [high, wide]: [usize; 2]) -> Vec<Vec<usize>> {
        let place = |at: usize| {
            let (row, column) = (at / (side / wide) * high, at % (side / wide) * wide);
            (0..high * wide).map(move |tap| (row + tap / wide) * side + column + tap % wide).collect()
        };
        (0..side / high * side / wide).map(place).collect()
    }

    /// Distinct values of both signs.
    fn image(prg: &mut Prg) -> Vec<i64> {
        (0..(SIDE * SIDE) as i64).map(|place| (prg.below(1 << 20) as i64 - (1 << 19)) << 6 | place).collect()
    }

    /// The values of an image that each pair of a row and a column shares.
    fn crossed(rows: &[Vec<i64>], columns: &[Vec<i64>]) -> Vec<Vec<i64>> {
        let shared = |row: &Vec<i64>, column: &Vec<i64>| {
            let mut both = row.iter().filter(|value| column.contains(value));
            let (value, another) = (both.next(), both.next());
            assert!(another.is_none(), "a row and a column share a place");
            *value.expect("a row and a column share a place")
        };
        rows.iter().map(|row| columns.iter().map(|column| shared(row, column)).collect()).collect()
    }

    fn assert_is_image_but_for_order(found: &[Vec<i64>], image: &[i64]) {
        let place = |value: &i64| image.iter().position(|own| own == value).expect("a value of the image");
        for row in found {
            assert!(row.iter().all(|value| place(value) / SIDE == place(&row[0]) / SIDE));
            assert!(row.iter().zip(&found[0]).all(|(value, first)| place(value) % SIDE == place(first) % SIDE));
        }
    }

    #[test]
    fn poolings_along_rows_and_columns_give_an_image_but_for_the_order_of_both() {
        let mut prg = Prg::from_seed(&Seed::from_block(11));
        let image = image(&mut prg);
        let [rows, columns] = [[1, SIDE], [SIDE, 1]].map(|window| seen(&image, windows(SIDE, window), &mut prg));
        assert_is_image_but_for_order(&crossed(&rows, &columns), &image);
    }

    /// The columns are of values behind a private constant, a private factor, or added to their ReLU. The client tries all.
    #[test]
    fn a_private_number_hides_no_values_from_one_who_has_seen_them() {
        type Change = fn(i64, i64) -> i64;
        let changes: [Change; 3] = [|x, number| x + number, |x, number| x * number, |x, _| x + x.max(0)];
        let mut prg = Prg::from_seed(&Seed::from_block(12));
        let image = image(&mut prg);
        let rows = seen(&image, windows(SIDE, [1, SIDE]), &mut prg);
        for (which, secret) in [(0, 1234), (1, 2345), (2, 1)] {
            let changed: Vec<i64> = image.iter().map(|&x| changes[which](x, secret)).collect();
            let columns = seen(&changed, windows(SIDE, [SIDE, 1]), &mut prg);
            let wanted: HashSet<i64> = columns.concat().into_iter().collect();
            let candidates = (0..3).flat_map(|change| (1..1 << 12).map(move |number| (change, number)));
            let explains = |&(change, number): &(usize, i64)| {
                rows.iter().flatten().all(|&x| wanted.contains(&changes[change](x, number)))
            };
            let (change, number) = candidates.clone().find(explains).expect("an explanation");
            assert_eq!((change, number), (which, secret));
            let same: Vec<Vec<i64>> =
                rows.iter().map(|row| row.iter().map(|&x| changes[change](x, number)).collect()).collect();
            assert_is_image_but_for_order(&crossed(&same, &columns), &changed);
        }
    }

    /// The rows are of sums with a value that the client does not see, the columns of the same sums and the ReLU of what it has seen. It
    /// adds what it has to what it sees, and finds nothing if the columns are of sums with another value.
    #[test]
    fn two_sums_with_a_value_that_nobody_sees_differ_by_what_is_seen() {
        let mut prg = Prg::from_seed(&Seed::from_block(14));
        let [input, unseen, another] = [(); 3].map(|()| image(&mut prg));
        let sums = |other: &[i64]| -> Vec<i64> { input.iter().zip(other).map(|(x, y)| x + y).collect() };
        let with_relu =
            |sums: Vec<i64>| -> Vec<i64> { sums.iter().zip(&input).map(|(sum, x)| sum + x.max(&0)).collect() };
        let relu: HashSet<i64> = input.iter().map(|&x| x.max(0)).collect();
        let rows = seen(&sums(&unseen), windows(SIDE, [1, SIDE]), &mut prg);
        let mut found = |image: &[i64]| -> Option<Vec<Vec<i64>>> {
            let columns = seen(image, windows(SIDE, [SIDE, 1]), &mut prg);
            let wanted: HashSet<i64> = columns.concat().into_iter().collect();
            let same = |sum: &i64| relu.iter().map(|x| sum + x).find(|value| wanted.contains(value));
            let rows: Option<Vec<Vec<i64>>> = rows.iter().map(|row| row.iter().map(same).collect()).collect();
            rows.map(|rows| crossed(&rows, &columns))
        };
        let image = with_relu(sums(&unseen));
        assert_is_image_but_for_order(&found(&image).expect("every value"), &image);
        assert_eq!(found(&with_relu(sums(&another))), None);
    }

    /// Averages of the windows of one pooling go into another one, which tells what windows are neighbours.
    #[test]
    fn averages_are_known_from_the_windows_of_their_terms() {
        let mut prg = Prg::from_seed(&Seed::from_block(13));
        let image = image(&mut prg);
        let first = seen(&image, windows(SIDE, [2, 2]), &mut prg);
        let sums: Vec<i64> =
            windows(SIDE, [2, 2]).iter().map(|window| window.iter().map(|&at| image[at]).sum()).collect();
        let place = |window: &Vec<i64>| image.iter().position(|own| *own == window[0]).expect("a value of the image");
        for block in seen(&sums, windows(SIDE / 2, [2, 2]), &mut prg) {
            let of_sum = |sum: &i64| first.iter().find(|window| window.iter().sum::<i64>() == *sum);
            let blocks: HashSet<_> = block.iter().map(|sum| place(of_sum(sum).expect("a window"))).collect();
            let blocks: HashSet<_> = blocks.iter().map(|at| [at / SIDE / 4, at % SIDE / 4]).collect();
            assert_eq!(blocks.len(), 1, "the four windows lie in one block of the image");
        }
    }

    /// Why a program is refused, of whose operations each has a name, the values that it reads, and the sides of its result. Value 0
    /// is the input, 1 what a convolution makes of it, 2 the first result.
    fn refused(operations: &[(&str, &[usize], [usize; 2])]) -> Option<String> {
        let conv = |name: &str, kernel: usize, padding: usize| {
            format!(
                r#""op":"conv2d","weight":"{name}","weight_shape":[1,1,{kernel},{kernel}],"bias":null,"stride":[1,1],"padding":[{padding},{padding},{padding},{padding}],"dilation":[1,1],"groups":1"#
            )
        };
        let mixed = conv("w", 3, 1);
        let window = |[high, wide]: [usize; 2]| {
            format!(r#""kernel":[{high},{wide}],"stride":[{high},{wide}],"padding":[0,0,0,0],"dilation":[1,1]"#)
        };
        let mut sides = vec![[SIDE, SIDE]; 2];
        let mut steps = vec![(mixed.clone(), vec![0])];
        for &(name, reads, side) in operations {
            let from = sides[reads[0]];
            let window = window([from[0] / side[0], from[1] / side[1]]);
            let [high, wide] = side;
            let text = match name {
                "pool" => format!(r#""op":"max_pool2d",{window}"#),
                "average" => format!(r#""op":"avg_pool2d",{window},"factors":[1]"#),
                "slice" => format!(r#""op":"slice","starts":[0,0,0,0],"ends":[1,1,{high},{wide}],"steps":[1,1,1,1]"#),
                "pad" => {
                    let [low, right] = [high - from[0], wide - from[1]];
                    format!(r#""op":"pad","before":[0,0,0,0],"after":[0,0,{low},{right}],"constant":0"#)
                }
                "constant" => r#""op":"add_constant","bias":"b","bias_shape":[1]"#.into(),
                "scale" => format!(r#""op":"scale","weight":"s","weight_shape":[1,1,{high},{wide}]"#),
                "factor" => conv("f", 1, 0),
                "conv" => mixed.clone(),
                other => format!(r#""op":"{other}""#),
            };
            steps.push((text, reads.to_vec()));
            sides.push(side);
        }
        // Every result goes on at the server.
        let results = 2..sides.len();
        for result in results.clone() {
            steps.push((mixed.clone(), vec![result]));
            sides.push(sides[result]);
        }
        let values = sides.iter().map(|[high, wide]| format!(r#"{{"scale":12,"shape":[1,1,{high},{wide}]}}"#));
        let operations = steps.iter().enumerate().map(|(index, (text, reads))| {
            format!(r#"{{{text},"name":"{}","inputs":{reads:?},"output":{}}}"#, index + 1, index + 1)
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
        let (whole, half, quarter) = ([SIDE, SIDE], [SIDE / 2, SIDE / 2], [SIDE / 4, SIDE / 4]);
        let (rows, columns, top) = ([SIDE, 1], [1, SIDE], [SIDE / 2, SIDE]);
        let behind = |name| vec![("pool", &[1][..], rows), (name, &[1], whole), ("pool", &[3], columns)];
        let sum: Vec<(&str, &[usize], _)> =
            vec![("pool", &[1], half), ("conv", &[2], half), ("add", &[2, 3], half), ("pool", &[4], quarter)];
        // Rows, and columns of the sum with what becomes of a value that the client does not see.
        let added = |steps: &[(&'static str, &'static [usize], _)]| {
            let rest = [("pool", &[1][..], rows), ("add", &[1, 4], whole), ("pool", &[6], columns)];
            [&[("conv", &[1][..], whole)], steps, &rest].concat()
        };
        // Either with a value that the client does not see; `second`: what the second one adds up.
        let two_sums = |second: &'static [usize]| {
            vec![
                ("conv", &[1][..], whole),
                ("conv", &[1], whole),
                ("relu", &[1], whole),
                ("add", &[1, 2], whole),
                ("pool", &[5], rows),
                ("add", &[1, 4], whole),
                ("add", second, whole),
                ("pool", &[8], columns),
            ]
        };
        for (what, operations) in [
            ("rows and columns", vec![("pool", &[1][..], rows), ("pool", &[1], columns)]),
            ("columns behind a ReLU", behind("relu")),
            ("columns behind a private constant", behind("constant")),
            ("columns behind private factors", behind("scale")),
            (
                "columns of values of which half are added to others",
                added(&[("slice", &[2], top), ("pad", &[3], whole)]),
            ),
            (
                "columns behind a number that is broadcast",
                added(&[("average", &[2], [1, 1]), ("broadcast", &[3], whole)]),
            ),
            ("columns behind a convolution with one weight", behind("factor")),
            ("windows of windows", vec![("pool", &[1], half), ("pool", &[2], quarter)]),
            ("windows of averages", vec![("pool", &[1], half), ("average", &[1], half), ("pool", &[3], quarter)]),
            (
                "columns of values added to their ReLU",
                vec![("pool", &[1], rows), ("relu", &[1], whole), ("add", &[1, 3], whole), ("pool", &[4], columns)],
            ),
            ("windows of sums with what the client sees", [&sum[..], &[("relu", &[3], half)]].concat()),
            ("columns of a sum with the same unseen value", two_sums(&[7, 2])),
        ] {
            let error = refused(&operations).unwrap_or_else(|| panic!("{what} is planned"));
            assert!(error.contains("its windows overlap those of another pooling"), "{what}: {error}");
        }
        for (what, operations) in [
            ("one pooling", vec![("pool", &[1][..], half)]),
            ("another one behind a layer", vec![("pool", &[1], half), ("conv", &[2], half), ("pool", &[3], quarter)]),
            ("another one of sums with what the client does not see", sum),
            ("another one of sums with another value that the client does not see", two_sums(&[7, 3])),
            ("the client's own input", vec![("pool", &[0], rows), ("pool", &[0], columns)]),
        ] {
            assert_eq!(refused(&operations), None, "{what}");
        }
    }
}
