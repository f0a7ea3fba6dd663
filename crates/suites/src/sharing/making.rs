//! Triples that two parties make before there is an input, without a dealer: of matrices under BFV
//! ([`privet_linear::Triples`]), of single elements by OT ([`super::elements`]).
//!
//! Threat model and argument: `docs/reference/protocols/products.md`. Matrices have keys of their own, as their parameters are;
//! all of them take one round.

use privet_channel::{Channel, Cost};
use privet_linear::{ClientKeys, Triples as MatrixTriples, receive_public_key};
use privet_prg::Prg;
use privet_program::{Operation, Program};

use super::triples::Triple;
use super::{Options, Plan, Triples};
use crate::Error;
use crate::forecast::LinearForecast;
use crate::ops::Node;
use crate::report::Recorder;

/// The widest ring, with guard bits, in which matrices are multiplied.
const WIDEST: u32 = 49;

/// Plans how two parties make triples of matrices, of whose products `bits` low bits count; nothing with a dealer.
/// Fails with [`Error::Misuse`], which names the first product, where triples cannot be made; [`Error::Linear`] if a
/// product does not fit BFV's secure parameters.
pub(super) fn plan(program: &Program, triples: &mut [Triple], bits: u32, options: Options) -> Result<(), Error> {
    let Some(first) = triples.first().filter(|_| !options.is_dealt()) else { return Ok(()) };
    let Node { operation, .. } = Node::at(program, first.operation);
    let refused = |why: String| {
        Err(Error::Misuse(format!(
            "layer {} ({}) multiplies two private tensors: {why}",
            operation.name,
            operation.operator.name()
        )))
    };
    if options.is_one_shot() || options.is_prime() {
        return refused("let linear layers run offline and in a ring, or choose suite fss".into());
    }
    let product =
        |triple: &Triple| Node::at(program, triple.operation).product().and_then(|product| product.matrices());
    let products: Vec<_> = triples.iter().filter_map(product).collect();
    if products.is_empty() {
        return Ok(());
    }
    let guard = options.guard_bits();
    if bits + guard > WIDEST {
        let widest = WIDEST - guard;
        return refused(format!(
            "without a dealer that takes rings of up to {widest} bits, not {bits}: compile for fewer"
        ));
    }
    let mut matrices = MatrixTriples::for_program(&products, bits, guard, options.saving)?.into_iter();
    let of_matrices = triples.iter_mut().filter(|triple| product(triple).is_some());
    of_matrices.for_each(|triple| triple.matrices = matrices.next());
    Ok(())
}

/// What the client's channel counts for triples of matrices, with its key; of a round that linear layers share.
pub(super) fn matrices_cost(plan: &Plan) -> Cost {
    let key = plan.matrices().take(1).map(|triples| triples.terms()[0].public_key_cost());
    plan.matrices().map(MatrixTriples::cost).chain(key).fold(Cost::default(), |sum, cost| sum + cost)
}

/// What triples of matrices take, as a table has it beside linear layers.
pub(super) fn forecasts(plan: &Plan) -> impl Iterator<Item = LinearForecast> {
    let forecast = |(triple, matrices): (&Triple, &MatrixTriples)| {
        let (operation, cost, terms) = (plan.operation(triple.operation), matrices.cost(), matrices.terms());
        let sum = |count: fn(&privet_linear::Plan) -> usize| terms.iter().map(|term| count(term) as u64).sum();
        LinearForecast {
            name: operation.name.clone(),
            operator: operation.operator.name().to_owned(),
            layout: terms.each_ref().map(ToString::to_string).join("; and "),
            ciphertexts: [sum(privet_linear::Plan::input_ciphertexts), sum(privet_linear::Plan::output_ciphertexts)],
            products: sum(privet_linear::Plan::products),
            bytes_client: cost.bytes_sent,
            bytes_server: cost.bytes_received,
        }
    };
    matrices(plan).map(forecast)
}

/// The client's side of products of matrices: its key, its parts of all masks under it, and what it has opened.
pub(super) struct Client<'a> {
    plan: &'a Plan,
    masks: &'a Triples,
    matrices: Vec<(&'a Triple, &'a MatrixTriples)>,
    keys: Option<ClientKeys>,
    shares: Vec<Vec<u64>>,
}

impl<'a> Client<'a> {
    pub(super) fn new(plan: &'a Plan, masks: &'a Triples) -> Self {
        Self { plan, masks, matrices: matrices(plan).collect(), keys: None, shares: Vec::new() }
    }

    /// The operation of a product.
    pub(super) fn operation(&self, at: usize) -> &'a Operation {
        self.plan.operation(self.matrices[at].0.operation)
    }

    /// Sends its masks of a product, and before those of the first one its key.
    pub(super) fn encrypt(
        &mut self,
        at: usize,
        channel: &mut Channel,
        prg: &mut Prg,
        recorder: &mut Recorder,
    ) -> Result<(), Error> {
        let (triple, matrices) = self.matrices[at];
        let keys = match self.keys.take() {
            Some(keys) => keys,
            None => recorder.layer("product keys", "bfv", channel, |channel| {
                let keys = ClientKeys::generate(matrices.parameters(), prg);
                keys.send_public_key(channel, prg)?;
                Ok::<_, Error>(keys)
            })?,
        };
        recorder.layer(&self.operation(at).name, "encrypt", channel, |channel| {
            let [a, b] = self.masks.operands(self.plan, triple);
            matrices.encrypt(channel, &keys, &a, &b, prg)
        })?;
        self.keys = Some(keys);
        Ok(())
    }

    /// Opens the replies to a product; in order.
    pub(super) fn decrypt(&mut self, at: usize, channel: &mut Channel, recorder: &mut Recorder) -> Result<(), Error> {
        let (triple, matrices) = self.matrices[at];
        let share = recorder.layer(&self.operation(at).name, "decrypt", channel, |channel| {
            let [a, b] = self.masks.operands(self.plan, triple);
            Ok::<_, Error>(matrices.decrypt(channel, self.keys.as_ref().expect("sent before"), &a, &b)?)
        })?;
        self.shares.push(share);
        Ok(())
    }

    /// Its parts of `C`, in the order of these products.
    pub(super) fn finish(self) -> Vec<Vec<u64>> {
        self.shares
    }
}

/// The server's side: its key is that of the first product.
pub(super) fn evaluate(
    channel: &mut Channel,
    plan: &Plan,
    masks: &Triples,
    prg: &mut Prg,
    recorder: &mut Recorder,
) -> Result<Vec<Vec<u64>>, Error> {
    let Some((_, first)) = matrices(plan).next() else { return Ok(Vec::new()) };
    let receive = |channel: &mut Channel| receive_public_key(channel, first.parameters());
    let key = recorder.layer("product keys", "bfv", channel, receive)?;
    let product = |(triple, matrices): (&Triple, &MatrixTriples)| {
        recorder.layer(&plan.operation(triple.operation).name, "evaluate", channel, |channel| {
            let [a, b] = masks.operands(plan, triple);
            Ok(matrices.evaluate(channel, &key, &a, &b, prg)?)
        })
    };
    matrices(plan).map(product).collect()
}

/// Parts of `C` of all products, of those element by element and those of matrices.
pub(super) fn in_order(plan: &Plan, elements: Vec<Vec<u64>>, matrices: Vec<Vec<u64>>) -> Vec<Vec<u64>> {
    let (mut elements, mut matrices) = (elements.into_iter(), matrices.into_iter());
    let part = |triple: &Triple| if triple.matrices.is_some() { matrices.next() } else { elements.next() };
    plan.triples.iter().map_while(part).collect()
}

fn matrices(plan: &Plan) -> impl Iterator<Item = (&Triple, &MatrixTriples)> {
    plan.triples.iter().filter_map(|triple| Some((triple, triple.matrices.as_ref()?)))
}
