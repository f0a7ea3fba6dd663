//! A public half comes from the server: whatever is written in it, a client soon gets an error or a plan, and no panic.

use std::panic::{AssertUnwindSafe, catch_unwind};

use std::time::{Duration, Instant};

use privet_program::Program;
use privet_suites::config::Config as _;
use privet_suites::sharing::{Options, Plan};
use privet_suites::{malicious, stream};
use serde_json::{Value, json};

use crate::parties::{CHOICE, Fixture, PRODUCTS, RESIDUAL};

/// Far above what planning takes.
const SOON: Duration = Duration::from_secs(20);

/// Numbers and other things that a field may be set to.
fn replacements() -> Vec<Value> {
    let numbers = [-1, 0, 1, 2, 3, 7, 17, 63, 64, 65, 1 << 16, 1 << 31, 1 << 40, i64::MAX, i64::MIN];
    let others = [json!(null), json!(1.5), json!(u64::MAX), json!("x"), json!([]), json!({}), json!([1, 1, 1, 1])];
    numbers.map(|number| json!(number)).into_iter().chain(others).collect()
}

/// Paths to every leaf, list and object below `value`.
fn places(value: &Value, path: &str, paths: &mut Vec<String>) {
    paths.push(path.to_owned());
    match value {
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, item)| places(item, &format!("{path}/{index}"), paths));
        }
        Value::Object(fields) => fields.iter().for_each(|(key, item)| places(item, &format!("{path}/{key}"), paths)),
        _ => {}
    }
}

/// Plans what `bytes` describe, with all options; whether there is a plan.
fn plans(bytes: &[u8]) -> bool {
    let Ok(program) = Program::parse(bytes) else { return false };
    for config in malicious::Config::all() {
        if let Ok(plan) = malicious::Plan::new(program.clone(), config) {
            plan.forecast();
            plan.security();
        }
    }
    for cipher in stream::Cipher::ALL {
        if let Ok(plan) = stream::Plan::new(program.clone(), cipher) {
            plan.forecast();
            plan.security();
        }
    }
    Options::made().chain(Options::dealt()).all(|options| match Plan::new(program.clone(), options) {
        Ok(plan) => {
            plan.forecast();
            true
        }
        Err(_) => false,
    })
}

fn assert_no_panic(fixture: &Fixture, kind: &str, edits: impl Iterator<Item = (String, Vec<u8>)>) {
    let (mut tried, mut planned) = (0, 0);
    for (name, bytes) in edits {
        let started = Instant::now();
        match catch_unwind(AssertUnwindSafe(|| plans(&bytes))) {
            Ok(plan) => planned += usize::from(plan),
            Err(_) => panic!("{}: {kind}: {name} panics", fixture.program().model()),
        }
        assert!(started.elapsed() < SOON, "{kind}: {name} takes {:?}", started.elapsed());
        tried += 1;
    }
    assert!(tried > 100 && planned < tried, "{kind}: {planned} of {tried} plans");
}

#[test]
fn no_changed_field_makes_a_client_panic() {
    for fixture in [&*RESIDUAL, &*CHOICE] {
        let document: Value = serde_json::from_slice(&fixture.public).expect("JSON");
        let mut paths = Vec::new();
        places(&document, "", &mut paths);
        let variants = paths.iter().flat_map(|path| {
            let document = &document;
            replacements().into_iter().map(move |value| {
                let mut variant = document.clone();
                let name = format!("{path} = {value}");
                *variant.pointer_mut(path).expect("a place") = value;
                (name, variant.to_string().into_bytes())
            })
        });
        assert_no_panic(fixture, "changed", variants);
    }
}

#[test]
fn no_missing_field_and_no_cut_makes_a_client_panic() {
    let document: Value = serde_json::from_slice(&RESIDUAL.public).expect("JSON");
    let mut paths = Vec::new();
    places(&document, "", &mut paths);
    let missing = paths.iter().skip(1).map(|path| {
        let mut variant = document.clone();
        let (parent, key) = path.rsplit_once('/').expect("below the root");
        match variant.pointer_mut(parent).expect("a place") {
            Value::Object(fields) => drop(fields.remove(key)),
            Value::Array(items) => drop(items.remove(key.parse().expect("an index"))),
            _ => unreachable!("leaves have nothing below them"),
        }
        (path.clone(), variant.to_string().into_bytes())
    });
    assert_no_panic(&RESIDUAL, "missing", missing);
    let cuts = (0..RESIDUAL.public.len()).map(|end| (format!("cut at {end}"), RESIDUAL.public[..end].to_vec()));
    assert_no_panic(&RESIDUAL, "cut", cuts);
}

#[test]
fn results_that_nothing_reads_make_no_client_panic() {
    let document: Value = serde_json::from_slice(&PRODUCTS.public).expect("JSON");
    let values = document["values"].as_array().expect("values").len();
    let mut planned = 0;
    // What only leads to later values is read by nothing then, products among it.
    for value in 0..values {
        let mut variant = document.clone();
        variant["outputs"][0]["value"] = json!(value);
        let program = Program::parse(variant.to_string().as_bytes()).expect("a program");
        for options in Options::made().chain(Options::dealt()) {
            if let Ok(plan) = Plan::new(program.clone(), options) {
                plan.forecast();
                plan.security();
                planned += 1;
            }
        }
    }
    assert!(planned > values, "{planned} plans");
}
