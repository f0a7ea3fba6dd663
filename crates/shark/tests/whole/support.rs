//! A dealer and two parties in one process.

use std::thread;

use privet_channel::{Channel, Cost, pair};
use privet_fss::{KeyBytes, Role, Seeds, Source};
use privet_prg::{Prg, Seed};
use privet_ring::Modulus;
use privet_shark::{Dealer, Error, Hiding, Key, Keys, Layer, Masked, Party, Setup, Values, Weights};

/// A generator of a fixed seed.
pub fn prg(seed: u64) -> Prg {
    Prg::from_seed(&Seed::from_block(u128::from(seed)))
}

/// Random numbers of `bits` bits.
pub fn random(count: usize, bits: u32, prg: &mut Prg) -> Vec<u64> {
    let mut words = vec![0; count];
    prg.fill_words(&mut words);
    Modulus::new(bits).reduce_all(&mut words);
    words
}

/// What a run takes: seeds of the setup and of the material, and both bodies.
#[derive(Clone)]
pub struct Material {
    pub setup: Seeds,
    pub seeds: Seeds,
    pub bodies: [Vec<u8>; 2],
}

/// Deals a run.
pub fn deal(seed: u64, steps: impl FnOnce(&mut Dealer<'_>, &Seeds)) -> Material {
    let mut prg = prg(seed);
    let (setup, seeds) = (Seeds::draw(&mut prg), Seeds::draw(&mut prg));
    let mut bodies = [Vec::new(), Vec::new()];
    let [client, server] = &mut bodies;
    steps(&mut Dealer::new(&Keys::new(&setup), &seeds, client, server), &setup);
    Material { setup, seeds, bodies }
}

impl Material {
    /// One side of a run.
    pub fn side<T>(&self, role: Role, channel: &mut Channel, play: impl FnOnce(Party<'_>) -> T) -> T {
        let (setup, seed, mut body) = match role {
            Role::Client => (&self.setup.client, &self.seeds.client, &self.bodies[0][..]),
            Role::Server => (&self.setup.server, &self.seeds.server, &self.bodies[1][..]),
        };
        play(Party::new(&Key::new(role, setup), channel, seed, &mut body, b"a session"))
    }

    /// Both sides over these channels, client first.
    pub fn both<T: Send>(
        &self,
        channels: [Channel; 2],
        play: impl Fn(Party<'_>) -> Result<T, Error> + Sync,
    ) -> [(Result<T, Error>, Cost); 2] {
        let side = |role, mut channel: Channel| {
            let result = self.side(role, &mut channel, &play);
            let cost = channel.cost();
            (result, cost)
        };
        let [client, server] = channels;
        thread::scope(|scope| {
            let other = scope.spawn(|| side(Role::Server, server));
            [side(Role::Client, client), other.join().expect("no panic")]
        })
    }

    /// Both sides of an honest run.
    pub fn run<T: Send>(&self, play: impl Fn(Party<'_>) -> Result<T, Error> + Sync) -> [(T, Cost); 2] {
        self.both(pair().into(), play).map(|(result, cost)| (result.expect("an honest run"), cost))
    }

    /// `Delta`.
    pub fn delta(&self) -> u128 {
        let [client, server] = [(Role::Client, &self.setup.client), (Role::Server, &self.setup.server)]
            .map(|(role, seed)| Values::public(&Key::new(role, seed), &[1]).codes()[0]);
        client.wrapping_add(server)
    }

    /// The values that two halves stand for, modulo 2^128, after a look at their codes.
    pub fn join(&self, [client, server]: [&Values; 2]) -> Vec<u128> {
        let sum = |a: &[u128], b: &[u128]| a.iter().zip(b).map(|(a, b)| a.wrapping_add(*b)).collect::<Vec<_>>();
        let values = sum(client.shares(), server.shares());
        let codes = sum(client.codes(), server.codes());
        let delta = self.delta();
        assert!(values.iter().zip(codes).all(|(x, code)| delta.wrapping_mul(*x) == code), "codes fit the values");
        values
    }
}

/// What a gate is tested by: how it deals for masks, and how it is evaluated on `x` behind them.
pub struct Case<'a> {
    pub input: Modulus,
    pub key_bytes: KeyBytes,
    pub messages: Vec<usize>,
    pub deal: &'a (dyn Fn(&mut Dealer<'_>, &[u128]) + Sync),
    pub evaluate: &'a (dyn Fn(&mut Party<'_>, &Masked) -> Result<Values, Error> + Sync),
}

impl Case<'_> {
    /// Evaluates on the client's `values`, opened behind masks; checks key, messages and codes. Returns the results modulo
    /// 2^128, and the masks.
    pub fn run(&self, values: &[u64], seed: u64) -> (Vec<u128>, Vec<u128>) {
        let (count, mut masks) = (values.len(), Vec::new());
        let material = deal(seed, |dealer, _| {
            dealer.input_masks(count).expect("a vector takes everything");
            masks = dealer.masks(count).expect("a vector takes everything").to_vec();
            (self.deal)(dealer, &masks);
        });
        let KeyBytes { words, corrections } = self.key_bytes;
        let lengths = material.bodies.each_ref().map(Vec::len);
        assert_eq!(lengths, [words, words + corrections + 32 * count], "bytes of the key");
        let [client, server] = material.run(|mut party| {
            let x = input(&mut party, values, self.input)?;
            let x = party.mask(&x.values(party.key()), self.input)?;
            let result = (self.evaluate)(&mut party, &x)?;
            party.check()?;
            Ok(result)
        });
        let rounds = 1 + self.messages.len();
        // The client receives no input, and turns once more in a check.
        assert_eq!([client.1.rounds, server.1.rounds].map(|rounds| rounds as usize), [rounds + 2, rounds + 2]);
        let sent = |header: usize| {
            header + 5 + 16 * count + 5 + self.messages.iter().map(|bytes| bytes + 5).sum::<usize>() + 32 + 5 + 64 + 5
        };
        assert_eq!(client.1.bytes_sent as usize, sent(self.input.packed_bytes(count)), "bytes that the client sends");
        assert_eq!(server.1.bytes_sent as usize, sent(0) - 5, "bytes that the server sends");
        (material.join([&client.0, &server.0]), masks)
    }
}

/// The client's input at either side.
pub fn input(party: &mut Party<'_>, x: &[u64], ring: Modulus) -> Result<Masked, Error> {
    let masks = party.input_masks(x.len())?;
    match party.role() {
        Role::Client => party.input(x, ring, masks),
        Role::Server => party.input_of_client(ring, masks),
    }
}

/// A layer's products with a value, what can be done before included.
pub fn multiply(party: &mut Party<'_>, layer: &Layer, weights: &Weights, x: &Masked) -> Result<Values, Error> {
    let prepared = layer.prepare(party, weights, x.mask())?;
    Ok(layer.finish(prepared, weights, x.opened()))
}

/// A dealer, and both halves of the weights of a program.
pub fn hide(material: &Material, ring: Modulus, weights: &[&[i64]]) -> [Vec<Weights>; 2] {
    let (mut hiding, mut codes) = (Hiding::new(&material.setup), Vec::new());
    weights.iter().for_each(|weights| hiding.deal(ring, weights.len(), &mut codes).expect("a vector takes everything"));
    let mut server = Setup::new(Role::Server, &material.setup.server);
    let mut client = Setup::new(Role::Client, &material.setup.client);
    let mut body = &codes[..];
    let halves = weights.iter().map(|weights| {
        let (server_half, message) = server.hide(ring, weights, &mut body as &mut dyn Source).expect("codes for all");
        (client.take(ring, weights.len(), &message).expect("an honest message"), server_half)
    });
    let (client, server) = halves.unzip();
    assert!(body.is_empty());
    [client, server]
}
