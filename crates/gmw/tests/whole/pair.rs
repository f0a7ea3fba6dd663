//! Runs both parties of a protocol in one process, on correlations from an ideal dealer.

#![allow(dead_code)] // each test binary uses a part of it

use privet_channel::{Channel, pair};
use privet_gmw::{Error, Party, Rounds};
use privet_ot::{Demand, Role, Stock};
use privet_prg::{Prg, Seed};
use privet_ring::{Bits, Modulus};

/// A generator whose seed is fixed by `seed`.
pub fn prg(seed: u64) -> Prg {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    Prg::from_seed(&Seed::from_bytes(bytes))
}

/// Runs `protocol` at the client and at the server over `channels` and returns what each got.
///
/// `dyn`: tests call this with a hundred closures, and are compiled in half the time where what starts them is not
/// compiled for each.
pub fn run_over<T: Send>(
    (mut client, mut server): (Channel, Channel),
    demand: &Demand,
    rounds: Rounds,
    prg: &mut Prg,
    protocol: &(dyn Fn(&mut Party<'_>) -> Result<T, Error> + Sync),
) -> Result<[T; 2], Error> {
    let (mut client_stock, mut server_stock) = Stock::deal(demand, prg);
    std::thread::scope(|scope| {
        let server_thread = scope.spawn(move || {
            let mut party = Party { role: Role::Server, channel: &mut server, stock: &mut server_stock, rounds };
            let result = protocol(&mut party)?;
            server.flush()?;
            Ok(result)
        });
        let mut party = Party { role: Role::Client, channel: &mut client, stock: &mut client_stock, rounds };
        let client_result = protocol(&mut party).and_then(|result| Ok(client.flush().map(|()| result)?));
        drop(client);
        let server_result: Result<T, Error> = server_thread.join().expect("the server's thread does not panic");
        Ok([client_result?, server_result?])
    })
}

/// [`run_over`] an in-memory link; panics if a party fails.
pub fn run<T: Send>(
    demand: &Demand,
    rounds: Rounds,
    prg: &mut Prg,
    protocol: impl Fn(&mut Party<'_>) -> Result<T, Error> + Sync,
) -> [T; 2] {
    run_over(pair(), demand, rounds, prg, &protocol).expect("both parties finish")
}

/// Client's and server's random shares of `values`.
pub fn share(values: &[i64], ring: Modulus, prg: &mut Prg) -> [Vec<u64>; 2] {
    let mut client = vec![0; values.len()];
    prg.fill_words(&mut client);
    ring.reduce_all(&mut client);
    let whole: Vec<u64> = values.iter().map(|&value| value as u64).collect();
    let server = ring.sub(&whole, &client);
    [client, server]
}

/// The shared signed values.
pub fn join(shares: &[Vec<u64>; 2], ring: Modulus) -> Vec<i64> {
    ring.add(&shares[0], &shares[1]).into_iter().map(|value| ring.signed(value)).collect()
}

/// This party's half of shares or private inputs.
pub fn half<'a, T>(halves: &'a [T; 2], party: &Party<'_>) -> &'a T {
    &halves[usize::from(party.is_server())]
}

/// Client's and server's random shares of `bits`.
pub fn share_bits(bits: &[bool], prg: &mut Prg) -> [Bits; 2] {
    let client: Vec<bool> = bits.iter().map(|_| prg.word() & 1 == 1).collect();
    let client = Bits::from_bools(&client);
    let server = client.xor(&Bits::from_bools(bits));
    [client, server]
}

/// This party's half of a shared vector.
pub fn part<'a>(shares: &'a [Vec<u64>; 2], party: &Party<'_>) -> &'a [u64] {
    &shares[usize::from(party.is_server())]
}
