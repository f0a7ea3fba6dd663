//! What a session leaves in place of base OTs: the next begins with it, once, and with base OTs wherever a party lost it.

use privet_channel::pair;
use privet_suites::session::{Client, Server};
use privet_suites::sharing::{Options, Plan, Rounds};
use privet_suites::{Observer, Phase, Report, Silent};

use crate::parties::{CHOICE, PATIENCE, RESIDUAL, StoreFolder, dealer, infer, over, prepare, server, session};

/// A client that keeps prepares an entry in a session of its own and infers on it, so that what was made is right.
fn prepared(server: &Server, client_folder: &StoreFolder, plan: &Plan) -> Report {
    let (mut near, far) = pair();
    near.set_timeout(PATIENCE);
    let fixture = if plan.program().hash() == CHOICE.program().hash() { &CHOICE } else { &RESIDUAL };
    let (report, side) = over((near, far), server, |channel| {
        let mut client = Client::new(channel, client_folder.store()).expect("a greeting").keeping_base_ots();
        let (id, report) = client.prepare(plan, &mut Silent).expect("material");
        infer(&mut client, fixture, plan, &id);
        client.close().expect("a goodbye");
        report
    });
    side.result.expect("the session ends well");
    report
}

/// Whether a preparation began without base OTs, which saves more than 7 kilobytes each way.
fn began_with_kept(report: &Report, first: &Report) -> bool {
    let saved = first.total.bytes_sent.saturating_sub(report.total.bytes_sent);
    assert!(saved == 0 || saved > 7_000, "{saved} bytes fewer");
    assert_eq!(first.total.rounds - report.total.rounds, u64::from(saved > 0));
    saved > 0
}

/// The halves in a store.
fn halves(folder: &StoreFolder) -> Vec<String> {
    let entries = std::fs::read_dir(folder.path().join("base")).expect("a folder");
    let mut names: Vec<_> =
        entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8")).collect();
    names.sort();
    names
}

#[test]
fn preparations_begin_with_what_the_last_left_whatever_they_are_for() {
    let (client_folder, server_folder) = (StoreFolder::new(), StoreFolder::new());
    let server = server(&server_folder);
    let plans = [CHOICE.plan(Rounds::Linear), RESIDUAL.plan(Rounds::Log), CHOICE.plan(Rounds::Linear)];
    let [first, _, last] = plans.each_ref().map(|plan| prepared(&server, &client_folder, plan));
    assert!(began_with_kept(&last, &first));
    assert_eq!((halves(&client_folder), halves(&client_folder).len()), (halves(&server_folder), 1));
}

/// An inference without material of a client that keeps, in a session of its own, whose result must be right.
fn unprepared(server: &Server, client_folder: &StoreFolder, plan: &Plan) -> Report {
    let (mut near, far) = pair();
    near.set_timeout(PATIENCE);
    let (report, side) = over((near, far), server, |channel| {
        let mut client = Client::new(channel, client_folder.store()).expect("a greeting").keeping_base_ots();
        let case = &CHOICE.case;
        let (outputs, report) = client.infer_unprepared(plan, &case.inputs, &mut Silent).expect("an inference");
        case.check(&outputs, plan.options());
        client.close().expect("a goodbye");
        report
    });
    side.result.expect("the session ends well");
    report
}

#[test]
fn inferences_without_material_begin_with_what_the_last_session_left() {
    let (client_folder, server_folder) = (StoreFolder::new(), StoreFolder::new());
    let server = server(&server_folder);
    let plan = CHOICE.plan(Options::one_shot().next().expect("such an option"));
    let first = unprepared(&server, &client_folder, &plan);
    assert!(began_with_kept(&unprepared(&server, &client_folder, &plan), &first));
    // A preparation takes what an inference left, and leaves as much.
    let prepared_first = prepared(&self::server(&StoreFolder::new()), &StoreFolder::new(), &plan);
    assert!(began_with_kept(&prepared(&server, &client_folder, &plan), &prepared_first));
    assert!(began_with_kept(&unprepared(&server, &client_folder, &plan), &first));
    assert_eq!((halves(&client_folder), halves(&client_folder).len()), (halves(&server_folder), 1));
    std::fs::remove_file(only_half(&server_folder)).expect("the server's half");
    assert!(!began_with_kept(&unprepared(&server, &client_folder, &plan), &first), "the server lost it");
    assert!(began_with_kept(&unprepared(&server, &client_folder, &plan), &first));
}

#[test]
fn clients_that_do_not_keep_leave_nothing() {
    let (client_folder, server_folder) = (StoreFolder::new(), StoreFolder::new());
    let plan = CHOICE.plan(Rounds::Linear);
    session(&server(&server_folder), &client_folder, |client| prepare(client, &plan));
    assert!(halves(&client_folder).is_empty() && halves(&server_folder).is_empty());
}

#[test]
fn dealt_material_needs_none() {
    let (client_folder, server_folder) = (StoreFolder::new(), StoreFolder::new());
    let (to_dealer, _results) = dealer();
    let (mut near, far) = pair();
    near.set_timeout(PATIENCE);
    let (_, side) = over((near, far), &server(&server_folder).with_dealer(to_dealer.clone()), |channel| {
        let client = Client::new(channel, client_folder.store()).expect("a greeting").with_dealer(to_dealer);
        let mut client = client.keeping_base_ots();
        prepare(&mut client, &CHOICE.plan(Options::dealt().next().expect("such an option")));
        client.close().expect("a goodbye");
    });
    side.result.expect("the session ends well");
    assert!(halves(&client_folder).is_empty() && halves(&server_folder).is_empty());
}

#[test]
fn a_party_that_lost_its_half_or_went_back_to_a_copy_begins_with_base_ots() {
    let plan = CHOICE.plan(Rounds::Linear);
    let (client_folder, server_folder) = (StoreFolder::new(), StoreFolder::new());
    let first = prepared(&server(&server_folder), &client_folder, &plan);
    let copies = [client_folder.copy(), server_folder.copy()];
    assert!(began_with_kept(&prepared(&server(&server_folder), &client_folder, &plan), &first));

    let [client_copy, server_copy] = &copies;
    let again = |client_folder: &StoreFolder, server_folder: &StoreFolder| {
        let began = began_with_kept(&prepared(&server(server_folder), client_folder, &plan), &first);
        // Then both have halves that fit.
        assert!(began_with_kept(&prepared(&server(server_folder), client_folder, &plan), &first));
        began
    };
    assert!(!again(&client_copy.copy(), &server_folder), "the client went back");
    assert!(!again(&client_folder, &server_copy.copy()), "the server went back");
    assert!(!again(&StoreFolder::new(), &server_folder), "the client lost its store");
    assert!(!again(&client_folder, &StoreFolder::new()), "the server lost its store");
    // Where both did, nonces make it another session ([`privet_ot::Kept`]).
    assert!(again(client_copy, server_copy), "both went back");
}

/// A store's only half, as a file.
fn only_half(folder: &StoreFolder) -> std::path::PathBuf {
    let [name] = &halves(folder)[..] else { panic!("not one half") };
    folder.path().join("base").join(name)
}

#[test]
fn a_half_that_a_disk_changed_costs_base_ots_and_no_wrong_answer() {
    let plan = CHOICE.plan(Rounds::Linear);
    let (client_folder, server_folder) = (StoreFolder::new(), StoreFolder::new());
    let first = prepared(&server(&server_folder), &client_folder, &plan);
    for damaged in [&client_folder, &server_folder] {
        for name in halves(damaged) {
            let path = damaged.path().join("base").join(name);
            let mut bytes = std::fs::read(&path).expect("the half");
            bytes[100] ^= 1;
            std::fs::write(&path, bytes).expect("the half again");
        }
        assert!(!began_with_kept(&prepared(&server(&server_folder), &client_folder, &plan), &first));
        assert!(began_with_kept(&prepared(&server(&server_folder), &client_folder, &plan), &first));
    }
}

#[test]
fn halves_of_different_sessions_end_the_session_and_the_next_begins_with_base_ots() {
    let plan = CHOICE.plan(Rounds::Linear);
    let (client_folder, server_folder) = (StoreFolder::new(), StoreFolder::new());
    let first = prepared(&server(&server_folder), &client_folder, &plan);
    // Another session's half under this one's name is whole, but the wrong one.
    let other_folder = StoreFolder::new();
    prepared(&server(&StoreFolder::new()), &other_folder, &plan);
    std::fs::copy(only_half(&other_folder), only_half(&client_folder)).expect("a copy");
    let (mut near, far) = pair();
    near.set_timeout(PATIENCE);
    let (error, side) = over((near, far), &server(&server_folder), |channel| {
        let mut client = Client::new(channel, client_folder.store()).expect("a greeting").keeping_base_ots();
        client.prepare(&plan, &mut Silent).expect_err("halves that do not fit").to_string()
    });
    assert!(error.contains("in place of base OTs"), "{error}");
    side.result.expect_err("the server notices as well");
    assert!(halves(&client_folder).is_empty() && halves(&server_folder).is_empty());
    assert!(!began_with_kept(&prepared(&server(&server_folder), &client_folder, &plan), &first));
    assert!(began_with_kept(&prepared(&server(&server_folder), &client_folder, &plan), &first));
}

#[test]
fn a_session_that_breaks_off_costs_its_half_and_nothing_else() {
    let plan = CHOICE.plan(Rounds::Linear);
    let (client_folder, server_folder) = (StoreFolder::new(), StoreFolder::new());
    let first = prepared(&server(&server_folder), &client_folder, &plan);
    // The client goes away as soon as it has named its half.
    let (mut near, far) = pair();
    near.set_timeout(PATIENCE);
    let (_, side) = over((near, far), &server(&server_folder), |channel| {
        let mut client = Client::new(channel, client_folder.store()).expect("a greeting").keeping_base_ots();
        let preparation = std::panic::AssertUnwindSafe(|| client.prepare(&plan, &mut Leaves).map(drop));
        std::panic::catch_unwind(preparation).expect_err("the client is gone");
        drop(client);
    });
    side.result.expect_err("the server waits for nobody");
    assert!(halves(&server_folder).is_empty());
    assert!(!began_with_kept(&prepared(&server(&server_folder), &client_folder, &plan), &first));
    assert!(began_with_kept(&prepared(&server(&server_folder), &client_folder, &plan), &first));
}

/// Panics where the work begins.
struct Leaves;

impl Observer for Leaves {
    fn progress(&mut self, _phase: Phase, _done: usize, _total: usize, _what: &str) {
        panic!("gone");
    }
}
