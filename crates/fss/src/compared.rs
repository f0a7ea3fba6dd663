//! Comparisons of opened numbers with numbers that the dealer knows.
//!
//! Few elements are compared by trees ([`point`]), in no round. Where keys would be [`ROUND_BYTES`] longer than with tables, they are compared
//! digit by digit ([`crate::digits`]), in a round more: the parties open digits behind hidden bits, of which the dealer has shared the
//! products as bits.

use std::io::Write;
use std::ops::Range;

use privet_prg::{Block, KEYS_A_PART, Seed, TreeHashes, Wiped};
use privet_ring::Bits;
use rayon::prelude::*;
use zeroize::Zeroizing;

use crate::digits::{Digits, add_columns, columns, dealt, less, parts, products, to_bytes, with_single};
use crate::point;
use crate::streams::Streams;
use crate::{Error, Party, Role, Source};

/// Keys that are made at once: some megabytes of words.
const CHUNK: usize = 2048;

/// Keys that one thread reads at once: what fits its cache, and shares a hash.
const TREES: usize = KEYS_A_PART;

/// Times as many that are worth asking another thread.
const TREES_A_JOB: usize = 2;

/// Bytes of the public seed of a batch's tree hashes, which its words follow.
pub(crate) const HASHES_BYTES: usize = 16;

/// Bytes of keys that a round is worth: what a link of 352 Mbit/s carries in 40 ms.
pub(crate) const ROUND_BYTES: usize = 1_760_000;

/// Bytes of the server's shares of products of hidden bits, for numbers of so many digits.
pub(crate) fn product_bytes(digits: usize, count: usize) -> usize {
    products(digits) * count.div_ceil(8)
}

/// This party's shares of all monomials of bits that hide what is opened, of which its parts are `flips`; the server reads its shares of
/// products from `body`.
pub(crate) fn pull_products(
    role: Role,
    flips: &[Bits],
    streams: &mut Streams,
    body: &mut dyn Source,
) -> Result<Zeroizing<Vec<Bits>>, Error> {
    let count = flips[0].len();
    with_single(flips, || pull_product(role, count, streams, body))
}

/// This party's next share of a product of hidden bits.
pub(crate) fn pull_product(
    role: Role,
    count: usize,
    streams: &mut Streams,
    body: &mut dyn Source,
) -> Result<Bits, Error> {
    match role {
        Role::Client => Ok(streams.share_bits(count)),
        Role::Server => Ok(Bits::from_bytes(body.pull(count.div_ceil(8))?, count)?),
    }
}

/// This party's shares of bits that are all set.
pub(crate) fn ones(role: Role, count: usize) -> Bits {
    let none = Bits::zeros(count);
    if role == Role::Server { none.not() } else { none }
}

/// The digits by which `count` elements of so many bits are compared; none where trees are used.
pub(crate) fn digits_for(bits: u32, count: usize) -> Option<Digits> {
    if bits == 0 {
        // Below the only bit of the ring there is no digit.
        return None;
    }
    let digits = Digits::cheapest(bits, |digits| products(digits.count()));
    let trees = 2 * word_bytes(bits, count);
    (trees > digits.table_bytes(count) + product_bytes(digits.count(), count) + ROUND_BYTES).then_some(digits)
}

/// What the digits of a batch compare to, opened behind hidden bits.
pub(crate) struct OpenedDigits {
    /// Streams of the batch's parts, behind their tables.
    pub(crate) parts: Vec<Streams>,
    /// This party's parts of the bits that hide columns.
    flips: Vec<Bits>,
    pub(crate) columns: Vec<Bits>,
}

impl OpenedDigits {
    /// Looks digits up and opens what they compare to; the server reads its tables from `body`. One round.
    pub(crate) fn new(
        digits: &Digits,
        points: &[u64],
        streams: &mut Streams,
        party: &mut Party<'_>,
        body: &mut dyn Source,
    ) -> Result<Self, Error> {
        let count = points.len();
        let flips: Vec<Bits> = (0..columns(digits.count())).map(|_| streams.flips(count)).collect();
        let mut parts = streams.part_streams(parts(count));
        let mut columns = digits.look_up(points, party.role, &mut parts, body)?;
        columns.iter_mut().zip(&flips).for_each(|(column, flips)| column.xor_assign(flips));
        let reply = party.channel.exchange(&to_bytes(&columns))?;
        add_columns(&mut columns, &reply, count)?;
        Ok(Self { parts, flips, columns })
    }
}

/// This party's shares of whether each of `points` is less than the number that the dealer knows, digit by digit; the server reads its
/// tables and its shares of products from `body`. One round.
pub(crate) fn less_by_digits(
    digits: &Digits,
    points: &[u64],
    streams: &mut Streams,
    party: &mut Party<'_>,
    body: &mut dyn Source,
) -> Result<Bits, Error> {
    let opened = OpenedDigits::new(digits, points, streams, party, body)?;
    let monomials = pull_products(party.role, &opened.flips, streams, body)?;
    Ok(less(&opened.columns, &ones(party.role, points.len()), &monomials))
}

/// Bytes of the words of `count` comparisons or point functions, with the seed of their hashes.
pub(crate) fn word_bytes(bits: u32, count: usize) -> usize {
    HASHES_BYTES + 16 * count * point::words(bits)
}

/// Draws the hashes of a batch from both parties' streams and writes their seed.
fn deal_hashes(streams: [&mut Streams; 2], words: &mut dyn Write) -> Result<TreeHashes, Error> {
    let [client, server] = streams.map(Streams::hashes);
    let seed = Seed::from_block(client ^ server);
    words.write_all(seed.as_bytes())?;
    Ok(TreeHashes::new(&seed))
}

/// Reads the hashes of a batch.
pub(crate) fn hashes(body: &mut dyn Source) -> Result<TreeHashes, Error> {
    let mut seed = [0; HASHES_BYTES];
    body.pull_into(&mut seed)?;
    Ok(TreeHashes::new(&Seed::from_bytes(seed)))
}

/// Makes the words of comparisons with `points`.
pub(crate) fn deal_comparisons(
    bits: u32,
    points: &[u64],
    streams: [&mut Streams; 2],
    words: &mut dyn Write,
) -> Result<(), Error> {
    deal_trees(points, streams, words, |hashes, roots, _, points| point::plant(bits, hashes, roots, points))
}

/// Makes the words of trees with `points`, chunk by chunk: by `plant`, from the hashes and roots of a chunk, where it is among all
/// points, and its points.
pub(crate) fn deal_trees(
    points: &[u64],
    streams: [&mut Streams; 2],
    words: &mut dyn Write,
    mut plant: impl FnMut(&TreeHashes, [&[Block]; 2], Range<usize>, &[u64]) -> Vec<[u8; 16]>,
) -> Result<(), Error> {
    let [client, server] = streams;
    let hashes = deal_hashes([&mut *client, &mut *server], words)?;
    for (chunk, points) in points.chunks(CHUNK).enumerate() {
        let mut roots = Zeroizing::new([vec![0; points.len()], vec![0; points.len()]]);
        client.roots(&mut roots[0]);
        server.roots(&mut roots[1]);
        let first = chunk * CHUNK;
        let planted = plant(&hashes.behind(first), [&roots[0], &roots[1]], first..first + points.len(), points);
        words.write_all(planted.as_flattened())?;
    }
    Ok(())
}

/// This party's bits of comparisons at `points`. Each thread reads the words of its own keys.
pub(crate) fn compare(bits: u32, points: &[u64], streams: &mut Streams, body: &mut dyn Source) -> Result<Bits, Error> {
    let key_bytes = 16 * point::words(bits);
    let hashes = hashes(body)?;
    let region = body.region(points.len() * key_bytes)?;
    let mut nodes = Wiped::from(vec![0 as Block; points.len()]);
    streams.roots(&mut nodes);
    let mut bit = vec![0; points.len()];
    let parts = nodes.par_chunks_mut(TREES).zip(points.par_chunks(TREES)).zip(bit.par_chunks_mut(TREES));
    let parts = parts.enumerate().with_min_len(TREES_A_JOB);
    let room = || vec![0; key_bytes * TREES.min(points.len())];
    parts.try_for_each_init(room, |buffer, (part, ((nodes, points), bit))| {
        let words = region.read(part * TREES * key_bytes, points.len() * key_bytes, buffer)?;
        point::at_most(bits, &hashes.behind(part * TREES), nodes, points, words.as_chunks().0, bit);
        Ok::<_, Error>(())
    })?;
    let packed = bit.chunks(64).map(|bits| bits.iter().enumerate().fold(0, |word, (i, bit)| word | bit << i)).collect();
    Ok(Bits::from_words(packed, points.len())?)
}

/// The server's shares of products of the bits that hide columns, of which the client's come from its stream.
pub(crate) fn deal_products(hidden: &[Bits], client: &mut Streams) -> Vec<u8> {
    deal_each(dealt(hidden), client)
}

/// The server's shares of these products.
pub(crate) fn deal_each(products: impl Iterator<Item = Bits>, client: &mut Streams) -> Vec<u8> {
    products.flat_map(|product| product.xor(&client.share_bits(product.len())).to_bytes()).collect()
}

/// The server's tables of the digits of `points`, and its shares of products of the bits that hide what is looked up there.
pub(crate) fn deal_digits(digits: &Digits, points: &[u64], hidden: &[Bits], client: &mut Streams) -> Vec<u8> {
    let mut corrections = digits.deal(points, &mut client.part_streams(parts(points.len())));
    corrections.extend(deal_products(hidden, client));
    corrections
}
