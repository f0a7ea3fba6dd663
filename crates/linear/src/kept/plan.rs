//! How a product's weights lie in ciphertexts, and what it costs.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use privet_bfv::{Blocks, Group, Panel, Parameters};
use privet_channel::{Cost, HEADER_BYTES};

use crate::error::{Error, Misuse};
use crate::mail::{PER_MESSAGE, messages};
use crate::plan::MOST_RESULTS;

/// Products of one private input `[rows, inner]` with weights `[inner, columns]`, for some numbers of columns.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Product {
    /// Rows of the input.
    pub rows: usize,
    /// Columns of the input.
    pub inner: usize,
    /// Columns of each matrix of weights.
    pub columns: Vec<usize>,
}

/// How a product is computed. Both parties derive it from public shapes and widths alone. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Plan(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    product: Product,
    mask_bits: u32,
    guard_bits: u32,
    parameters: Parameters,
    strips: Vec<Strip>,
    price: u64,
}

/// Neighbouring columns, of all matrices side by side, that share ciphertexts and replies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Strip {
    pub(super) columns: Range<usize>,
    pub(super) blocks: Blocks,
    pub(super) ciphertexts: usize,
}

/// What things cost in nanoseconds, as those of [`crate::Plan`].
mod price {
    pub(super) const BYTE: u64 = 8;
    /// A ciphertext, read and laid out.
    pub(super) const READ: u64 = 60_000;
    /// A ciphertext times a row.
    pub(super) const PRODUCT: u64 = 700;
    /// A factor for a block of a ciphertext, in picoseconds.
    pub(super) const FACTOR: u64 = 400;
    /// A reply, made and opened.
    pub(super) const REPLY: u64 = 85_000;
}

/// Most blocks of a ciphertext.
const MOST_BLOCKS: usize = 64;

/// Most strips of a product.
const MOST_STRIPS: usize = 64;

impl Plan {
    /// The plans of some products under the same parameters: masks are of `mask_bits`, results have `guard_bits` more below the last place.
    ///
    /// # Errors
    /// [`Misuse`] for an impossible shape, or if no parameters hold the noise; [`Misuse::NoLayers`] if there is no product.
    pub fn for_program(products: &[Product], mask_bits: u32, guard_bits: u32) -> Result<Vec<Self>, Error> {
        let inner = products.iter().map(|product| product.inner).max().ok_or(Misuse::NoLayers)?;
        let outputs = products.iter().map(Product::output_len).collect::<Result<Vec<_>, _>>()?;
        let results = outputs.iter().copied().fold(0, usize::saturating_add);
        if let Some(&outputs) = outputs.iter().find(|&&outputs| outputs > MOST_RESULTS) {
            return Err(Misuse::TooManyResults { outputs }.into());
        }
        let parameters = Parameters::choose_for_masks(mask_bits + guard_bits, mask_bits, inner, results)?;
        let plan = |product: &Product| {
            let (price, strips) = cheapest(product, &parameters);
            let (product, parameters) = (product.clone(), parameters.clone());
            Self(Arc::new(Inner { product, mask_bits, guard_bits, parameters, strips, price }))
        };
        Ok(products.iter().map(plan).collect())
    }

    /// Whether this is a clone of the other.
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The products.
    pub fn product(&self) -> &Product {
        &self.0.product
    }

    /// The parameters, which keys must be made for.
    pub fn parameters(&self) -> &Parameters {
        &self.0.parameters
    }

    /// Bits below the last place of results.
    pub fn guard_bits(&self) -> u32 {
        self.0.guard_bits
    }

    /// All that decides what ciphertexts hold and where it lies, as text: another layout has another.
    pub fn layout(&self) -> String {
        let (parameters, product, strips) = (self.parameters(), self.product(), self.strips());
        let bits = [parameters.ring_bits(), self.mask_bits(), self.guard_bits()];
        format!("{} {:?} {bits:?} {product:?} {strips:?}", parameters.degree(), parameters.primes())
    }

    pub(super) fn mask_bits(&self) -> u32 {
        self.0.mask_bits
    }

    pub(super) fn strips(&self) -> &[Strip] {
        &self.0.strips
    }

    /// What the client's channel counts for [`super::multiply`]: it sends, and reads nothing.
    pub fn cost(&self) -> Cost {
        let rows = self.product().rows;
        let strip = |strip: &Strip| rows * self.reply_bytes(strip) + messages(rows).count() * HEADER_BYTES;
        let bytes: usize = self.strips().iter().map(strip).sum();
        let sent = self.strips().len() * messages(rows).count();
        Cost { bytes_sent: bytes as u64, messages_sent: sent as u64, ..Cost::default() }
    }

    /// Ciphertexts of weights.
    pub fn ciphertexts(&self) -> usize {
        self.strips().iter().map(|strip| strip.ciphertexts).sum()
    }

    /// Ciphertexts that the client sends.
    pub fn replies(&self) -> usize {
        self.strips().len() * self.product().rows
    }

    /// Products of a ciphertext and a polynomial of masks.
    pub fn products(&self) -> usize {
        self.ciphertexts() * self.product().rows
    }

    /// Bytes of the encrypted weights.
    pub fn kept_bytes(&self) -> u64 {
        (self.ciphertexts() * self.parameters().ciphertext_bytes()) as u64
    }

    /// What one use costs, in nanoseconds over 1 Gbit/s on two cores.
    pub fn price(&self) -> u64 {
        self.0.price
    }

    /// Bytes that [`super::multiply`] takes at most, beside its input and with the shares that it returns.
    pub fn client_memory(&self, threads: usize) -> u64 {
        let (parameters, rows) = (self.parameters(), self.product().rows as u64);
        let panel = self.strips().iter().map(|strip| strip.ciphertexts.min(Panel::MOST)).max().unwrap_or(0) as u64;
        // As bytes, and laid out; one for each thread as it is read.
        let rounded = panel.next_multiple_of(Group::MOST as u64) + threads as u64;
        let weights = panel * parameters.ciphertext_bytes() as u64 + rounded * parameters.ciphertext_memory();
        let factors = panel * MOST_BLOCKS as u64 * 8 * rows.next_multiple_of(6 * threads as u64);
        let replies = PER_MESSAGE as u64 * self.most_reply() + threads as u64 * parameters.reply_memory();
        let signed = 8 * rows * self.product().inner as u64;
        let shares = 8 * rows * self.width() as u64;
        rows * parameters.sum_memory() + (weights + factors).max(replies) + 2 * signed + shares
    }

    /// Bytes that [`super::ServerKeys::open`] takes at most, with the shares that it returns.
    pub fn server_memory(&self, threads: usize) -> u64 {
        let shares = 8 * (self.product().rows * self.width()) as u64;
        2 * PER_MESSAGE as u64 * self.most_reply() + threads as u64 * self.parameters().open_memory() + shares
    }

    fn most_reply(&self) -> u64 {
        self.strips().iter().map(|strip| self.reply_bytes(strip)).max().unwrap_or(0) as u64
    }

    /// Columns of all matrices.
    pub(super) fn width(&self) -> usize {
        self.product().columns.iter().sum()
    }

    pub(super) fn reply_bytes(&self, strip: &Strip) -> usize {
        self.parameters().reply_bytes(strip.columns.len())
    }

    /// The coefficients that hold a strip's results.
    pub(super) fn positions(&self, strip: &Strip) -> Vec<usize> {
        let start = strip.blocks.result(self.parameters().degree());
        (start..start + strip.columns.len()).collect()
    }

    /// Each matrix's columns among those of all.
    pub(super) fn members(&self) -> Vec<Range<usize>> {
        let mut end = 0;
        let member = |&columns: &usize| {
            end += columns;
            end - columns..end
        };
        self.product().columns.iter().map(member).collect()
    }
}

impl Product {
    fn output_len(&self) -> Result<usize, Error> {
        let zero = [("rows", self.rows), ("inner", self.inner)].into_iter().find(|(_, count)| *count == 0);
        match zero {
            Some((what, _)) => Err(Misuse::Zero { what }.into()),
            None if self.columns.is_empty() || self.columns.contains(&0) => {
                Err(Misuse::Zero { what: "columns" }.into())
            }
            None => Ok(self.rows.saturating_mul(self.columns.iter().copied().fold(0, usize::saturating_add))),
        }
    }
}

/// The cheapest way to cut a product into strips. Both parties compute it, from public numbers and in integers, so they agree.
fn cheapest(product: &Product, parameters: &Parameters) -> (u64, Vec<Strip>) {
    let (degree, width) = (parameters.degree(), product.columns.iter().sum::<usize>());
    let least = width.div_ceil(degree);
    let strips = |count: usize| {
        let each = width.div_ceil(count);
        let strip = |start: usize| {
            let columns = start..width.min(start + each);
            let blocks = blocks(columns.len(), degree).map(|blocks| {
                let ciphertexts = product.inner.div_ceil(blocks.rows());
                let strip = Strip { columns: columns.clone(), blocks, ciphertexts };
                (strip.price(product.rows, parameters), strip)
            });
            blocks.min_by_key(|(price, _)| *price).expect("a row fits")
        };
        let strips: Vec<_> = (0..width).step_by(each).map(strip).collect();
        (strips.iter().map(|(price, _)| price).sum::<u64>(), strips.into_iter().map(|(_, strip)| strip).collect())
    };
    let ways = (least..=least.saturating_mul(2).max(MOST_STRIPS).min(width)).map(strips);
    ways.min_by_key(|(price, _): &(u64, Vec<Strip>)| *price).expect("a way to cut")
}

/// The ways in which rows of so many columns lie in ciphertexts.
fn blocks(columns: usize, degree: usize) -> impl Iterator<Item = Blocks> {
    let counts = (0..=MOST_BLOCKS.ilog2()).map(|log| 1 << log);
    counts.map(move |count: usize| Blocks { count, width: columns.div_ceil(degree / count) })
}

impl Strip {
    fn price(&self, rows: usize, parameters: &Parameters) -> u64 {
        let bytes = price::BYTE * parameters.reply_bytes(self.columns.len()) as u64;
        let factors = (self.blocks.count * self.blocks.rows()) as u64 * price::FACTOR / 1000;
        let (rows, ciphertexts) = (rows as u64, self.ciphertexts as u64);
        ciphertexts * (price::READ + rows * (price::PRODUCT + factors)) + rows * (price::REPLY + bytes)
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (parameters, sent) = (self.parameters(), self.cost().bytes_sent as f64 / 1e6);
        let [wide, narrow] = parameters.prime_bits();
        write!(
            f,
            "{} ciphertexts of weights kept ({:.2} MB), {} replies up ({sent:.2} MB), {} products; N = {}, q of {wide} + {narrow} bits, \
             replies of {} bits",
            self.ciphertexts(),
            self.kept_bytes() as f64 / 1e6,
            self.replies(),
            self.products(),
            parameters.degree(),
            parameters.reply_bits(),
        )
    }
}
