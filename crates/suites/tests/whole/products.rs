//! Products of two private tensors: what is opened, by whom they are refused, and what an adversary sees of their operands.

use std::io::{Write, sink};

use privet_channel::record::{self, Direction};
use privet_channel::tamper::{self, Action};
use privet_channel::{Channel, pair};
use privet_ot::{BaseOts, Role};
use privet_prg::Prg;
use privet_ring::Modulus;
use privet_seal::Stored;
use privet_suites::sharing::{self, Maker, Material, Options, Plan, Rounds, Truncation, WeightMask};
use privet_suites::{Error, Report, Silent};

use crate::parties::{GRAM, PATIENCE, PRODUCTS, both, head};

const FSS: Options = Options::fss(Truncation::Exact);

/// Without a dealer.
const ALONE: Options = Options::gmw(Rounds::Log, Truncation::Exact);

const DEALT: Options = Options { maker: Maker::Dealer, ..ALONE };

/// Material of a plan without linear layers and without keys.
fn material(plan: &Plan) -> Halves {
    if !plan.is_dealt() {
        return made(plan);
    }
    let ((mut near, mut dealer_near), (mut far, mut dealer_far)) = (pair(), pair());
    let no_weights = |index| Err(Error::Misuse(format!("there is no layer {index}")));
    let mask = WeightMask::from_seed(Prg::from_os().expect("entropy").seed());
    let (halves, dealt) = both(
        || {
            both(
                || {
                    sharing::prepare_client_dealt(&mut near, plan, &mut { no_weights }, &mut sink(), &mut Silent)
                        .map(|result| result.0)
                },
                || {
                    sharing::prepare_server_dealt(&mut far, plan, &mask, &mut sink(), &mut Silent)
                        .map(|result| result.0)
                },
            )
        },
        || sharing::deal(&mut dealer_near, &mut dealer_far, plan),
    );
    dealt.expect("a deal");
    (head(&halves.0.expect("material"), plan), head(&halves.1.expect("material"), plan))
}

/// Material that the two parties make.
fn made(plan: &Plan) -> Halves {
    let ((mut near, mut far), model) = (pair(), GRAM.model(plan));
    let (client, server) = both(
        || {
            sharing::prepare_client(&mut near, plan, &mut BaseOts::default(), None, &mut std::io::sink(), &mut Silent)
                .map(|result| result.0)
        },
        || {
            sharing::prepare_server(
                &mut far,
                plan,
                (plan.extension(), &mut BaseOts::default()),
                &model,
                None,
                &mut std::io::sink(),
                &mut Silent,
            )
            .map(|result| result.0)
        },
    );
    (head(&client.expect("material"), plan), head(&server.expect("material"), plan))
}

/// Both halves as they lie in the store.
type Halves = (Vec<u8>, Vec<u8>);

/// What a client gets.
type Predicted = (Vec<Vec<i64>>, Report);

/// The client's half, of its stored form.
fn clients(plan: &Plan, bytes: &[u8]) -> Result<Material, Error> {
    Material::read(file(bytes), plan, Role::Client)
}

fn file(bytes: &[u8]) -> Stored {
    let mut file = tempfile::tempfile().expect("a file");
    file.write_all(bytes).expect("room on the disk");
    Stored::plain(file)
}

fn infer(
    [mut near, mut far]: [Channel; 2],
    plan: &Plan,
    (client_half, server_half): &Halves,
    inputs: &[Vec<i64>],
) -> (Result<Predicted, Error>, Result<Report, Error>) {
    let model = GRAM.model(plan);
    let client_half = clients(plan, client_half).expect("the client's half");
    let server_half = Material::read(file(server_half), plan, Role::Server).expect("the server's half");
    both(
        move || sharing::infer_client(&mut near, plan, client_half, inputs, &mut Vec::new(), &mut Silent),
        move || sharing::infer_server(&mut far, plan, &model, server_half, &mut Vec::new(), &mut Silent),
    )
}

/// The opening of the one product, as either party learns it: the sum of both messages.
fn opening(plan: &Plan, material: &Halves, inputs: &[Vec<i64>]) -> Vec<u64> {
    let (near, far, transcript) = record::pair();
    let (client, server) = infer([near, far], plan, material, inputs);
    GRAM.case.check(&client.expect("an inference").0, plan.options());
    server.expect("an inference");
    let (ring, len) = (Modulus::new(plan.program().ring_bits()), inputs[0].len());
    let transcript = transcript.lock().expect("no thread panicked");
    let parts = [Direction::FirstToSecond, Direction::SecondToFirst].map(|direction| {
        let first = transcript.payloads(direction).next().expect("a message");
        ring.unpack(first, len).expect("a masked operand")
    });
    ring.add(&parts[0], &parts[1])
}

/// What an adversary who sees openings of two runs makes of them: the difference of the operands, if the masks are the same.
fn difference(plan: &Plan, openings: [Vec<u64>; 2]) -> Vec<u64> {
    Modulus::new(plan.program().ring_bits()).sub(&openings[0], &openings[1])
}

#[test]
fn openings_of_two_runs_tell_nothing_and_of_one_material_used_twice_they_tell_that_inputs_agree() {
    for options in [DEALT, FSS, ALONE] {
        let (plan, inputs) = (GRAM.plan(options), &GRAM.case.inputs);
        let fresh = [(); 2].map(|()| opening(&plan, &material(&plan), inputs));
        let apart = difference(&plan, fresh);
        assert!(apart.iter().filter(|&&difference| difference == 0).count() < 2);
        let bits = apart.len() as f64 * f64::from(plan.program().ring_bits());
        let ones = apart.iter().map(|difference| f64::from(difference.count_ones())).sum::<f64>();
        assert!((ones - bits / 2.0).abs() < 3.0 * bits.sqrt(), "{ones} of {bits} bits");
    }
    // The control: halves that are kept and used again.
    for options in [DEALT, FSS, ALONE] {
        let (plan, inputs) = (GRAM.plan(options), &GRAM.case.inputs);
        let material = material(&plan);
        let reused = [(); 2].map(|()| opening(&plan, &material, inputs));
        assert!(difference(&plan, reused).iter().all(|&difference| difference == 0));
    }
}

/// Whether ones and zeros are about as many.
fn balanced(bytes: &[u8]) -> bool {
    let (bits, ones) = (8.0 * bytes.len() as f64, bytes.iter().map(|byte| f64::from(byte.count_ones())).sum::<f64>());
    (ones - bits / 2.0).abs() < 3.0 * bits.sqrt()
}

#[test]
fn each_partys_part_of_a_product_of_masks_is_fresh_and_balanced() {
    for options in [DEALT, FSS, ALONE] {
        let plan = GRAM.plan(options);
        let product = plan.program().value(plan.program().outputs()[0].value).len();
        // A head begins with the seed of the masks, as no layer is linear.
        let guard = if plan.is_dealt() { 0 } else { options.guard_bits() };
        let part = 16..16 + Modulus::new(plan.program().ring_bits() + guard).packed_bytes(product);
        let (first, second) = (material(&plan), material(&plan));
        for [one, other] in [[&first.0, &second.0], [&first.1, &second.1], [&first.0, &first.1]] {
            let (one, other) = (&one[part.clone()], &other[part.clone()]);
            let apart: Vec<u8> = one.iter().zip(other).map(|(one, other)| one ^ other).collect();
            assert!([one, other, apart.as_slice()].into_iter().all(balanced));
        }
    }
}

#[test]
fn a_value_is_opened_once_whatever_products_read_it() {
    for options in [DEALT, FSS, ALONE] {
        let plan = GRAM.plan(options);
        let (near, far) = pair();
        let (client, _) = infer([near, far], &plan, &material(&plan), &GRAM.case.inputs);
        let report = client.expect("an inference").1;
        let sent = report.layers.iter().filter(|layer| layer.operator == "matmul").map(|layer| layer.bytes_sent);
        // The input and its transpose are one value.
        let opened = Modulus::new(plan.program().ring_bits()).packed_bytes(GRAM.case.inputs[0].len());
        assert_eq!(sent.sum::<u64>(), opened as u64 + 5);
    }
}

#[test]
fn products_are_refused_by_name_where_linear_layers_run_online_or_in_a_field() {
    let refused = Options::made().filter(|options| options.is_prime()).chain(Options::one_shot());
    for options in refused {
        match Plan::new(PRODUCTS.program(), options) {
            Err(Error::Misuse(text)) => assert!(text.contains("scores (matmul)") && text.contains("offline"), "{text}"),
            _ => panic!("{options:?} plans a product"),
        }
    }
}

/// An inference on `fixture` of which one message is altered.
fn altered(plan: &Plan, message: usize, action: Action) -> Vec<Error> {
    let (mut near, far, _) = tamper::pair(message, action);
    near.set_timeout(PATIENCE);
    let (client, server) = infer([near, far], plan, &material(plan), &GRAM.case.inputs);
    [client.err(), server.err()].into_iter().flatten().collect()
}

#[test]
fn openings_of_another_length_are_the_peers_fault() {
    let plan = GRAM.plan(DEALT);
    for action in [Action::Shorten { by: 1 }, Action::Shorten { by: usize::MAX }, Action::Lengthen { by: 1 }] {
        let errors = altered(&plan, 0, action.clone());
        assert!(errors.iter().any(Error::is_the_peers_fault), "{action:?}: {errors:?}");
    }
}

#[test]
fn material_of_another_length_is_refused() {
    let plan = GRAM.plan(DEALT);
    let (head, _) = material(&plan);
    for len in [0, 10, 16, 40] {
        assert!(matches!(clients(&plan, &head[..len]), Err(Error::Misuse(_))), "{len} bytes");
    }
}
