//! Peers that leave or send nonsense, and callers that are wrong: typed errors, no panic, no hanging.

use crate::support::{against, prg};
use privet_bfv::Misuse as BfvMisuse;
use privet_channel::{AbortReason, Io, PeerMisbehaved as Link};
use privet_linear::{
    ClientKeys, Conv2d, Diagonal, Error, Layer, MatMul, Misuse, PeerMisbehaved, Plan, PublicKey, Resharing,
};
use privet_linear::{TransformedWeights, Workspace, decrypt, encrypt, evaluate, receive_public_key};

fn plan() -> Plan {
    Plan::new(&Layer::MatMul(MatMul { rows: 1, inner: 100, columns: 60 }), 37, 16, Resharing::Approximate).unwrap()
}

/// Channels in blocks of their own: read and multiplied by other code.
fn plan_of_blocks() -> Plan {
    let layer = Layer::MatMul(MatMul { rows: 200, inner: 60, columns: 60 });
    let plan = Plan::new(&layer, 37, 16, Resharing::Approximate).unwrap();
    assert_eq!(plan.weight_polynomials(), 0);
    plan
}

/// A channel to a ciphertext, which is read when it is multiplied.
fn plan_of_single_products() -> Plan {
    let layer = Layer::Conv2d(Conv2d {
        batch: 1,
        in_channels: 4,
        height: 50,
        width: 50,
        out_channels: 4,
        kernel: [3, 3],
        stride: [1, 1],
        padding: [1, 1, 1, 1],
        dilation: [1, 1],
        groups: 4,
    });
    let plan = Plan::new(&layer, 37, 16, Resharing::Approximate).unwrap();
    assert_eq!((plan.products(), plan.weight_polynomials(), plan.input_ciphertexts()), (4, 4, 4));
    plan
}

fn keys(plan: &Plan) -> ClientKeys {
    ClientKeys::generate(plan.parameters(), &mut prg(1))
}

fn public(plan: &Plan) -> PublicKey {
    let receive = |channel: &mut _| receive_public_key(channel, plan.parameters());
    against(receive, |peer| keys(plan).send_public_key(peer, &mut prg(2)).unwrap()).unwrap()
}

fn ones(plan: &Plan) -> TransformedWeights {
    TransformedWeights::new(plan, &vec![1; plan.weights_len()], Workspace::standard(plan)).unwrap()
}

/// Runs the server against a client that sends these bytes as its first message.
fn serve(plan: &Plan, message: &[u8]) -> Error {
    let (key, weights) = (public(plan), ones(plan));
    let evaluate = |channel: &mut _| evaluate(channel, plan, &key, &weights, &mut prg(3));
    // By the end of a long message the server may have refused its beginning, and left.
    let send = |peer: &mut privet_channel::Channel| match peer.send(message) {
        Ok(()) => {}
        Err(error) => assert_eq!(error, Io::Disconnected.into()),
    };
    against(evaluate, send).unwrap_err()
}

/// The client's valid first message.
fn valid(plan: &Plan) -> Vec<u8> {
    let bytes = plan.cost().bytes_sent as usize - 5;
    assert_eq!(plan.cost().messages_sent, 1);
    let receive = |channel: &mut privet_channel::Channel| Ok(channel.recv(bytes)?);
    against(receive, |peer| encrypt(peer, plan, &keys(plan), &vec![7; plan.input_len()], &mut prg(4)).unwrap()).unwrap()
}

#[test]
fn the_server_names_messages_of_the_wrong_length() {
    for plan in [plan(), plan_of_blocks(), plan_of_single_products()] {
        let message = valid(&plan);
        for length in [0, 1, 16, message.len() - 1, message.len() + 1, 2 * message.len()] {
            let mut cut = message.clone();
            cut.resize(length, 0);
            let expected = Link::WrongLength { expected: message.len(), actual: length };
            assert_eq!(serve(&plan, &cut), PeerMisbehaved::Message(expected).into());
        }
    }
}

#[test]
fn the_server_names_residues_that_are_not_reduced() {
    for plan in [plan(), plan_of_blocks(), plan_of_single_products()] {
        let message = valid(&plan);
        // Of the first ciphertext and of the last.
        for place in [16..80, message.len() - 64..message.len()] {
            let mut message = message.clone();
            message[place].fill(0xff);
            let error = serve(&plan, &message);
            assert!(matches!(error, Error::PeerMisbehaved(PeerMisbehaved::Ciphertext(_))), "{error}");
        }
    }
}

#[test]
fn the_server_reports_a_client_that_leaves_or_aborts() {
    for plan in [plan(), plan_of_blocks(), plan_of_single_products()] {
        let (key, weights) = (public(&plan), ones(&plan));
        let evaluate = |channel: &mut _| evaluate(channel, &plan, &key, &weights, &mut prg(3));
        assert_eq!(against(evaluate, |_| ()).unwrap_err(), Error::Io(Io::Disconnected));
        let aborted = against(evaluate, |peer| peer.abort(AbortReason::Busy)).unwrap_err();
        let expected = Link::Aborted { reason: AbortReason::Busy, text: String::new() };
        assert_eq!(aborted, PeerMisbehaved::Message(expected).into());
    }
}

#[test]
fn the_client_names_replies_of_the_wrong_length_or_form() {
    let plan = plan();
    let keys = keys(&plan);
    let bytes = plan.cost().bytes_received as usize - 5;
    assert_eq!(plan.cost().messages_received, 1);
    let decrypt = |channel: &mut _| decrypt(channel, &plan, &keys);
    for length in [0, bytes - 1, bytes + 1] {
        let error = against(decrypt, |peer| peer.send(&vec![0; length]).unwrap()).unwrap_err();
        assert_eq!(error, PeerMisbehaved::Message(Link::WrongLength { expected: bytes, actual: length }).into());
    }
    // 60 results of 45 bits end in the middle of a byte.
    assert_ne!(60 * plan.parameters().reply_bits() % 8, 0);
    let error = against(decrypt, |peer| peer.send(&vec![0xff; bytes]).unwrap()).unwrap_err();
    assert!(matches!(error, Error::PeerMisbehaved(PeerMisbehaved::Ciphertext(_))), "{error}");
    assert_eq!(against(decrypt, |_| ()).unwrap_err(), Error::Io(Io::Disconnected));
}

#[test]
fn public_keys_are_checked() {
    let plan = plan();
    let receive = |channel: &mut _| receive_public_key(channel, plan.parameters()).map(drop);
    let bytes = plan.parameters().public_key_bytes();
    for message in [vec![], vec![0; bytes - 1], vec![0xff; bytes]] {
        let error = against(receive, |peer| peer.send(&message).unwrap()).unwrap_err();
        assert!(matches!(error, Error::PeerMisbehaved(_)), "{error}");
    }
}

#[test]
fn keys_of_merging_and_merged_replies_are_checked() {
    let layer = Layer::MatMul(MatMul { rows: 64, inner: 128, columns: 1024 });
    let plan = Plan::new(&layer, 39, 12, Resharing::Approximate).unwrap();
    assert!(plan.folds() > 0);
    let bytes = plan.parameters().public_key_bytes();
    let send = |peer: &mut privet_channel::Channel| keys(&plan).send_public_key(peer, &mut prg(2)).unwrap();
    let valid = against(|channel| Ok(channel.recv(bytes)?), send).unwrap();
    let receive = |message: &[u8]| {
        let receive = |channel: &mut _| receive_public_key(channel, plan.parameters()).map(drop);
        against(receive, |peer| drop(peer.send(message)))
    };
    // Who is refused may notice while it sends: messages are long.
    assert_eq!(receive(&valid), Ok(()));
    // The public key alone, and a byte too few.
    for length in [plan.parameters().ciphertext_bytes(), bytes - 1] {
        let expected = Link::WrongLength { expected: bytes, actual: length };
        assert_eq!(receive(&valid[..length]), Err(PeerMisbehaved::Message(expected).into()));
    }
    // Behind the seed of the first level, and at the end of the last.
    for at in [plan.parameters().ciphertext_bytes() + 16, bytes - 8] {
        let mut message = valid.clone();
        message[at..at + 8].fill(0xff);
        let error = receive(&message).unwrap_err();
        assert!(matches!(error, Error::PeerMisbehaved(PeerMisbehaved::Ciphertext(_))), "{error}");
    }

    let keys = keys(&plan);
    let bytes = plan.cost().bytes_received as usize - 5;
    assert_eq!(plan.cost().messages_received, 1);
    for length in [0, bytes - 1, bytes + 1] {
        let decrypt = |channel: &mut _| decrypt(channel, &plan, &keys);
        let error = against(decrypt, |peer| drop(peer.send(&vec![0; length]))).unwrap_err();
        assert_eq!(error, PeerMisbehaved::Message(Link::WrongLength { expected: bytes, actual: length }).into());
    }
}

fn refused<T>(result: Result<T, Error>) -> Misuse {
    match result.map(drop) {
        Err(Error::Misuse(misuse)) => misuse,
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn vectors_of_the_wrong_length_and_weights_too_large_are_refused() {
    let plan = plan();
    let (mut channel, _peer) = privet_channel::pair();
    let wrong = refused(encrypt(&mut channel, &plan, &keys(&plan), &[0; 99], &mut prg(1)));
    assert_eq!(wrong, Misuse::WrongLength { what: "r", expected: 100, actual: 99 });
    let workspace = Workspace::standard(&plan);
    let wrong = refused(TransformedWeights::new(&plan, &[0; 5999], workspace));
    assert_eq!(wrong, Misuse::WrongLength { what: "weights", expected: 6000, actual: 5999 });
    for weight in [1 << 16, -(1 << 16), i64::MAX, i64::MIN] {
        let mut weights = vec![0; 6000];
        weights[17] = weight;
        assert_eq!(
            refused(TransformedWeights::new(&plan, &weights, workspace)),
            Misuse::WeightTooLarge { index: 17, weight_bits: 16 }
        );
        weights[17] = weight.signum() * ((1 << 16) - 1);
        assert!(TransformedWeights::new(&plan, &weights, workspace).is_ok());
    }
}

#[test]
fn keys_and_weights_of_another_plan_are_refused() {
    let (plan, other_plan) =
        (plan(), Plan::new(&Layer::Diagonal(Diagonal { len: 9 }), 30, 8, Resharing::Approximate).unwrap());
    let (mut channel, _peer) = privet_channel::pair();
    let differ = |what| Misuse::PlansDiffer { what };
    assert_eq!(refused(encrypt(&mut channel, &plan, &keys(&other_plan), &[0; 100], &mut prg(1))), differ("keys"));
    assert_eq!(refused(decrypt(&mut channel, &plan, &keys(&other_plan))), differ("keys"));
    let weights = TransformedWeights::new(&plan, &vec![0; 6000], Workspace::standard(&plan)).unwrap();
    assert_eq!(refused(evaluate(&mut channel, &plan, &public(&other_plan), &weights, &mut prg(1))), differ("keys"));
    assert_eq!(
        refused(evaluate(&mut channel, &other_plan, &public(&other_plan), &weights, &mut prg(1))),
        differ("weights")
    );
}

#[test]
fn impossible_layers_are_refused() {
    let conv = Conv2d {
        batch: 1,
        in_channels: 4,
        height: 8,
        width: 8,
        out_channels: 4,
        kernel: [3, 3],
        stride: [1, 1],
        padding: [0; 4],
        dilation: [1, 1],
        groups: 1,
    };
    let refusal = |conv: Conv2d| refused(Plan::new(&Layer::Conv2d(conv), 37, 16, Resharing::Approximate));
    for zero in [
        Conv2d { batch: 0, ..conv.clone() },
        Conv2d { in_channels: 0, ..conv.clone() },
        Conv2d { height: 0, ..conv.clone() },
        Conv2d { out_channels: 0, ..conv.clone() },
        Conv2d { kernel: [3, 0], ..conv.clone() },
        Conv2d { stride: [0, 1], ..conv.clone() },
        Conv2d { dilation: [1, 0], ..conv.clone() },
        Conv2d { groups: 0, ..conv.clone() },
    ] {
        assert!(matches!(refusal(zero), Misuse::Zero { .. }));
    }
    assert_eq!(refusal(Conv2d { groups: 3, ..conv.clone() }), Misuse::Groups { channels: 4, groups: 3 });
    assert_eq!(refusal(Conv2d { kernel: [9, 1], ..conv.clone() }), Misuse::KernelBeyondImage { span: 9, padded: 8 });
    let huge = Conv2d { batch: usize::MAX, ..conv.clone() };
    assert_eq!(refusal(huge), Misuse::TooLarge { what: "inputs" });
    let wide = Conv2d { in_channels: 1, out_channels: 1, height: 100, width: 100, kernel: [90, 90], ..conv.clone() };
    assert_eq!(refusal(wide), Misuse::KernelTooLarge { elements: 8100, degree: 4096 });
    let many = Conv2d { batch: 1 << 20, ..conv };
    assert!(matches!(refusal(many), Misuse::TooManyResults { .. }));
    assert_eq!(
        refused(Plan::new(&Layer::Diagonal(Diagonal { len: 0 }), 37, 16, Resharing::Approximate)),
        Misuse::Zero { what: "the length" }
    );
    assert_eq!(refused(Plan::for_program(&[], 37, 16, Resharing::Approximate)), Misuse::NoLayers);
}

#[test]
fn impossible_widths_are_refused() {
    let layer = Layer::MatMul(MatMul { rows: 1, inner: 1 << 20, columns: 1 });
    for weight_bits in [0, 51, u32::MAX] {
        assert_eq!(
            refused(Plan::new(&layer, 37, weight_bits, Resharing::Approximate)),
            Misuse::WeightWidth { weight_bits }
        );
    }
    assert_eq!(
        refused(Plan::new(&layer, 64, 16, Resharing::Approximate)),
        Misuse::Bfv(BfvMisuse::RingWidth { ring_bits: 64 })
    );
    let noisy = Layer::MatMul(MatMul { rows: 1, inner: 1 << 40, columns: 1 });
    assert!(matches!(
        refused(Plan::new(&noisy, 50, 31, Resharing::Approximate)),
        Misuse::Bfv(BfvMisuse::NoiseTooLarge { .. })
    ));
}
