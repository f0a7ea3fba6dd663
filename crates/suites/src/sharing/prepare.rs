//! The offline job: linear layers and products of matrices on random masks under BFV, and correlations from OT.
//!
//! The parties make correlations, and by some of them products of single masks. Silent OT computes much and sends little, and linear
//! layers the other way round, so layers travel between its batches ([`groups`]). Where there are too few batches, the client sends the
//! encrypted masks of all layers afterwards, as it does with those of products, before it reads the first reply, as far as [`AHEAD`] lets
//! it. Its public keys come before the first layer. In the one-shot mode the job is the correlations alone.

use std::io::Write;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use privet_channel::{Channel, Cost};
use privet_ot::cost::Beside;
use privet_ot::{BaseOts, Extension, OtParty, Role, Stock, slots};
use privet_prg::Prg;
use privet_ring::Modulus;

use super::elements::{Elements, Factors};
use super::encrypted::{ClientKeys, ServerKeys, Transformed};
use super::material::unwritten;
use super::plan::LinearLayer;
use super::{Correlated, Encrypted, KeptClient, KeptServer, Material, Model, Plan, Triples, elements, making};
use crate::report::Recorder;
use crate::{Error, Observer, Phase, Report};

/// Bytes, of both directions, that may be on their way while the client sends ahead of what it opens: what is not read yet waits in
/// the memory of either party.
pub(super) const AHEAD: u64 = 256 << 20;

/// What the client does next with a layer, or a product of matrices behind all layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    /// Sends its mask.
    Encrypt(usize),
    /// Opens the replies.
    Decrypt(usize),
}

/// The client's turns for layers and products that cost so much each: all are sent ahead, as far as `ahead` bytes reach.
fn turns(costs: &[Cost], ahead: u64) -> Vec<Turn> {
    let bytes = |at: usize| costs[at].bytes_sent + costs[at].bytes_received;
    let (mut turns, mut opened, mut under_way) = (Vec::with_capacity(2 * costs.len()), 0, 0);
    for at in 0..costs.len() {
        while opened < at && under_way + bytes(at) > ahead {
            turns.push(Turn::Decrypt(opened));
            under_way -= bytes(opened);
            opened += 1;
        }
        turns.push(Turn::Encrypt(at));
        under_way += bytes(at);
    }
    turns.extend((opened..costs.len()).map(Turn::Decrypt));
    turns
}

/// What layers under BFV take, and then products of matrices.
fn homomorphic_costs(plan: &Plan) -> Vec<Cost> {
    let layers = plan.encrypted_linear().map(|layer| layer.plan.cost());
    layers.chain(plan.matrices().map(privet_linear::Triples::cost)).collect()
}

/// The layers under BFV that travel in each slot between the batches of OTs of the first chunk, by this extension: all or none, as many in
/// each as in the others. Of three groups something may be on its way.
fn groups(plan: &Plan, extension: Extension) -> Vec<Range<usize>> {
    let costs: Vec<Cost> = plan.encrypted_linear().map(|layer| layer.plan.cost()).collect();
    let count = slots(&plan.stored_chunks()[0].demand, extension).min(costs.len());
    let groups: Vec<_> = (0..count).map(|at| at * costs.len() / count..(at + 1) * costs.len() / count).collect();
    let bytes = |group: &Range<usize>| {
        costs[group.clone()].iter().map(|cost| cost.bytes_sent + cost.bytes_received).sum::<u64>()
    };
    let fits = groups.windows(3).all(|groups| groups.iter().map(bytes).sum::<u64>() <= plan.ahead);
    if fits && groups.len() >= 3 { groups } else { Vec::new() }
}

/// Whether layers travel between the batches of this extension.
pub(super) fn beside_any(plan: &Plan, extension: Extension) -> bool {
    !groups(plan, extension).is_empty()
}

/// Whether the client sends and receives in the slots of its [`groups`], in those of `extension`.
pub(super) fn beside(plan: &Plan, extension: Extension) -> impl Fn(usize) -> Beside {
    let (groups, costs) = (groups(plan, extension), homomorphic_costs(plan));
    move |slot| {
        let any = |slot: Option<usize>, bytes: fn(&Cost) -> u64| {
            let group = slot.and_then(|slot| groups.get(slot)).cloned().unwrap_or_default();
            costs[group].iter().any(|cost| bytes(cost) > 0)
        };
        let (sends, receives) = (Some(slot), slot.checked_sub(2));
        Beside { sends: any(sends, |cost| cost.bytes_sent), receives: any(receives, |cost| cost.bytes_received) }
    }
}

/// How often the client turns from sending masks to opening replies once the correlations are made.
pub(super) fn homomorphic_rounds(plan: &Plan) -> u64 {
    let costs = homomorphic_costs(plan);
    let mut turns = later_turns(plan, plan.extension());
    // The replies to kept weights are the client's: it opens none.
    turns.retain(|turn| match *turn {
        Turn::Encrypt(at) => costs[at].bytes_sent > 0,
        Turn::Decrypt(at) => costs[at].bytes_received > 0,
    });
    turns.windows(2).filter(|pair| matches!(pair, [Turn::Encrypt(_), Turn::Decrypt(_)])).count() as u64
}

/// The client's turns once the correlations are made by this extension.
fn later_turns(plan: &Plan, extension: Extension) -> Vec<Turn> {
    let (costs, first) = (homomorphic_costs(plan), groups(plan, extension).last().map_or(0, |group| group.end));
    let shift = |turn| match turn {
        Turn::Encrypt(at) => Turn::Encrypt(first + at),
        Turn::Decrypt(at) => Turn::Decrypt(first + at),
    };
    turns(&costs[first..], plan.ahead).into_iter().map(shift).collect()
}

/// The client's side; `base` says how oblivious transfers begin, `kept` has the weights that a plan wants kept, and what comes before the
/// material's head goes to `entry`.
///
/// # Errors
/// If the link fails or the peer misbehaves; nothing made so far may then be used.
pub fn prepare_client(
    channel: &mut Channel,
    plan: &Plan,
    base: &mut BaseOts,
    kept: Option<KeptClient>,
    entry: &mut dyn Write,
    observer: &mut dyn Observer,
) -> Result<(Material, Report), Error> {
    let mut recorder = Recorder::start(Phase::Offline, channel);
    let (extension, count) = (plan.extension(), homomorphic_costs(plan).len());
    let groups = groups(plan, extension);
    let mut progress = Progress { observer, done: 0, total: 2 * count + 1 };
    let mut prg = Prg::from_os()?;
    let masks: Vec<Vec<u64>> = plan.masks().iter().map(|&len| mask(&mut prg, len, plan)).collect();
    let mut triples = Triples::new(plan, prg.seed(), Vec::new());

    let mut layers = ClientLayers::new(plan, &masks, kept);
    progress.begin("correlations");
    let operands = (&triples, Factors::Masks(&masks));
    let mut beside = |slot: usize, channel: &mut Channel, recorder: &mut Recorder| {
        let group = |slot: Option<usize>| slot.and_then(|slot| groups.get(slot)).cloned().unwrap_or_default();
        let turns = group(Some(slot)).map(Turn::Encrypt).chain(group(slot.checked_sub(2)).map(Turn::Decrypt));
        for turn in turns {
            progress.begin(layers.name(turn));
            layers.take(turn, channel, &mut prg, recorder)?;
        }
        Ok(())
    };
    let transfers = (extension, base);
    let (stock, elements) =
        correlations(channel, (Role::Client, plan), transfers, operands, entry, &mut recorder, &mut beside)?;
    let mut products = making::Client::new(plan, &triples);
    for turn in later_turns(plan, extension) {
        let (Turn::Encrypt(at) | Turn::Decrypt(at)) = turn;
        let Some(at) = at.checked_sub(layers.count()) else {
            progress.begin(layers.name(turn));
            layers.take(turn, channel, &mut prg, &mut recorder)?;
            continue;
        };
        progress.begin(&products.operation(at).name);
        match turn {
            Turn::Encrypt(_) => products.encrypt(at, channel, &mut prg, &mut recorder)?,
            Turn::Decrypt(_) => products.decrypt(at, channel, &mut recorder)?,
        }
    }
    let (matrices, shares) = (products.finish(), layers.shares);
    triples.shares = making::in_order(plan, elements.products, matrices);
    let shares = in_order(plan, shares, elements.layers);
    progress.begin("");
    let correlated = Correlated::Stock(Box::new(stock), None);
    Ok((Material { masks, shares, triples, correlated }, recorder.finish(channel)))
}

/// The steps of a preparation that an observer hears of.
struct Progress<'a> {
    observer: &'a mut dyn Observer,
    done: usize,
    total: usize,
}

impl Progress<'_> {
    /// A step begins; none is left where `name` is empty.
    fn begin(&mut self, name: &str) {
        self.observer.progress(Phase::Offline, self.done, self.total, name);
        self.done += 1;
    }
}

/// The client's side of linear layers under BFV: its keys, and its shares so far.
struct ClientLayers<'a> {
    plan: &'a Plan,
    layers: Vec<&'a LinearLayer>,
    masks: &'a [Vec<u64>],
    keys: Option<ClientKeys>,
    kept: Option<KeptClient>,
    shares: Vec<Vec<u64>>,
}

impl<'a> ClientLayers<'a> {
    fn new(plan: &'a Plan, masks: &'a [Vec<u64>], kept: Option<KeptClient>) -> Self {
        Self { plan, layers: plan.encrypted_linear().collect(), masks, keys: None, kept, shares: Vec::new() }
    }

    fn count(&self) -> usize {
        self.layers.len()
    }

    fn name(&self, turn: Turn) -> &'a str {
        let (Turn::Encrypt(at) | Turn::Decrypt(at)) = turn;
        &self.plan.operation(self.layers[at].operation).name
    }

    /// Takes the next turn; the keys go before the first layer that needs them.
    fn take(&mut self, turn: Turn, channel: &mut Channel, prg: &mut Prg, recorder: &mut Recorder) -> Result<(), Error> {
        let (name, plan) = (self.name(turn), self.plan);
        let (Turn::Encrypt(at) | Turn::Decrypt(at)) = turn;
        let layer = self.layers[at];
        if let Encrypted::Kept(kept_layer) = &layer.plan {
            let kept = self.kept.as_mut().ok_or_else(no_weights)?;
            return match turn {
                Turn::Encrypt(_) => recorder.layer(name, "multiply", channel, |channel| {
                    kept.multiply(channel, plan, (at, kept_layer), layer.mask_in(self.masks), prg)
                }),
                Turn::Decrypt(_) => {
                    self.shares.push(kept.take(at));
                    Ok(())
                }
            };
        }
        if self.keys.is_none() {
            let under_keys = plan.encrypted();
            let send = |channel: &mut Channel| ClientKeys::send(channel, &under_keys, prg);
            self.keys = Some(recorder.layer("keys", "bfv", channel, send)?);
        }
        let keys = self.keys.as_ref().expect("sent above");
        match turn {
            Turn::Encrypt(_) => recorder.layer(name, "encrypt", channel, |channel| {
                let r = layer.mask_in(self.masks);
                keys.encrypt(channel, &layer.plan, r, plan.options().guard_bits(), prg)
            }),
            Turn::Decrypt(_) => {
                let decrypt = |channel: &mut Channel| keys.decrypt(channel, &layer.plan);
                self.shares.push(recorder.layer(name, "decrypt", channel, decrypt)?);
                Ok(())
            }
        }
    }
}

fn no_weights() -> Error {
    Error::Misuse("this plan wants encrypted weights at the client, and there are none".into())
}

/// The server's side, with the OT extension that the client chose; `kept` has the key to weights that the client keeps.
///
/// # Errors
/// If the link fails or the peer misbehaves; nothing made so far may then be used.
pub fn prepare_server(
    channel: &mut Channel,
    plan: &Plan,
    (extension, base): (Extension, &mut BaseOts),
    model: &Model,
    kept: Option<KeptServer>,
    entry: &mut dyn Write,
    observer: &mut dyn Observer,
) -> Result<(Material, Report), Error> {
    let mut recorder = Recorder::start(Phase::Offline, channel);
    let groups = groups(plan, extension);
    let mut prg = Prg::from_os()?;
    let mut triples = Triples::new(plan, prg.seed(), Vec::new());

    // Weights in another form give way before correlations take their memory.
    let mut layers = ServerLayers::new(plan, model, kept)?;
    let mut progress = Progress { observer, done: 0, total: layers.count() + 1 };
    progress.begin("correlations");
    let operands = (&triples, Factors::Weights(model.weights()));
    let mut beside = |slot: usize, channel: &mut Channel, recorder: &mut Recorder| {
        for at in slot.checked_sub(1).and_then(|slot| groups.get(slot)).cloned().unwrap_or_default() {
            progress.begin(layers.name(at));
            layers.evaluate(at, channel, &mut prg, recorder)?;
        }
        Ok(())
    };
    let transfers = (extension, base);
    let (stock, elements) =
        correlations(channel, (Role::Server, plan), transfers, operands, entry, &mut recorder, &mut beside)?;
    for at in layers.shares.len()..layers.count() {
        progress.begin(layers.name(at));
        layers.evaluate(at, channel, &mut prg, &mut recorder)?;
    }
    let matrices = making::evaluate(channel, plan, &triples, &mut prg, &mut recorder)?;
    triples.shares = making::in_order(plan, elements.products, matrices);
    let shares = in_order(plan, layers.shares, elements.layers);
    channel.flush()?;
    progress.begin("");
    let correlated = Correlated::Stock(Box::new(stock), None);
    Ok((Material { masks: Vec::new(), shares, triples, correlated }, recorder.finish(channel)))
}

/// The server's side of linear layers under BFV: the client's keys, the weights, and its shares so far.
struct ServerLayers<'a> {
    plan: &'a Plan,
    /// Their places among all prepared layers.
    places: Vec<usize>,
    transformed: Arc<[Transformed]>,
    key: Option<ServerKeys>,
    kept: Option<KeptServer>,
    shares: Vec<Vec<u64>>,
}

impl<'a> ServerLayers<'a> {
    fn new(plan: &'a Plan, model: &Model, kept: Option<KeptServer>) -> Result<Self, Error> {
        let layers = plan.prepared_linear().iter().enumerate();
        let places: Vec<usize> =
            layers.filter(|(_, layer)| layer.plan.is_encrypted()).map(|(place, _)| place).collect();
        let transformed = if places.is_empty() { Arc::default() } else { model.transformed(plan)? };
        Ok(Self { plan, places, transformed, key: None, kept, shares: Vec::new() })
    }

    fn count(&self) -> usize {
        self.places.len()
    }

    fn layer(&self, at: usize) -> &'a LinearLayer {
        &self.plan.prepared_linear()[self.places[at]]
    }

    fn name(&self, at: usize) -> &'a str {
        &self.plan.operation(self.layer(at).operation).name
    }

    /// Answers what the client sent of a layer, after its keys; in order.
    fn evaluate(
        &mut self,
        at: usize,
        channel: &mut Channel,
        prg: &mut Prg,
        recorder: &mut Recorder,
    ) -> Result<(), Error> {
        let (name, plan, layer) = (self.name(at), self.plan, self.layer(at));
        let share = if let Encrypted::Kept(layer) = &layer.plan {
            let kept = self.kept.as_mut().ok_or_else(no_weights)?;
            recorder.layer(name, "open", channel, |channel| kept.share(channel, plan, (at, layer)))?
        } else {
            if self.key.is_none() {
                let under_keys = plan.encrypted();
                let receive = |channel: &mut Channel| ServerKeys::receive(channel, &under_keys);
                self.key = Some(recorder.layer("keys", "bfv", channel, receive)?);
            }
            let (key, weights) = (self.key.as_ref().expect("received above"), &self.transformed[self.places[at]]);
            recorder.layer(name, "evaluate", channel, |channel| key.evaluate(channel, &layer.plan, weights, prg))?
        };
        self.shares.push(share);
        Ok(())
    }
}

/// Shares of all prepared linear layers, of those under BFV and of those by OT.
fn in_order(plan: &Plan, encrypted: Vec<Vec<u64>>, chosen: Vec<Vec<u64>>) -> Vec<Vec<u64>> {
    let (mut encrypted, mut chosen) = (encrypted.into_iter(), chosen.into_iter());
    let share = |layer: &LinearLayer| if layer.plan.is_encrypted() { encrypted.next() } else { chosen.next() };
    plan.prepared_linear().iter().map_while(share).collect()
}

/// Linear layers in a slot between batches of OTs.
type Layers<'a> = &'a mut dyn FnMut(usize, &mut Channel, &mut Recorder) -> Result<(), Error>;

/// Correlations for the first steps of the online job, `beside` others, and this party's parts of products of single masks. Those for later
/// steps go to `entry` first, chunk by chunk.
fn correlations(
    channel: &mut Channel,
    (role, plan): (Role, &Plan),
    (extension, base): (Extension, &mut BaseOts),
    (masks, factors): (&Triples, Factors<'_>),
    entry: &mut dyn Write,
    recorder: &mut Recorder,
    beside: Layers<'_>,
) -> Result<(Stock, Elements), Error> {
    let (started, before) = (Instant::now(), channel.cost());
    let mut party = OtParty::setup_from(channel, role, extension, base)?;
    let (chunks, mut stock) = (plan.stored_chunks(), Stock::empty(role));
    for chunk in &chunks[1..] {
        stock = Stock::generate_in(stock, &mut party, channel, &chunk.demand)?;
        stock.write(entry).map_err(unwritten)?;
    }
    let (mut booked_time, mut booked_cost) = (Duration::ZERO, Cost::default());
    let mut booked = |slot: usize, channel: &mut Channel| {
        let (started, before) = (Instant::now(), channel.cost());
        beside(slot, channel, recorder)?;
        booked_time += started.elapsed();
        booked_cost += channel.cost() - before;
        Ok::<_, Error>(())
    };
    let stock = Stock::generate_beside(stock, &mut party, channel, &chunks[0].demand, &mut booked)?;
    recorder.book("correlations", "ot", started + booked_time, channel.cost() - before - booked_cost);
    if elements::demands(plan).is_empty() {
        return Ok((stock, Elements::default()));
    }
    let multiply = |channel: &mut Channel| elements::multiply(&mut party, channel, plan, masks, factors);
    let elements = recorder.layer("products", "ot", channel, multiply)?;
    Ok((stock, elements))
}

/// A uniform mask, in the ring or the field that values are opened in.
fn mask(prg: &mut Prg, len: usize, plan: &Plan) -> Vec<u64> {
    let Some(field) = plan.field() else {
        return uniform(prg, len, plan.mask_ring());
    };
    // Exactly uniform, whatever their number: a reduced word is not.
    (0..len).map(|_| prg.below(field.prime())).collect()
}

pub(crate) fn uniform(prg: &mut Prg, len: usize, ring: Modulus) -> Vec<u64> {
    let mut values = vec![0; len];
    prg.fill_words(&mut values);
    ring.reduce_all(&mut values);
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    fn costs(mebibytes: &[u64]) -> Vec<Cost> {
        mebibytes.iter().map(|mb| Cost { bytes_sent: mb << 19, bytes_received: mb << 19, ..Cost::default() }).collect()
    }

    #[test]
    fn what_fits_is_sent_before_anything_is_opened() {
        use Turn::{Decrypt, Encrypt};
        assert_eq!(turns(&[], AHEAD), []);
        assert_eq!(turns(&costs(&[200, 56]), AHEAD), [Encrypt(0), Encrypt(1), Decrypt(0), Decrypt(1)]);
        let more = [Encrypt(0), Encrypt(1), Decrypt(0), Encrypt(2), Decrypt(1), Decrypt(2)];
        assert_eq!(turns(&costs(&[100, 100, 100]), AHEAD), more);
        // A layer beyond the bound goes alone.
        assert_eq!(turns(&costs(&[1, 999, 1]), AHEAD).len(), 6);
        assert_eq!(turns(&costs(&[1, 999, 1]), AHEAD)[..4], [Encrypt(0), Decrypt(0), Encrypt(1), Decrypt(1)]);
    }
}
