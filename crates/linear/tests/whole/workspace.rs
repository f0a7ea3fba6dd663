//! However little memory the server works in, the client gets the same messages and both the same shares.

use crate::support::{elements, prg, run_in, weights};
use privet_linear::{Conv2d, Diagonal, Keep, Layer, MatMul, Plan, Resharing, Workspace};

fn layers() -> Vec<Layer> {
    let conv = Conv2d {
        batch: 1,
        in_channels: 6,
        height: 90,
        width: 90,
        out_channels: 6,
        kernel: [3, 3],
        stride: [1, 1],
        padding: [1, 1, 1, 1],
        dilation: [1, 1],
        groups: 1,
    };
    vec![
        Layer::Conv2d(conv.clone()),
        Layer::Conv2d(Conv2d { groups: 2, ..conv.clone() }),
        Layer::Conv2d(Conv2d { groups: 6, batch: 3, ..conv }),
        Layer::Diagonal(Diagonal { len: 1000 }),
        Layer::MatMul(MatMul { rows: 3, inner: 9000, columns: 5 }),
    ]
}

#[test]
fn any_workspace_gives_the_product_in_the_same_messages() {
    for (seed, layer) in layers().iter().enumerate() {
        let plan = Plan::new(layer, 37, 12, Resharing::Approximate).unwrap();
        let mut prg = prg(seed as u8);
        let r = elements(plan.input_len(), 37, &mut prg);
        let w = weights(plan.weights_len(), 12, &mut prg);
        let expected = crate::support::apply(layer, &r, &w);
        for keep in [Keep::Transformed, Keep::Plain] {
            for sections in [1, 2, 3, 7, plan.sections(), usize::MAX] {
                let outcome = run_in(&plan, &r, &w, Workspace { keep, sections }, 1);
                assert_eq!(outcome.client_cost, plan.cost());
                for (i, expected) in expected.iter().enumerate() {
                    let sum = outcome.client[i].wrapping_add(outcome.server[i]);
                    let error = (sum.wrapping_sub(*expected) << 27) as i64 >> 27;
                    assert!(error.abs() <= 1, "{layer:?}, {keep:?}, {sections} sections: result {i} is off by {error}");
                }
            }
        }
    }
}

#[test]
fn layers_of_several_sections_are_tested() {
    let sections: Vec<usize> =
        layers().iter().map(|layer| Plan::new(layer, 37, 12, Resharing::Approximate).unwrap().sections()).collect();
    assert!(sections[..4].iter().all(|&sections| sections >= 3), "{sections:?}");
}

#[test]
fn memory_falls_with_the_sections_and_a_limit_is_kept() {
    let large = Conv2d {
        batch: 1,
        in_channels: 64,
        height: 224,
        width: 224,
        out_channels: 64,
        kernel: [3, 3],
        stride: [1, 1],
        padding: [1, 1, 1, 1],
        dilation: [1, 1],
        groups: 1,
    };
    let plan = Plan::new(&Layer::Conv2d(large), 37, 16, Resharing::Approximate).unwrap();
    let memory = |sections| plan.server_memory(Workspace { keep: Keep::Plain, sections }, 2).evaluating;
    let all: Vec<u64> = (1..=plan.sections()).map(memory).collect();
    assert!(all.is_sorted(), "{all:?}");
    // Results alone: 64 x 224 x 224 of 8 bytes.
    assert!(all[0] > 25_690_112 && all[0] < 60 << 20 && all[all.len() - 1] > 150 << 20, "{all:?}");
    let limit = all[2];
    let within = Workspace::within(&plan, Keep::Plain, 2, limit);
    assert_eq!(within.sections, 3);
    assert_eq!(Workspace::within(&plan, Keep::Plain, 2, 0).sections, 1);
    assert!(memory(Workspace::standard(&plan).sections) < 180 << 20);
}
