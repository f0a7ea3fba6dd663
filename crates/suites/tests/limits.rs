//! Programs of a server that means ill: everything at its limit at once. Reading and planning take neither time nor memory by
//! numbers of elements. A test binary of its own, because it measures what its process takes.

use std::fmt::Write;
use std::time::Duration;

use privet_channel::Link;
use privet_linear::Keep;
use privet_program::{MAX_BYTES, MAX_LINEAR, MAX_LINES, MAX_OPERATIONS, Program};
use privet_suites::sharing::{Plan, Rounds};
use privet_suites::{registry, stream};

/// A public half of these values (shapes) and operations (JSON without name, inputs and output), one after the other.
fn chain(first: &[usize], operations: &[(String, Vec<usize>)]) -> Vec<u8> {
    let mut values = format!(r#"{{"scale":12,"shape":{first:?}}}"#);
    let mut steps = String::new();
    for (index, (operation, shape)) in operations.iter().enumerate() {
        write!(values, r#",{{"scale":12,"shape":{shape:?}}}"#).expect("a string");
        let comma = if index > 0 { "," } else { "" };
        let output = index + 1;
        write!(steps, r#"{comma}{{{operation},"name":"{index}","inputs":[{index}],"output":{output}}}"#)
            .expect("a string");
    }
    let last = operations.len();
    let commitment = "00".repeat(32);
    format!(
        r#"{{"format":"privet-program","version":1,"model":"bomb","ring_bits":37,"scale_bits":12,"weight_bits":12,
        "weights_commitment":"{commitment}","inputs":[{{"name":"x","value":0,"magnitude":8.0}}],
        "outputs":[{{"name":"y","value":{last},"client":null}}],"values":[{values}],"operations":[{steps}]}}"#
    )
    .into_bytes()
}

fn cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// The most memory that this process ever had, in bytes.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux tells it");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a line for it");
    1024 * line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number")
}

/// Plans in every `step`th way, each with what a client asks a plan before it runs it; the longest processor time, and how
/// many ways there are for the program.
fn planned(public: &[u8], step: usize) -> (Duration, usize) {
    let mut longest = Duration::ZERO;
    let mut ways = 0;
    for config in registry::configs().step_by(step) {
        let began = cpu();
        let program = Program::parse(public).expect("a program within the limits");
        if let Ok(plan) = config.plan(program, Link::LAN) {
            let memory = plan.check_client_memory(1 << 20, 2).is_err();
            ways += usize::from(memory && plan.forecast().online_rounds > 0 && plan.entry_bytes().0 > 0);
        }
        longest = longest.max(cpu() - began);
    }
    for cipher in stream::Cipher::ALL {
        let began = cpu();
        let program = Program::parse(public).expect("a program within the limits");
        if let Ok(plan) = stream::Plan::new(program, cipher) {
            ways += usize::from(plan.forecast().encryptions > 0);
        }
        longest = longest.max(cpu() - began);
    }
    (longest, ways)
}

fn relu() -> String {
    r#""op":"relu""#.into()
}

/// As many functions, of 4096 lines each.
fn functions(count: usize) -> Vec<u8> {
    let function = r#""op":"piecewise","steps":[{"name":"exp","operands":[0]}],"low":0,"bits":16,"index_bits":12"#;
    chain(&[1, 64], &vec![(function.into(), vec![1, 64]); count])
}

/// A program for which something of each kind is at its limit.
fn bombs() -> Vec<(&'static str, Vec<u8>)> {
    let wide = vec![1, 16, 4096, 4096];
    let many = vec![1, 16, 256, 256];
    let pool = |kernel: usize, stride: usize, padding: usize| {
        format!(
            r#""op":"max_pool2d","kernel":[{kernel},{kernel}],"stride":[{stride},{stride}],"padding":[{padding},{padding},{padding},{padding}],"dilation":[1,1]"#
        )
    };
    let conv = |channels: usize, kernel: usize| {
        format!(
            r#""op":"conv2d","weight":"w","weight_shape":[{channels},{channels},{kernel},{kernel}],"bias":null,"stride":[1,1],"padding":[1,1,1,1],"dilation":[1,1],"groups":1"#
        )
    };
    let depthwise = r#""op":"conv2d","weight":"w","weight_shape":[64,1,3,3],"bias":null,"stride":[1,1],"padding":[1,1,1,1],"dilation":[1,1],"groups":64"#;
    vec![
        ("eight ReLUs of the widest", chain(&wide, &vec![(relu(), wide.clone()); 8])),
        ("fewer of the widest", chain(&[1, 1, 1 << 14, 1 << 14], &vec![(relu(), vec![1, 1, 1 << 14, 1 << 14]); 1])),
        ("as many operations as there may be", chain(&many, &vec![(relu(), many.clone()); MAX_OPERATIONS - 1])),
        (
            "truncations that each take an extension",
            chain(&[1, 1, 64, 64], &vec![(r#""op":"truncate","bits":1"#.into(), vec![1, 1, 64, 64]); MAX_OPERATIONS]),
        ),
        ("a pool of many windows", chain(&wide, &[(pool(2, 2, 0), vec![1, 16, 2048, 2048])])),
        ("pools whose windows overlap", chain(&many, &vec![(pool(3, 1, 1), many.clone()); 400])),
        (
            "the place of the largest of many",
            chain(
                &[1 << 14, 1 << 14],
                &[(r#""op":"argmax","axis":1,"keepdims":false,"select_last":false"#.into(), vec![1 << 14])],
            ),
        ),
        (
            "convolutions of a shape with many ways to tile it",
            chain(&[1, 16, 180, 180], &vec![(conv(16, 3), vec![1, 16, 180, 180]); MAX_LINEAR]),
        ),
        ("functions of as many lines as there may be", functions(MAX_LINES >> 12)),
        (
            "convolutions of channels apart",
            chain(&[1, 64, 90, 90], &vec![(depthwise.into(), vec![1, 64, 90, 90]); MAX_LINEAR]),
        ),
    ]
}

#[test]
fn a_program_at_the_limits_is_planned_at_once() {
    planned_at_once(11);
}

#[test]
#[ignore = "every way, in a minute"]
fn a_program_at_the_limits_is_planned_at_once_in_every_way() {
    planned_at_once(1);
}

fn planned_at_once(step: usize) {
    let before = peak();
    for (what, public) in bombs() {
        let (longest, ways) = planned(&public, step);
        println!("{what}: {longest:?}, {ways} ways, {} bytes", public.len());
        // A third of a second by itself; other programs on the same machine slow its caches down.
        assert!(longest < Duration::from_secs(1), "{what}: {longest:?}");
        assert!(ways > 0, "{what} is planned in no way");
    }
    let bytes = peak() - before;
    println!("{} MB more than before", bytes >> 20);
    assert!(bytes < 50 << 20, "{bytes} bytes");
}

#[test]
fn a_program_beyond_the_limits_is_refused_with_the_reason() {
    let small = vec![1, 1, 8, 8];
    let widest = vec![1, 16, 4096, 4096];
    let conv = |kernel: usize, padding: usize| {
        format!(
            r#""op":"conv2d","weight":"w","weight_shape":[1,1,{kernel},{kernel}],"bias":null,"stride":[1,1],"padding":[{padding},{padding},{padding},{padding}],"dilation":[1,1],"groups":1"#
        )
    };
    let refused = |public: Vec<u8>, why: &str| {
        let error = Program::parse(&public).expect_err(why).to_string();
        assert!(error.contains(why), "{error}");
    };
    refused(chain(&small, &vec![(relu(), small.clone()); MAX_OPERATIONS + 1]), "more than 4096");
    refused(chain(&small, &vec![(conv(3, 1), small.clone()); MAX_LINEAR + 1]), "513 have weights, more than 512");
    refused(functions((MAX_LINES >> 12) + 1), "528384 lines in all, more than 524288");
    refused(chain(&widest, &vec![(relu(), widest.clone()); 16]), "4563402752 elements in all");
    refused(chain(&small, &[(conv(1025, 512), small.clone())]), "a kernel of 1025, more than 1024");
    refused(chain(&small, &[(conv(1 << 15, 1 << 14), small.clone())]), "out of bounds");
    let joined = format!(r#""inputs":[{}0]"#, "0,".repeat(4 * MAX_OPERATIONS));
    let long = String::from_utf8(chain(&small, &[(relu(), small.clone())])).expect("text");
    refused(long.replacen(r#""inputs":[0]"#, &joined, 1).into_bytes(), "more than 16384 inputs of operations");
    let mut padded = long.into_bytes();
    padded.resize(MAX_BYTES + 1, b' ');
    refused(padded, "4194305 bytes, more than the 4194304");

    // Eight ReLUs of the widest are within the limits of a file, and far beyond those of an inference.
    let program = Program::parse(&chain(&widest, &vec![(relu(), widest.clone()); 8])).expect("a program");
    let config = registry::configs().next().expect("the first choice");
    let error = config.plan(program, Link::LAN).err().expect("too much").to_string();
    assert!(error.contains("oblivious transfers") && error.contains("34359738368 is the most"), "{error}");
}

#[test]
fn transformed_weights_of_many_layers_are_kept_up_to_a_gibibyte() {
    let dense = r#""op":"dense","weight":"w","weight_shape":[1920,1920],"bias":null"#;
    let public = chain(&[1, 1920], &vec![(dense.into(), vec![1, 1920]); 40]);
    let plan = Plan::new(Program::parse(&public).expect("a program"), Rounds::Linear).expect("a plan");
    let resting = |workspaces: &[_]| plan.server_memory(workspaces, 2).resting;
    let [all, none] = [Keep::Transformed, Keep::Plain].map(|keep| resting(&plan.workspaces_keeping(keep)));
    let some = resting(&plan.standard_workspaces());
    assert!(all > 2 << 30, "{all}: no layer would give way");
    assert!(some > none && some < none + (1200 << 20), "{some} of {none} to {all}");
}
