//! docs/reference/security-parameters.md shows the parameters that are chosen.

use std::fmt::Write;

use crate::{Parameters, Resharing};

const PAGE: &str = include_str!("../../../../docs/reference/security-parameters.md");

/// Results of an inference: as many as those of VGG-16 on CIFAR-10.
const RESULTS: usize = 1 << 18;

/// The page's columns but the last, an estimate that a Python test compares.
fn rows() -> String {
    let mut rows = String::new();
    for (name, resharing) in [("approximate", Resharing::Approximate), ("exact", Resharing::Exact)] {
        for ring_bits in [32, 37, 41, 45] {
            for (weight_bits, inner) in [(12, 512), (16, 784), (16, 4608)] {
                // Floods of the widest rings leave no room for the heaviest layers.
                let Ok(parameters) = Parameters::choose(ring_bits, weight_bits, inner, RESULTS, resharing) else {
                    assert!(ring_bits >= 41 && resharing == Resharing::Exact, "{ring_bits} bits, {inner} products");
                    continue;
                };
                let degree = parameters.degree();
                let bits: u32 = parameters.prime_bits().iter().sum();
                let limit = if degree == 4096 { 106 } else { 214 };
                writeln!(rows, "| {name} | {ring_bits} | {weight_bits} | {inner} | {degree} | {bits} | {limit} |")
                    .unwrap();
                assert!(bits <= limit);
            }
        }
    }
    rows
}

#[test]
fn the_page_shows_the_parameters_that_are_chosen() {
    let table = PAGE.split_once("<!-- bfv -->\n").and_then(|(_, rest)| rest.split_once("<!-- end -->")).unwrap().0;
    let shown: String = table
        .lines()
        .skip(2)
        .map(|row| row.trim_end_matches(" |").rsplit_once('|').unwrap().0.to_owned() + "|\n")
        .collect();
    let chosen = rows();
    assert!(
        shown == chosen,
        "put these rows, with a last column, into the page and run `python -m scripts.security_tables`:\n{chosen}"
    );
}
