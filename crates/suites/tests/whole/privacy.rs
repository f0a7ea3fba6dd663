//! What crosses the wire looks fresh and uniform, and its form depends on the program alone.
//!
//! `material_used_twice_is_caught` and `an_input_without_its_mask_is_caught` are the controls: leaks on purpose that the
//! same checks must find.

use std::collections::HashSet;
use std::io::{Write, sink};

use privet_channel::record::{self, Direction, Transcript};
use privet_channel::{Channel, pair};
use privet_ot::{BaseOts, Role};
use privet_prg::{Prg, Seed};
use privet_program::Operator;
use privet_ring::Modulus;
use privet_seal::Stored;
use privet_suites::Silent;
use privet_suites::session::Client;
use privet_suites::sharing::{self, Encrypted, Material, Model, Options, Plan, Rounds, Truncation, WeightMask};

use crate::parties::{CHOICE, Fixture, RESIDUAL, StoreFolder, both, dealer, head, over, server};

const DIRECTIONS: [Direction; 2] = [Direction::FirstToSecond, Direction::SecondToFirst];

/// What one phase of a run put on the wire, from the client and from the server.
#[derive(Clone, Default)]
struct Phase([Vec<Vec<u8>>; 2]);

impl Phase {
    fn of(transcript: &Transcript) -> Self {
        Self(DIRECTIONS.map(|direction| transcript.payloads(direction).map(<[u8]>::to_vec).collect()))
    }

    /// What came after `earlier`.
    fn since(mut self, earlier: &Self) -> Self {
        for (messages, earlier) in self.0.iter_mut().zip(&earlier.0) {
            messages.drain(..earlier.len());
        }
        self
    }

    fn messages(&self) -> impl Iterator<Item = &Vec<u8>> {
        self.0.iter().flatten()
    }

    fn lengths(&self) -> [Vec<usize>; 2] {
        [0, 1].map(|side| self.0[side].iter().map(Vec::len).collect())
    }
}

/// Suite `fss`.
const FSS: Options = Options::fss(Truncation::OneBit);

/// A preparation and an inference in one session, without the greeting.
struct Run {
    offline: Phase,
    online: Phase,
    /// Client's and server's rounds of the two jobs.
    rounds: [u64; 4],
    outputs: Vec<Vec<i64>>,
}

fn run(plan: &Plan, inputs: &[Vec<i64>]) -> Run {
    let (client_folder, server_folder) = (StoreFolder::new(), StoreFolder::new());
    let (near, far, transcript) = record::pair();
    let now = || Phase::of(&transcript.lock().expect("no thread panicked"));
    let (connect, _dealt) = dealer();
    let serving = server(&server_folder).with_dealer(connect.clone());
    let ((greeted, prepared, outputs, client_rounds), side) = over((near, far), &serving, |channel| {
        let mut client = Client::new(channel, client_folder.store()).expect("a greeting").with_dealer(connect);
        let greeted = now();
        let (id, offline) = client.prepare(plan, &mut Silent).expect("material");
        let prepared = now();
        let (outputs, online) = client.infer(plan, &id, inputs, &mut Silent).expect("an inference");
        (greeted, prepared, outputs, [offline.total.rounds, online.total.rounds])
    });
    let server_rounds: Vec<u64> = side
        .events
        .iter()
        .map(|event| match event {
            privet_suites::session::Event::Described { .. } => 0,
            privet_suites::session::Event::Prepared { report, .. }
            | privet_suites::session::Event::Kept { report, .. }
            | privet_suites::session::Event::Inferred { report, .. } => report.total.rounds,
        })
        .collect();
    let rounds = [client_rounds[0], client_rounds[1], server_rounds[0], server_rounds[1]];
    Run { online: now().since(&prepared), offline: prepared.since(&greeted), rounds, outputs }
}

/// What an inference without material put on the wire, requests aside.
fn unprepared(plan: &Plan, inputs: &[Vec<i64>]) -> Phase {
    let (client_folder, server_folder) = (StoreFolder::new(), StoreFolder::new());
    let (near, far, transcript) = record::pair();
    let now = || Phase::of(&transcript.lock().expect("no thread panicked"));
    let (greeted, side) = over((near, far), &server(&server_folder), |channel| {
        let mut client = Client::new(channel, client_folder.store()).expect("a greeting");
        let greeted = now();
        client.infer_unprepared(plan, inputs, &mut Silent).expect("an inference");
        greeted
    });
    assert_eq!(side.events.len(), 1);
    now().since(&greeted)
}

/// Linear layers online, with comparisons of logarithmic depth.
fn one_shot() -> Options {
    Options::one_shot().find(|options| options.name() == "gmw log one-bit one-shot").expect("such an option")
}

#[test]
fn two_unprepared_runs_on_the_same_input_share_no_message_but_the_request() {
    for fixture in [&*RESIDUAL, &*CHOICE] {
        let plan = fixture.plan(one_shot()).buffering(2000);
        let data = |mut phase: Phase| {
            phase.0[0].remove(0);
            phase
        };
        let [one, other] = [(); 2].map(|()| data(unprepared(&plan, &fixture.case.inputs)));
        assert!(!repeats(&one, &other));
    }
}

#[test]
fn ciphertexts_of_one_session_are_fresh_in_every_inference() {
    let plan = CHOICE.plan(one_shot());
    let (client_folder, server_folder) = (StoreFolder::new(), StoreFolder::new());
    let (near, far, transcript) = record::pair();
    let now = || Phase::of(&transcript.lock().expect("no thread panicked"));
    let (phases, _) = over((near, far), &server(&server_folder), |channel| {
        let mut client = Client::new(channel, client_folder.store()).expect("a greeting");
        [(); 2].map(|()| {
            let before = now();
            client.infer_unprepared(&plan, &CHOICE.case.inputs, &mut Silent).expect("an inference");
            now().since(&before)
        })
    });
    // Of as many bytes as a ciphertext has; the first inference begins with the key, too.
    let Encrypted::Ring(layer) = &plan.linear()[0].plan else { panic!("one-shot layers are in the ring") };
    let length = layer.input_ciphertexts() * layer.parameters().ciphertext_bytes();
    let ciphertexts = phases.each_ref().map(|phase| {
        let sent = phase.0[0].iter().filter(|message| message.len() == length);
        sent.cloned().collect::<Vec<_>>()
    });
    assert_eq!(ciphertexts.each_ref().map(Vec::len), [2, 1], "a key and a layer, then a layer");
    let blocks: HashSet<[u8; 16]> = ciphertexts[0].concat().as_chunks().0.iter().copied().collect();
    assert!(ciphertexts[1][0].as_chunks().0.iter().all(|block| !blocks.contains(block)));
}

#[test]
fn the_form_of_an_unprepared_run_does_not_depend_on_the_input_and_long_messages_are_balanced() {
    let plan = RESIDUAL.plan(one_shot()).buffering(2000);
    let forms: HashSet<_> = inputs(&RESIDUAL)
        .iter()
        .map(|inputs| {
            let phase = unprepared(&plan, inputs);
            assert_eq!(unbalanced(&phase), Vec::<usize>::new());
            data_lengths(&phase)
        })
        .collect();
    assert_eq!(forms.len(), 1);
}

/// Whether the two phases share a message of 16 bytes or more, or, requests aside, 31 bytes in a row anywhere. The question
/// for hidden weights is always the same and does not count.
fn repeats(one: &Phase, other: &Phase) -> bool {
    let asks = |message: &Vec<u8>| message.starts_with(br#"{"request":"hidden_weights""#);
    let seen: HashSet<&Vec<u8>> = one.messages().filter(|message| message.len() >= 16 && !asks(message)).collect();
    let data = |phase: &Phase| -> Vec<Vec<u8>> {
        let is_request = |message: &&Vec<u8>| serde_json::from_slice::<serde_json::Value>(message).is_ok();
        phase.messages().filter(|message| !is_request(message)).cloned().collect()
    };
    let blocks: HashSet<[u8; 16]> = data(one).iter().flat_map(|message| message.as_chunks().0.to_vec()).collect();
    other.messages().any(|message| seen.contains(message))
        || data(other).iter().any(|message| message.windows(16).any(|window| blocks.contains(window)))
}

/// Whether `ones` of `bits` fair bits lies within 6 standard deviations.
fn is_balanced(ones: u64, bits: u64) -> bool {
    (ones as f64 - bits as f64 / 2.0).abs() < 3.0 * (bits as f64).sqrt()
}

fn ones(bytes: &[u8]) -> u64 {
    bytes.iter().map(|byte| u64::from(byte.count_ones())).sum()
}

/// The messages over 256 bytes that are not balanced, by length.
fn unbalanced(phase: &Phase) -> Vec<usize> {
    let long = phase.messages().filter(|message| message.len() > 256);
    long.filter(|message| !is_balanced(ones(message), message.len() as u64 * 8)).map(Vec::len).collect()
}

/// Inputs from one extreme to the other.
fn inputs(fixture: &Fixture) -> Vec<Vec<Vec<i64>>> {
    let program = fixture.program();
    let input = &program.inputs()[0];
    let value = program.value(input.value);
    let largest = input.magnitude.expect("a bound") * f64::from(1u32 << value.scale);
    let mut prg = Prg::from_seed(&Seed::from_bytes([7; 16]));
    let random = (0..value.len()).map(|_| prg.below(largest as u64) as i64 - largest as i64 / 2).collect();
    [vec![0; value.len()], vec![largest as i64; value.len()], vec![-(largest as i64); value.len()], random]
        .map(|x| vec![x])
        .to_vec()
}

#[test]
fn two_runs_on_the_same_input_share_no_message() {
    for fixture in [&*RESIDUAL, &*CHOICE] {
        for plan in [Options::from(Rounds::Log), one_shot(), FSS].map(|options| fixture.plan(options)) {
            let [one, other] = [(); 2].map(|()| run(&plan, &fixture.case.inputs));
            fixture.case.check(&one.outputs, plan.options());
            assert!(!repeats(&one.offline, &other.offline), "the offline phase repeats itself");
            assert!(!repeats(&one.online, &other.online), "the online phase repeats itself");
            assert!(!repeats(&one.offline, &one.online), "the online phase repeats the offline phase");
        }
    }
}

#[test]
fn lengths_directions_and_rounds_do_not_depend_on_the_input() {
    for fixture in [&*RESIDUAL, &*CHOICE] {
        for options in Options::made().chain(Options::dealt()).chain(Options::one_shot()) {
            let plan = fixture.plan(options);
            let forms: HashSet<_> = inputs(fixture)
                .iter()
                .map(|inputs| run(&plan, inputs))
                .map(|run| (run.online.lengths(), run.rounds, data_lengths(&run.offline)))
                .collect();
            assert_eq!(forms.len(), 1);
        }
    }
}

/// Lengths of all messages of a phase but requests and their answers, which hold random numbers in decimal.
fn data_lengths(phase: &Phase) -> [Vec<usize>; 2] {
    type Object = serde_json::Map<String, serde_json::Value>;
    let is_data = |message: &Vec<u8>| serde_json::from_slice::<Object>(message).is_err();
    Phase(phase.0.clone().map(|messages| messages.into_iter().filter(is_data).collect())).lengths()
}

#[test]
fn online_messages_are_balanced() {
    let mut long = 0;
    // Residues modulo a prime have no balanced bits: `privet-gmw` tests that they are uniform.
    let made = Options::made().filter(|options| !options.is_prime());
    for options in made.chain(Options::dealt()).chain(Options::one_shot()) {
        let plan = RESIDUAL.plan(options);
        for inputs in inputs(&RESIDUAL) {
            let run = run(&plan, &inputs);
            assert_eq!(unbalanced(&run.online), Vec::<usize>::new());
            long += run.online.messages().filter(|message| message.len() > 256).count();
        }
    }
    assert!(long > 100, "only {long} messages are long enough to tell");
}

#[test]
fn the_shares_that_the_server_reveals_are_uniform_in_every_bit() {
    const RUNS: usize = 32;
    let plan = RESIDUAL.plan(one_bit());
    let output = plan.program().outputs()[0].value;
    let (ring, len) = (Modulus::new(plan.width(output)), plan.program().value(output).len());
    let shares: Vec<u64> = (0..RUNS)
        .flat_map(|_| {
            let run = run(&plan, &RESIDUAL.case.inputs);
            let last = run.online.0[1].last().expect("the server speaks last");
            ring.unpack(last, len).expect("shares of the output")
        })
        .collect();
    for bit in 0..ring.bits() {
        let ones = shares.iter().map(|share| share >> bit & 1).sum();
        assert!(is_balanced(ones, (RUNS * len) as u64), "bit {bit}: {ones} ones");
    }
}

/// The mode whose products are shared in the program's own ring, without guard bits.
fn one_bit() -> Options {
    Options { truncation: Truncation::OneBit, ..Options::from(Rounds::Log) }
}

/// The client's and the server's half of one entry.
type Halves = (Material, Material);

fn prepared(plan: &Plan, model: &Model) -> Halves {
    let (mut near, mut far) = pair();
    both(
        || {
            sharing::prepare_client(&mut near, plan, &mut BaseOts::default(), None, &mut std::io::sink(), &mut Silent)
                .expect("material")
                .0
        },
        || {
            sharing::prepare_server(
                &mut far,
                plan,
                (plan.extension(), &mut BaseOts::default()),
                model,
                None,
                &mut std::io::sink(),
                &mut Silent,
            )
            .expect("material")
            .0
        },
    )
}

fn random_mask() -> WeightMask {
    WeightMask::from_seed(Prg::from_os().expect("entropy").seed())
}

/// As [`prepared`], by a dealer; the server hides its weights by `mask`.
fn dealt(plan: &Plan, model: &Model, mask: &WeightMask) -> Halves {
    let ((mut near, mut dealer_near), (mut far, mut dealer_far)) = (pair(), pair());
    let hidden: Vec<Vec<u64>> = mask.hide(plan, model.weights()).collect();
    let (halves, dealt) = both(
        || {
            both(
                || {
                    sharing::prepare_client_dealt(
                        &mut near,
                        plan,
                        &mut |at| Ok(hidden[at].clone()),
                        &mut sink(),
                        &mut Silent,
                    )
                    .expect("material")
                    .0
                },
                || sharing::prepare_server_dealt(&mut far, plan, mask, &mut sink(), &mut Silent).expect("material").0,
            )
        },
        || sharing::deal(&mut dealer_near, &mut dealer_far, plan),
    );
    dealt.expect("a deal");
    halves
}

fn assert_uniform<'a>(ring: Modulus, vectors: impl IntoIterator<Item = &'a Vec<u64>>) {
    for vector in vectors {
        let ones = vector.iter().map(|word| u64::from(word.count_ones())).sum();
        assert!(is_balanced(ones, (vector.len() * ring.bits() as usize) as u64));
        assert!(vector.iter().all(|&word| word == ring.reduce(word)));
    }
}

#[test]
fn masks_and_shares_of_products_are_uniform() {
    let plan = RESIDUAL.plan(one_bit());
    let (ring, model) = (Modulus::new(plan.program().ring_bits()), RESIDUAL.model(&plan));
    for (client_half, server_half) in [prepared(&plan, &model), dealt(&plan, &model, &random_mask())] {
        assert_uniform(ring, client_half.masks.iter().chain(&client_half.shares).chain(&server_half.shares));
    }
}

#[test]
fn masks_and_shares_modulo_a_prime_are_uniform() {
    let prime = Options::made().find(|options| options.is_prime()).expect("a mode");
    let plan = RESIDUAL.plan(prime);
    let (field, model) = (plan.field().expect("a field"), RESIDUAL.model(&plan));
    let (mut bins, mut count) = ([0_f64; 16], 0.0);
    for _ in 0..4 {
        let (client_half, server_half) = prepared(&plan, &model);
        for &residue in client_half.masks.iter().chain(&client_half.shares).chain(&server_half.shares).flatten() {
            assert!(residue < field.prime());
            bins[(residue * 16 / field.prime()) as usize] += 1.0;
            count += 1.0;
        }
    }
    assert!(count > 1000.0, "only {count} residues");
    let chi_square: f64 = bins.iter().map(|bin| (bin - count / 16.0).powi(2) / (count / 16.0)).sum();
    // 15 degrees of freedom: above 56 once in a million.
    assert!(chi_square < 56.0, "{chi_square}");
}

#[test]
fn hidden_weights_are_uniform_and_others_under_another_mask() {
    let plan = RESIDUAL.plan(Rounds::Log);
    let (ring, model) = (Modulus::new(plan.program().ring_bits()), RESIDUAL.model(&plan));
    let hidden = || random_mask().hide(&plan, model.weights()).collect::<Vec<_>>();
    let (one, other) = (hidden(), hidden());
    assert_uniform(ring, one.iter().chain(&other));
    let differences: Vec<_> = one.iter().zip(&other).map(|(one, other)| ring.sub(one, other)).collect();
    assert_uniform(ring, &differences);
}

#[test]
fn what_a_dealer_gives_the_server_does_not_tell_the_clients_masks() {
    let plan = CHOICE.plan(Rounds::Log);
    let (ring, model, mask) = (Modulus::new(plan.program().ring_bits()), CHOICE.model(&plan), random_mask());
    let [layer] = plan.linear() else { panic!("one dense layer") };
    let hidden = mask.hide(&plan, model.weights()).next().expect("a layer");
    let weights: Vec<u64> = model.weights().tensor(&layer.weight).iter().map(|&weight| weight as u64).collect();
    let secret = ring.sub(&weights, &hidden);
    let (client_half, server_half) = dealt(&plan, &model, &mask);
    let operation = plan.operation(layer.operation);
    let Operator::Dense { weight_shape: [inner, columns], .. } = operation.operator else { panic!("a dense layer") };
    let times = |matrix: &[u64]| -> Vec<u64> {
        let rows = client_half.masks[0].chunks_exact(inner);
        let entry = |row: &[u64], column: usize| {
            let terms = row.iter().zip(matrix[column..].iter().step_by(columns));
            ring.reduce(terms.fold(0u64, |sum, (r, w)| sum.wrapping_add(r.wrapping_mul(*w))))
        };
        rows.flat_map(|row| (0..columns).map(move |column| entry(row, column))).collect()
    };
    // The server knows A. Were its share A r, it could solve for r.
    let products = times(&secret);
    assert!(server_half.shares[0].iter().zip(&products).all(|(share, product)| share != product));
    // That these are the products shows in the sum of both shares: V r + A r.
    let sum = ring.add(&client_half.shares[0], &server_half.shares[0]);
    assert_eq!(sum, ring.add(&times(&hidden), &products));
}

#[test]
fn no_mask_and_no_share_comes_twice() {
    let plan = RESIDUAL.plan(Rounds::Log);
    let model = RESIDUAL.model(&plan);
    let mask = random_mask();
    for preparations in [[(); 2].map(|()| prepared(&plan, &model)), [(); 2].map(|()| dealt(&plan, &model, &mask))] {
        let assert_distinct = |what: &str, vectors: &dyn Fn(&Halves) -> Vec<Vec<u64>>| {
            let words = preparations.iter().flat_map(vectors).flatten().collect::<Vec<_>>();
            let distinct: HashSet<_> = words.iter().collect();
            // Elements of 37 bits: a few of some thousands may agree by chance, not a vector.
            assert!(distinct.len() + 4 > words.len(), "{what}: {} of {} are distinct", distinct.len(), words.len());
        };
        assert_distinct("masks", &|(client_half, _)| client_half.masks.clone());
        assert_distinct("the client's shares", &|(client_half, _)| client_half.shares.clone());
        assert_distinct("the server's shares", &|(_, server_half)| server_half.shares.clone());
    }
}

/// What an inference on given material puts on the wire.
fn online(plan: &Plan, model: &Model, client: Material, server: Material, inputs: &[Vec<i64>]) -> Phase {
    let (mut near, mut far, transcript): (Channel, Channel, _) = record::pair();
    both(
        || sharing::infer_client(&mut near, plan, client, inputs, &mut Vec::new(), &mut Silent).expect("an inference"),
        || sharing::infer_server(&mut far, plan, model, server, &mut Vec::new(), &mut Silent).expect("an inference"),
    );
    Phase::of(&transcript.lock().expect("no thread panicked"))
}

/// A file with these bytes.
fn stored(bytes: &[u8]) -> Stored {
    let mut file = tempfile::tempfile().expect("a file");
    file.write_all(bytes).expect("room on the disk");
    Stored::plain(file)
}

#[test]
fn material_used_twice_is_caught() {
    let plan = RESIDUAL.plan(Rounds::Log);
    let model = RESIDUAL.model(&plan);
    let (client_half, server_half) = prepared(&plan, &model);
    let (client_half, server_half) = (head(&client_half, &plan), head(&server_half, &plan));
    let again = || {
        let client_half = Material::read(stored(&client_half), &plan, Role::Client).expect("the client's half");
        let server_half = Material::read(stored(&server_half), &plan, Role::Server).expect("the server's half");
        online(&plan, &model, client_half, server_half, &RESIDUAL.case.inputs)
    };
    assert!(repeats(&again(), &again()));
}

#[test]
fn an_input_without_its_mask_is_caught() {
    let plan = RESIDUAL.plan(Rounds::Log);
    let model = RESIDUAL.model(&plan);
    let inputs = &inputs(&RESIDUAL)[0];
    let (client_half, server_half) = prepared(&plan, &model);
    assert_eq!(unbalanced(&online(&plan, &model, client_half, server_half, inputs)), Vec::<usize>::new());
    let (mut client_half, server_half) = prepared(&plan, &model);
    client_half.masks[0].fill(0);
    assert_eq!(unbalanced(&online(&plan, &model, client_half, server_half, inputs)).len(), 1);
}
