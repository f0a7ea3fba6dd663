//! A shaped link takes the time that it says, by its formula, and stays as safe as any other.

use std::sync::mpsc::sync_channel;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::support::{pattern, tls_pair, together};
use privet_channel::{AbortReason, Channel, Error, Io, Link, Misuse, PeerMisbehaved, pair};

/// Bytes of a frame's header.
const HEADER: usize = 5;

/// How long measurements may be disturbed, one after the other, by whatever else the machine does.
const PATIENCE: Duration = Duration::from_secs(60);

/// How often a message waits for a thread to wake up, for each time that a party waits for it: the shaped link's own
/// threads lie between the parties.
const WAKINGS: f64 = 6.0;

fn link(rtt_ms: u64, bits_per_second: f64) -> Link {
    Link::new(Duration::from_millis(rtt_ms), bits_per_second).expect("a link")
}

/// Measures how long it is until both parties are done, over TLS, shaped by either side. No attempt may
/// be quicker than `expected` seconds (by more than two in a thousand), and one must be at most 4 ms, 5 %, and what this
/// machine is late with `waits` waits slower.
fn takes(
    expected: f64,
    waits: u32,
    link: Link,
    first: impl Fn(&mut Channel) + Sync,
    second: impl Fn(&mut Channel) + Sync,
) {
    static CLOCK: Mutex<()> = Mutex::new(());
    let _alone = CLOCK.lock().unwrap_or_else(PoisonError::into_inner);
    for shaped_by_first in [true, false] {
        let mut found = Vec::new();
        let near = |&(time, late): &(f64, f64)| time < expected * 1.05 + 0.004 + WAKINGS * late;
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE && !found.iter().any(near) {
            let (a, b) = shaped(tls_pair(), shaped_by_first, link);
            let start = Instant::now();
            // Channels are closed after the clock is read: closing takes its time as well.
            let done = together(
                a,
                b,
                |mut a| (first(&mut a), Instant::now(), a).1,
                |mut b| (second(&mut b), Instant::now(), b).1,
            );
            let time = (done.0.max(done.1) - start).as_secs_f64();
            found.push((time, lateness(expected, waits)));
        }
        assert!(found.iter().all(|(time, _)| *time > expected * 0.998), "{found:?} s, by formula {expected}");
        assert!(found.iter().any(near), "{found:?} s (and lateness), by formula {expected}");
    }
}

/// Seconds beyond `expected` that two threads take which sleep so long in all, in turn, in `waits` parts: nothing to
/// speak of on a machine that does nothing else.
fn lateness(expected: f64, waits: u32) -> f64 {
    let part = Duration::from_secs_f64(expected) / waits;
    let (hand, taken) = sync_channel(0);
    let start = Instant::now();
    thread::scope(|scope| {
        scope.spawn(move || {
            for _ in 0..waits {
                thread::sleep(part);
                hand.send(()).expect("heard");
            }
        });
        taken.iter().for_each(drop);
    });
    start.elapsed().as_secs_f64() - expected
}

fn shaped((a, b): (Channel, Channel), by_first: bool, link: Link) -> (Channel, Channel) {
    if by_first { (a.shaped(link).expect("shaped"), b) } else { (a, b.shaped(link).expect("shaped")) }
}

/// Seconds that `messages` messages of `bytes` bytes keep the link busy.
fn busy(link: Link, messages: usize, bytes: usize) -> f64 {
    (messages * (bytes + HEADER)) as f64 * 8.0 / link.bits_per_second() as f64
}

fn send(channel: &mut Channel, messages: usize, bytes: usize) {
    for _ in 0..messages {
        channel.send(&vec![7; bytes]).expect("sent");
    }
    channel.flush().expect("flushed");
}

fn receive(channel: &mut Channel, messages: usize, bytes: usize) {
    for _ in 0..messages {
        channel.recv(bytes).expect("received");
    }
}

#[test]
fn messages_in_a_row_pay_latency_once() {
    let link = link(20, 80e6);
    for (messages, bytes) in [(1, 1), (1, 100_000), (40, 10_000), (3, 200_000)] {
        let expected = busy(link, messages, bytes) + 0.010;
        takes(expected, 1, link, |a| send(a, messages, bytes), |b| receive(b, messages, bytes));
    }
}

#[test]
fn the_directions_do_not_share_bandwidth() {
    let (link, bytes) = (link(20, 80e6), 400_000);
    let exchange = |channel: &mut Channel| drop(channel.exchange(&vec![1; bytes]).expect("exchanged"));
    takes(busy(link, 1, bytes) + 0.010, 1, link, exchange, exchange);
}

#[test]
fn there_and_back_takes_a_round_trip_each_time() {
    let (link, times) = (link(4, 80e6), 10_u32);
    let ask = |a: &mut Channel| {
        for _ in 0..times {
            send(a, 1, 1000);
            receive(a, 1, 1000);
        }
    };
    let answer = |b: &mut Channel| {
        for _ in 0..times {
            receive(b, 1, 1000);
            send(b, 1, 1000);
        }
    };
    takes(f64::from(times) * (0.004 + 2.0 * busy(link, 1, 1000)), 2 * times, link, ask, answer);
}

#[test]
fn rounds_of_exchanges_take_half_a_round_trip_each() {
    let (link, times) = (link(10, 800e6), 20_u32);
    let exchange = |channel: &mut Channel| {
        for _ in 0..times {
            channel.exchange(&[1; 1000]).expect("exchanged");
        }
    };
    takes(f64::from(times) * (0.005 + busy(link, 1, 1000)), times, link, exchange, exchange);
}

#[test]
fn much_data_moves_at_the_bandwidth_of_the_link() {
    // More than the buffers on the way hold.
    let (link, bytes) = (link(10, 320e6), 16_000_000);
    takes(busy(link, 1, bytes) + 0.005, 4, link, |a| send(a, 1, bytes), |b| receive(b, 1, bytes));
}

#[test]
fn the_link_carries_on_while_both_sides_compute() {
    let compute = |channel: &mut Channel| {
        send(channel, 1, 100);
        thread::sleep(Duration::from_millis(100));
        receive(channel, 1, 100);
    };
    takes(0.100, 1, link(200, 80e6), compute, compute);
}

#[test]
fn costs_do_not_change() {
    let (a, b) = tls_pair();
    let exchange = |mut channel: Channel| {
        channel.exchange(&[1; 1000]).expect("exchanged");
        channel.cost()
    };
    let plain = together(a, b, exchange, exchange);
    let (a, b) = tls_pair();
    assert_eq!(together(a.shaped(link(2, 8e9)).expect("shaped"), b, exchange, exchange), plain);
}

#[test]
fn both_sides_may_send_more_than_the_link_holds_before_either_receives() {
    let link = link(10, 4e9);
    let each_way = |mut channel: Channel, mine: u8, theirs: u8| {
        for i in 0..20 {
            channel.send(&pattern(1_000_000 + i, mine)).expect("sent");
        }
        for i in 0..20 {
            assert!(channel.recv(1_000_000 + i).expect("received") == pattern(1_000_000 + i, theirs));
        }
    };
    let (a, b) = tls_pair();
    together(a.shaped(link).expect("shaped"), b, |a| each_way(a, 1, 2), |b| each_way(b, 2, 1));
}

#[test]
fn a_side_that_leaves_still_delivers_and_is_noticed() {
    for shaped_by_first in [true, false] {
        let (mut a, mut b) = shaped(tls_pair(), shaped_by_first, link(100, 80e6));
        let start = Instant::now();
        a.send(b"last words").expect("sent");
        drop(a);
        assert_eq!(b.recv(10), Ok(b"last words".to_vec()));
        assert!(start.elapsed() >= Duration::from_millis(50));
        assert_eq!(b.recv(1), Err(Io::Disconnected.into()));
        let error = (0..1000).find_map(|_| b.send(&[0; 1 << 17]).err());
        assert_eq!(error, Some(Io::Disconnected.into()));
        assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    }
}

#[test]
fn an_abort_passes_the_link() {
    for shaped_by_first in [true, false] {
        let (a, b) = shaped(tls_pair(), shaped_by_first, link(100, 80e6));
        let abort = |mut a: Channel| {
            a.send(b"before").expect("sent");
            a.abort(AbortReason::Busy);
        };
        let hear = |mut b: Channel| [b.recv(6).map(drop), b.recv(6).map(drop)];
        let ((), heard) = together(a, b, abort, hear);
        let aborted = PeerMisbehaved::Aborted { reason: AbortReason::Busy, text: String::new() };
        assert_eq!(heard, [Ok(()), Err(aborted.into())]);
    }
}

#[test]
fn waits_stay_bounded() {
    let short = Duration::from_millis(200);
    // Nobody speaks.
    let (a, b) = tls_pair();
    let mut a = a.shaped(link(20, 80e6)).expect("shaped");
    a.set_timeout(short);
    let start = Instant::now();
    assert!(matches!(a.recv(1), Err(Error::Io(Io::TimedOut { .. }))));
    assert!(start.elapsed() >= short && start.elapsed() < 50 * short, "{:?}", start.elapsed());
    drop(b);

    // Somebody does, but the link is too slow.
    let (a, mut b) = tls_pair();
    let mut a = a.shaped(link(1000, 80e6)).expect("shaped");
    a.set_timeout(short);
    send(&mut b, 1, 1);
    let start = Instant::now();
    assert!(matches!(a.recv(1), Err(Error::Io(Io::TimedOut { .. }))));
    assert!(start.elapsed() < 50 * short, "{:?}", start.elapsed());

    // The peer takes nothing.
    let (a, b) = tls_pair();
    let mut a = a.shaped(link(20, 8e9)).expect("shaped");
    a.set_timeout(short);
    let start = Instant::now();
    let error = (0..1000).find_map(|_| a.send(&[0; 1 << 20]).err()).expect("the network holds less than 1 GB");
    assert!(matches!(error, Error::Io(Io::TimedOut { .. })), "{error:?}");
    drop(a);
    assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
    drop(b);
}

#[test]
fn a_channel_is_stopped_from_another_thread() {
    for link in [None, Some(link(20, 1e8))] {
        let (mut a, mut b) = tls_pair();
        if let Some(link) = link {
            a = a.shaped(link).expect("a shaped link");
        }
        let stopper = a.stopper().expect("a socket").expect("a network link");
        let waited = thread::scope(|scope| {
            let waiting = scope.spawn(|| a.recv(1));
            thread::sleep(Duration::from_millis(50));
            stopper.stop();
            waiting.join().expect("no panic")
        });
        assert_eq!(waited, Err(Io::Disconnected.into()));
        assert_eq!(b.recv(1), Err(Io::Disconnected.into()));
    }
    assert!(pair().0.stopper().expect("nothing to share").is_none());
}

#[test]
fn a_stopper_does_not_keep_a_channel_open() {
    for link in [None, Some(link(20, 1e8))] {
        let (mut a, mut b) = tls_pair();
        if let Some(link) = link {
            a = a.shaped(link).expect("a shaped link");
        }
        let stopper = a.stopper().expect("a socket").expect("a network link");
        send(&mut a, 1, 1);
        let start = Instant::now();
        drop(a);
        assert_eq!(b.recv(1), Ok(vec![7]));
        assert_eq!(b.recv(1), Err(Io::Disconnected.into()));
        assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
        stopper.stop();
    }
}

#[test]
fn the_round_trip_of_this_machine_is_not_told() {
    for make in [pair, tls_pair] {
        let (a, b) = make();
        assert_eq!((a.rtt(), b.rtt()), (None, None));
    }
}

#[test]
fn a_link_in_memory_stays_as_quick_as_it_is() {
    let (a, _b) = pair();
    assert_eq!(a.shaped(link(20, 1e8)).err(), Some(Misuse::InMemory.into()));
}
