//! What one inference takes, by formula. `tests/whole/stream.rs` holds the figures against a real channel.

use privet_channel::HEADER_BYTES;
use privet_ot::Role;
use privet_paillier::KeySize;
use serde::Serialize;

use super::bfv::Layout;
use super::cipher::Cipher;
use super::exchange::{Exchange, Order};
use super::plan::Plan;
use super::{session, transport};
use crate::turns::Turns;

/// What one inference takes: a session's first, with its key. Bytes and rounds are those that the client's channel counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Forecast {
    /// The cipher's name.
    pub cipher: &'static str,
    /// Bits of the key; of the degree of BFV's polynomials there is no choice.
    pub key_bits: Option<usize>,
    /// Samples in a plaintext.
    pub samples: usize,
    /// Exchanges, the input and outputs not counted.
    pub exchanges: usize,
    /// Values that the client encrypts, or masks.
    pub encryptions: usize,
    /// Values that it opens; with Paillier the server makes as much noise.
    pub decryptions: usize,
    /// Oblivious transfers of the shuffles; none with Paillier.
    pub transfers: usize,
    /// BFV ciphertexts of the preparation, of both directions; none with Paillier.
    pub ciphertexts: usize,
    /// Products of BFV ciphertexts with weights in the preparation; none with Paillier.
    pub products: usize,
    /// Bytes that the client sends to prepare.
    pub offline_bytes_client: usize,
    /// Bytes that the server sends for it.
    pub offline_bytes_server: usize,
    /// Times that the client turns to waiting while both prepare.
    pub offline_rounds: u64,
    /// Bytes that the client sends, the request not counted.
    pub online_bytes_client: usize,
    /// Bytes that the server sends.
    pub online_bytes_server: usize,
    /// Times that the client turns to waiting.
    pub online_rounds: u64,
    /// Bytes of the numbers that the client holds between both phases: masks, or noise as it would travel.
    pub material_bytes_client: usize,
    /// The same of the server, its orders included.
    pub material_bytes_server: usize,
}

/// A preparation.
struct Offline {
    bytes: [usize; 2],
    rounds: u64,
    material: [usize; 2],
}

/// What a plan takes.
pub(super) fn of(plan: &Plan) -> Forecast {
    let program = plan.program();
    let input_sizes = program.inputs().iter().map(|input| program.value(input.value).len());
    let returned = plan.exchanges().filter(|exchange| !is_output(exchange)).map(|exchange| exchange.returned(program));
    let encrypted: Vec<usize> = input_sizes.chain(returned).collect();
    let decrypted: Vec<usize> = plan.exchanges().map(|exchange| exchange.sent(program)).collect();
    let (encryptions, decryptions) = (encrypted.iter().sum::<usize>(), decrypted.iter().sum::<usize>());
    let offline = match plan.cipher() {
        Cipher::Paillier(size) => noise(size, [encryptions, decryptions]),
        Cipher::Bfv => plan.layout().map_or(Offline { bytes: [0; 2], rounds: 0, material: [0; 2] }, |layout| {
            masks(layout, encryptions + decryptions)
        }),
    };
    let layout = plan.layout().ok();
    let layers = || layout.into_iter().flat_map(|layout| &layout.layers).map(|layer| &layer.plan);
    let online = |counts: &[usize]| counts.iter().map(|&count| message_bytes(plan, count)).sum();
    Forecast {
        cipher: plan.cipher().name(),
        key_bits: match plan.cipher() {
            Cipher::Paillier(size) => Some(size.bits()),
            Cipher::Bfv => None,
        },
        samples: plan.samples().count(),
        exchanges: plan.exchanges().filter(|exchange| !is_output(exchange)).count(),
        encryptions,
        decryptions,
        transfers: layout.map_or(0, Layout::transfers),
        ciphertexts: layers().map(|layer| layer.input_ciphertexts() + layer.output_ciphertexts()).sum(),
        products: layers().map(privet_linear::Plan::products).sum(),
        offline_bytes_client: session::request_bytes(plan) + offline.bytes[0],
        offline_bytes_server: offline.bytes[1],
        offline_rounds: offline.rounds,
        online_bytes_client: online(&encrypted),
        online_bytes_server: online(&decrypted),
        online_rounds: online_rounds(plan),
        material_bytes_client: offline.material[0],
        material_bytes_server: offline.material[1],
    }
}

fn is_output(exchange: &Exchange) -> bool {
    matches!(exchange.order, Order::Output(_))
}

/// Bytes on the wire of a tensor.
fn message_bytes(plan: &Plan, elements: usize) -> usize {
    match (plan.cipher(), plan.layout()) {
        (Cipher::Paillier(size), _) => transport::ciphertext_bytes(size, elements),
        (Cipher::Bfv, layout) => layout.map_or(0, |layout| transport::ring_bytes(layout.ring(), elements)),
    }
}

/// The input goes first; then the client answers each exchange, and waits for each output.
fn online_rounds(plan: &Plan) -> u64 {
    let mut turns = Turns::default();
    turns.client_sends();
    for exchange in plan.exchanges() {
        turns.server_sends();
        if !is_output(exchange) {
            turns.client_sends();
        }
    }
    turns.rounds()
}

/// Paillier's preparation: the key there, word that both have their noise back.
fn noise(size: KeySize, counts: [usize; 2]) -> Offline {
    let key = size.public_key_bytes() + HEADER_BYTES;
    let material = counts.map(|count| count * size.ciphertext_bytes());
    Offline { bytes: [key, transport::ACKNOWLEDGED], rounds: 1, material }
}

/// BFV's preparation; the client holds a mask for each of so many values.
fn masks(layout: &Layout, values: usize) -> Offline {
    let words = layout.layers.iter().map(|layer| layer.plan.output_len()).sum::<usize>()
        + layout.shuffles().map(|(_, shape)| 3 * shape.len() + 2 * shape.windows).sum::<usize>();
    Offline { bytes: layout.offline_bytes(), rounds: offline_rounds(layout), material: [8 * values, 8 * words] }
}

/// Setup and key, transfers, all bits of the server, values for the way back, the waves, values for the way there.
fn offline_rounds(layout: &Layout) -> u64 {
    let mut turns = Turns::default();
    turns.exchange(privet_ot::cost::setup().rounds);
    let transfers = privet_ot::cost::generate(&layout.demand(), layout.extension, Role::Client);
    let both = layout.shuffles().map(|(_, shape)| [shape.forward(), shape.backward()]).collect::<Vec<_>>();
    let [forward, backward] = [0, 1].map(|way| both.iter().map(|products| products[way]).sum::<usize>());
    let waves = layout.waves().count();
    let mut sends = |by_client: bool, any: bool| match (any, by_client) {
        (false, _) => {}
        (true, true) => turns.client_sends(),
        (true, false) => turns.server_sends(),
    };
    sends(true, waves > 0);
    sends(false, transfers.messages_received > 0);
    sends(true, transfers.messages_sent > 0);
    sends(false, forward + backward > 0);
    sends(true, backward > 0);
    for _ in 0..waves {
        sends(true, true);
        sends(false, true);
    }
    sends(true, forward > 0);
    sends(false, true);
    turns.rounds()
}
