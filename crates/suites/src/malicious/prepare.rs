//! The offline job, and what two parties keep between runs.
//!
//! The dealer sends each party 64 bytes: the name of their setup, the party's seed of it, and two seeds for the run. It takes a
//! setup that both parties have proved to keep; otherwise it draws a new name, and both see that by the name alone. With a new
//! setup the server gets the codes of its masks, 16 bytes for each weight, and sends its weights behind their masks to the
//! client over their own link. Then come the keys that are used up at once, for masks and for the products of linear layers
//! with masks, and the keys that are kept for the run.
//!
//! A stored entry: for each step that has a mask or is linear its values, then the keys, then the setup's name, a seed and a
//! digest of the weights behind their masks.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::time::Instant;

use privet_channel::{Channel, HEADER_BYTES};
use privet_fss::{KeyFile, Role, Seeds};
use privet_prg::{Prg, Seed};
use privet_program::Weights as Tensors;
use privet_seal::Stored;
use privet_shark::dealer::MASK_BYTES;
use privet_shark::setup::read_hidden;
use privet_shark::{Party, Setup, Values, Weights};

use super::{Opened, Plan, deal as dealing};
use crate::report::{Counterpart, Recorder};
use crate::store::{KeptSetup, SetupSeeds};
use crate::{Error, MaterialId, Observer, Phase, Report, StoreError, bodies};

/// Bytes of the dealer's first message to each party.
const START: usize = 64;

/// What a party has of a deal besides the keys, which went to its store.
pub struct DealtHalf {
    /// The setup that the deal belongs to.
    pub(crate) setup: MaterialId,
    /// Whether this party did not say that it keeps it: then neither has anything of it yet.
    pub(crate) is_new: bool,
    /// This party's seed of it.
    setup_seed: Seed,
    /// Of what is used up offline, and of what is used up online.
    seeds: [Seed; 2],
}

impl DealtHalf {
    fn receive(dealer: &mut Channel, setups: &[KeptSetup]) -> Result<Self, Error> {
        let mut start = [0; START];
        dealer.recv_into(&mut start)?;
        let [setup, seeds @ ..] = [0, 16, 32, 48].map(|at| *super::array(&start[at..at + 16]));
        let [setup_seed, early, late] = seeds.map(Seed::from_bytes);
        let setup = MaterialId::new(&setup);
        let is_new = setups.iter().all(|kept| kept.name != setup);
        Ok(Self { setup, is_new, setup_seed, seeds: [early, late] })
    }

    /// The setup as this party's store keeps it begins with its seed.
    pub(crate) fn setup_seed(&self) -> &[u8; 16] {
        self.setup_seed.as_bytes()
    }

    /// What stands behind the keys in the stored entry.
    pub(crate) fn head(&self, opened: &Opened) -> Vec<u8> {
        [&self.setup.bytes()[..], self.seeds[1].as_bytes(), &opened.digest].concat()
    }
}

/// The first part of a deal, before the parties exchange the hidden weights: what tells a party its setup.
///
/// `setups`: those that this party announced to the dealer. Fails if the link fails or the dealer misbehaves.
pub(crate) fn begin(dealer: &mut Channel, setups: &[KeptSetup]) -> Result<(DealtHalf, Recorder), Error> {
    let mut recorder = Recorder::start_with(Counterpart::Dealer, Phase::Offline, dealer);
    let half = recorder.layer("setup", "deal", dealer, |dealer| DealtHalf::receive(dealer, setups))?;
    Ok((half, recorder))
}

/// The codes of the server's new setup, to `out`. Fails if the link or `out` fails.
pub(crate) fn take_codes(dealer: &mut Channel, plan: &Plan, out: &mut dyn Write) -> Result<(), Error> {
    bodies::receive(dealer, code_bytes(plan), out)
}

/// What a party works on while it prepares.
pub(super) struct Preparing<'a> {
    /// Private tensors in the order of the plan.
    pub weights: std::slice::Iter<'a, Weights>,
    /// The last mask of each value.
    pub masks: HashMap<usize, Values>,
}

/// The second part: what can be done before there is an input, and the keys. Both go to `entry`.
///
/// `peer`: the link to the other party, over which nothing is sent. Fails if a link fails or the dealer misbehaves;
/// nothing made so far may then be used.
pub(crate) fn prepare(
    [dealer, peer]: [&mut Channel; 2],
    plan: &Plan,
    (half, mut recorder): (&DealtHalf, Recorder),
    opened: &Opened,
    entry: &mut dyn Write,
    observer: &mut dyn Observer,
) -> Result<Report, Error> {
    let role = opened.setup.key().role();
    let total = plan.steps.len() + 1;
    let mut preparing = Preparing { weights: opened.weights.iter(), masks: HashMap::new() };
    let mut body = bodies::Receiving::new(dealer, plan.early_bytes(role));
    let mut party = Party::new(opened.setup.key(), peer, &half.seeds[0], &mut body, b"");
    for (index, placed) in plan.steps.iter().enumerate() {
        let (name, operator) = plan.describe(placed);
        let started = Instant::now();
        let Some(values) = placed.step.prepare(&mut preparing, &mut party)? else { continue };
        observer.progress(Phase::Offline, index, total, name);
        write_values(&values, entry)?;
        recorder.book(name, operator, started, privet_channel::Cost::default());
    }
    observer.progress(Phase::Offline, total - 1, total, "keys");
    recorder.layer("keys", "deal", dealer, |dealer| bodies::receive(dealer, plan.body_bytes(role), entry))?;
    observer.progress(Phase::Offline, total, total, "");
    Ok(recorder.finish(dealer))
}

/// Bytes of a stored authenticated value.
pub(super) const VALUE_BYTES: usize = 32;

/// As [`Values::pull`] reads them.
fn write_values(values: &Values, out: &mut dyn Write) -> Result<(), Error> {
    for part in [values.shares(), values.codes()] {
        let bytes: Vec<u8> = part.iter().flat_map(|share| share.to_le_bytes()).collect();
        out.write_all(&bytes).map_err(privet_fss::Error::from)?;
    }
    Ok(())
}

/// The dealer's side: material for one run of `plan` between the parties of `setup`, which `is_new` to them or both keep.
/// Nothing of it is kept.
///
/// # Errors
/// If a link fails or a party misbehaves; what it received so far must then not be used.
pub fn deal(
    client: &mut Channel,
    server: &mut Channel,
    plan: &Plan,
    setup: &SetupSeeds,
    is_new: bool,
) -> Result<(), Error> {
    let mut prg = Prg::from_os()?;
    let [early, late] = [(); 2].map(|()| Seeds::draw(&mut prg));
    let start = |seeds: [&Seed; 3]| [&setup.name.bytes()[..], &seeds.map(|seed| *seed.as_bytes()).concat()].concat();
    client.send(&start([&setup.seeds.client, &early.client, &late.client]))?;
    client.flush()?;
    server.send(&start([&setup.seeds.server, &early.server, &late.server]))?;
    bodies::send([&mut *client, &mut *server], |bodies| {
        if is_new {
            dealing::deal_codes(plan, &setup.seeds, &mut bodies[1])?;
            bodies[1].flush().map_err(privet_fss::Error::from)?;
        }
        let masks = dealing::deal_early(plan, &setup.seeds, &early, bodies)?;
        flush(bodies)?;
        dealing::deal(plan, &setup.seeds, &late, masks, bodies)?;
        flush(bodies)
    })?;
    client.flush()?;
    Ok(server.flush()?)
}

/// Bytes that a dealer sends to the client and to the server for one run, frames included; without the codes of a setup.
pub fn dealt_bytes(plan: &Plan) -> [u64; 2] {
    [Role::Client, Role::Server].map(|role| {
        let parts = [plan.early_bytes(role), plan.body_bytes(role)];
        START as u64 + HEADER_BYTES as u64 + parts.map(bodies::wire_bytes).iter().sum::<u64>()
    })
}

fn flush(bodies: &mut [bodies::Body; 2]) -> Result<(), Error> {
    bodies.iter_mut().try_for_each(Write::flush).map_err(|error| privet_fss::Error::from(error).into())
}

/// What a server gets of a setup.
fn code_bytes(plan: &Plan) -> u64 {
    (MASK_BYTES * plan.private_len()) as u64
}

/// The server sends its weights behind their masks; `stored`: its setup.
pub(crate) fn hide_weights(
    channel: &mut Channel,
    plan: &Plan,
    tensors: &Tensors,
    stored: Stored,
) -> Result<Opened, Error> {
    let mut send = |message: &[u8]| Ok(channel.send(message)?);
    let opened = hide(plan, tensors, stored, &mut send)?;
    channel.flush()?;
    Ok(opened)
}

/// The client takes them up and writes them behind the setup's seed to `out`. What no server may send is not kept: it would be
/// refused in every later preparation.
pub(crate) fn take_weights(channel: &mut Channel, plan: &Plan, out: &mut dyn Write) -> Result<(), Error> {
    for (_, len) in &plan.tensors {
        let message = channel.recv(plan.ring().packed_bytes(*len))?;
        read_hidden(plan.ring(), *len, &message)?;
        out.write_all(&message).map_err(privet_fss::Error::from)?;
    }
    Ok(())
}

/// A party's setup from its store: a seed, then at the client what hides the weights, at the server the codes. Fails
/// with [`StoreError::Damaged`] if it is not of this program.
pub(crate) fn open_weights(stored: Stored, plan: &Plan, tensors: Option<&Tensors>) -> Result<Opened, Error> {
    match tensors {
        Some(tensors) => hide(plan, tensors, stored, &mut |_| Ok(())),
        None => take(plan, stored),
    }
}

fn hide(
    plan: &Plan,
    tensors: &Tensors,
    mut stored: Stored,
    send: &mut dyn FnMut(&[u8]) -> Result<(), Error>,
) -> Result<Opened, Error> {
    plan.check_weights(tensors)?;
    let mut setup = Setup::new(Role::Server, &read_seed(&mut stored)?);
    let mut codes = KeyFile::behind(stored, 16);
    let mut weights = Vec::new();
    for (name, _) in &plan.tensors {
        let (hidden, message) = setup.hide(plan.ring(), tensors.tensor(name), &mut codes)?;
        send(&message)?;
        weights.push(hidden);
    }
    Ok(Opened::new(setup, weights))
}

fn take(plan: &Plan, mut stored: Stored) -> Result<Opened, Error> {
    let mut setup = Setup::new(Role::Client, &read_seed(&mut stored)?);
    let mut weights = Vec::new();
    for (_, len) in &plan.tensors {
        let mut message = vec![0; plan.ring().packed_bytes(*len)];
        stored.read_exact(&mut message).map_err(damaged)?;
        weights.push(setup.take(plan.ring(), *len, &message)?);
    }
    Ok(Opened::new(setup, weights))
}

fn read_seed(stored: &mut Stored) -> Result<Seed, Error> {
    let mut seed = [0; 16];
    stored.read_exact(&mut seed).map_err(damaged)?;
    Ok(Seed::from_bytes(seed))
}

fn damaged(error: std::io::Error) -> StoreError {
    StoreError::Damaged { path: "a setup".into(), problem: error.to_string() }
}
