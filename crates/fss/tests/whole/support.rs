//! A dealer and two parties in one process.

use std::thread;
use std::time::Duration;

use privet_channel::{Channel, Cost, pair};
use privet_fss::{Error, Gate, Party, Role, Seeds, Source};
use privet_prg::{Prg, Seed};
use privet_ring::Modulus;

/// A generator of a fixed seed.
pub fn prg(seed: u64) -> Prg {
    Prg::from_seed(&Seed::from_block(u128::from(seed)))
}

/// Additive shares of `values`: the client's and the server's.
pub fn share(values: &[u64], ring: Modulus, prg: &mut Prg) -> [Vec<u64>; 2] {
    let mut client = vec![0; values.len()];
    prg.fill_words(&mut client);
    ring.reduce_all(&mut client);
    let server = ring.sub(values, &client);
    [client, server]
}

/// A dealt batch as each party has it.
pub struct Key {
    pub seeds: Seeds,
    pub bodies: [Vec<u8>; 2],
}

/// Deals a batch and checks the length of its parts.
pub fn deal(gate: &dyn Gate, count: usize, prg: &mut Prg) -> Key {
    let seeds = Seeds::draw(prg);
    let mut words = Vec::new();
    let corrections = gate.deal(count, &seeds, &mut words).expect("a vector takes all words");
    let bytes = gate.key_bytes(count);
    assert_eq!((words.len(), corrections.len()), (bytes.words, bytes.corrections));
    let bodies = [words.clone(), [words, corrections].concat()];
    assert_eq!(bodies.each_ref().map(Vec::len), [bytes.of(Role::Client), bytes.of(Role::Server)]);
    Key { seeds, bodies }
}

/// Runs both parties, each with what it holds: client first. Returns their results and costs.
pub fn both<I: Send, T: Send>(
    inputs: [I; 2],
    run: impl Fn(&mut Party<'_>, I) -> Result<T, Error> + Sync,
) -> [(T, Cost); 2] {
    let (client, server) = pair();
    let side = |role, mut channel: Channel, input| {
        let value = run(&mut Party { role, channel: &mut channel }, input).expect("an honest run");
        (value, channel.cost())
    };
    let [for_client, for_server] = inputs;
    thread::scope(|scope| {
        let serving = scope.spawn(|| side(Role::Server, server, for_server));
        [side(Role::Client, client, for_client), serving.join().expect("no panic")]
    })
}

/// What becomes of a party to which the other one says `replies`, whatever it is sent.
pub fn alone<T>(
    role: Role,
    replies: &[Vec<u8>],
    run: impl FnOnce(&mut Party<'_>) -> Result<T, Error>,
) -> Result<T, Error> {
    let (mut near, mut far) = pair();
    for reply in replies {
        far.send(reply).and_then(|()| far.flush()).expect("a link");
    }
    // A gate that waits for one message more must not wait for ever.
    near.set_timeout(Duration::from_secs(10));
    run(&mut Party { role, channel: &mut near })
}

/// Deals for shared `values`, runs a gate on both sides, checks that keys are read to their end and that messages are as
/// the gate says. Returns both results.
pub fn run_gate<T: Send>(
    gate: &(dyn Gate + Sync),
    values: &[u64],
    ring: Modulus,
    prg: &mut Prg,
    evaluate: impl Fn(&mut Party<'_>, &Seed, &mut dyn Source, &[u64]) -> Result<T, Error> + Sync,
) -> [T; 2] {
    let key = deal(gate, values.len(), prg);
    let [client, server] = share(values, ring, prg);
    let inputs = [(&key.seeds.client, &key.bodies[0], client), (&key.seeds.server, &key.bodies[1], server)];
    let results = both(inputs, |party, (seed, body, x)| {
        let mut body = &body[..];
        let result = evaluate(party, seed, &mut body, &x)?;
        assert!(body.is_empty(), "{} bytes of the key are left", body.len());
        Ok(result)
    });
    let messages = gate.message_bytes(values.len());
    for (_, cost) in &results {
        assert_eq!(cost.rounds as usize, messages.len());
        assert_eq!(cost.bytes_sent as usize, messages.iter().map(|bytes| bytes + 5).sum::<usize>());
    }
    results.map(|(value, _)| value)
}
