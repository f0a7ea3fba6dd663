//! Triples of matrices without a dealer: both parties have shares of random `A` and `B`, and get shares of `A B`.
//!
//! Of the four terms of `(A_C + A_S)(B_C + B_S)` each party computes one on its own. The other two are linear layers of this
//! crate whose weights are the server's random matrix: `A_C B_S`, which is computed transposed, and `A_S B_C`. Matrices of a
//! batch are groups of a 1 x 1 convolution, so that small ones share ciphertexts.
//!
//! Threat model and argument as for any layer (`docs/reference/protocols/products.md`): the server sees ciphertexts, the client
//! masked replies. One round for all triples, and the bytes of [`Triples::cost`].

use privet_bfv::{Parameters, PublicKey, Resharing};
use privet_channel::{Channel, Cost};
use privet_prg::Prg;
use zeroize::Zeroizing;

use crate::error::{Error, Misuse};
use crate::layer::{Conv2d, Layer};
use crate::memory::{Keep, Workspace};
use crate::plan::Plan;
use crate::tiling::Saving;
use crate::weights::TransformedWeights;
use crate::{ClientKeys, decrypt, encrypt, evaluate};

/// The product of `[batch, rows, inner]` with `[batch, inner, columns]`, both private.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Product {
    /// Matrices in each operand.
    pub batch: usize,
    /// Rows of the left ones.
    pub rows: usize,
    /// Columns of the left and rows of the right ones.
    pub inner: usize,
    /// Columns of the right ones.
    pub columns: usize,
}

/// How triples for a product are made. Both parties derive it from public shapes and widths alone.
#[derive(Debug, Clone)]
pub struct Triples {
    product: Product,
    operand_bits: u32,
    guard_bits: u32,
    /// The client's left matrices by the server's right ones, transposed; the server's left by the client's right ones.
    terms: [Plan; 2],
}

impl Triples {
    /// For all products of a program, under the same parameters. Operands count modulo `2^operand_bits`, results are in a ring with
    /// `guard_bits` more below the last place.
    ///
    /// # Errors
    /// [`Misuse`] for an impossible shape, or if no secure parameters hold the noise; [`Misuse::NoLayers`] for no product.
    pub fn for_program(
        products: &[Product],
        operand_bits: u32,
        guard_bits: u32,
        saving: Saving,
    ) -> Result<Vec<Self>, Error> {
        let layers: Vec<Layer> = products.iter().flat_map(Product::terms).collect();
        // Both terms may be off by one unit of a bit that is then rounded off.
        let ring_bits = operand_bits + guard_bits + 1;
        let plans = Plan::for_program_saving(&layers, ring_bits, operand_bits, Resharing::Approximate, saving)?;
        let (pairs, _) = plans.as_chunks::<2>();
        let triples = |(&product, terms): (&Product, &[Plan; 2])| Self {
            product,
            operand_bits,
            guard_bits,
            terms: terms.clone(),
        };
        Ok(products.iter().zip(pairs).map(triples).collect())
    }

    /// The parameters, which keys must be made for.
    pub fn parameters(&self) -> &Parameters {
        self.terms[0].parameters()
    }

    /// The two products that are computed under encryption, as layers.
    pub fn terms(&self) -> &[Plan; 2] {
        &self.terms
    }

    /// Bytes that the client takes at most, beside the operands that it is given and with the share that it gets.
    pub fn client_memory(&self, threads: usize) -> u64 {
        let [left, right, product] = self.lengths();
        let [turned, straight] = self.terms.each_ref().map(|term| term.client_memory(threads));
        // The left operand is turned, and either raised.
        let encrypting = 8 * left + (8 * left + turned.encrypting).max(8 * right + straight.encrypting);
        let decrypting = 8 * product + turned.decrypting.max(straight.decrypting);
        encrypting.max(decrypting).max(8 * (left + 4 * product))
    }

    /// Bytes that the server takes at most, its keys included, as [`Triples::client_memory`].
    pub fn server_memory(&self, threads: usize) -> u64 {
        let [left, right, product] = self.lengths();
        let evaluating = |(term, weights): (&Plan, u64)| {
            let memory = term.server_memory(workspace(term), threads);
            8 * weights + memory.making.max(memory.weights + memory.evaluating)
        };
        let most = self.terms.iter().zip([right, left]).map(evaluating).max().unwrap_or(0);
        self.terms[0].keys_memory() + 8 * (right + product) + most.max(8 * 3 * product)
    }

    /// Elements of both operands and of the product.
    fn lengths(&self) -> [u64; 3] {
        let Product { batch, rows, inner, columns } = self.product;
        [batch * rows * inner, batch * inner * columns, batch * rows * columns].map(|len| len as u64)
    }

    /// What the client's channel counts for [`Triples::encrypt`] and [`Triples::decrypt`]; the public key comes on top
    /// ([`Plan::public_key_cost`]).
    pub fn cost(&self) -> Cost {
        let [one, other] = self.terms.each_ref().map(Plan::cost);
        Cost {
            bytes_sent: one.bytes_sent + other.bytes_sent,
            bytes_received: one.bytes_received + other.bytes_received,
            messages_sent: one.messages_sent + other.messages_sent,
            messages_received: one.messages_received + other.messages_received,
            rounds: 1,
        }
    }

    /// The client's first half, for all triples before any [`Triples::decrypt`]: sends its shares of both operands, encrypted.
    ///
    /// # Errors
    /// [`Misuse::WrongLength`], [`Misuse::PlansDiffer`] for keys of other parameters; those of the channel.
    pub fn encrypt(
        &self,
        channel: &mut Channel,
        keys: &ClientKeys,
        left: &[u64],
        right: &[u64],
        prg: &mut Prg,
    ) -> Result<(), Error> {
        let Product { batch, rows, inner, .. } = self.product;
        self.check(left, right)?;
        let low = u64::MAX >> (64 - self.operand_bits);
        let raise = |x: &u64| (x & low) << (self.guard_bits + 1);
        let raised = |values: &[u64]| Zeroizing::new(values.iter().map(raise).collect::<Vec<_>>());
        let left = Zeroizing::new(transposed(left, [batch, rows, inner]));
        encrypt(channel, &self.terms[0], keys, &raised(&left), prg)?;
        encrypt(channel, &self.terms[1], keys, &raised(right), prg)
    }

    /// The client's second half: its share of the product of the operands that it encrypted, `[batch, rows, columns]`. With the
    /// server's it adds up to the product times `2^guard_bits`, off by one at most.
    ///
    /// # Errors
    /// As [`crate::decrypt`].
    pub fn decrypt(
        &self,
        channel: &mut Channel,
        keys: &ClientKeys,
        left: &[u64],
        right: &[u64],
    ) -> Result<Vec<u64>, Error> {
        self.check(left, right)?;
        let turned_share = decrypt(channel, &self.terms[0], keys)?;
        let straight_share = decrypt(channel, &self.terms[1], keys)?;
        Ok(self.share(left, right, &turned_share, &straight_share, 0))
    }

    /// The server's side of both: its share of the product.
    ///
    /// # Errors
    /// As [`crate::evaluate`], and [`Misuse::WrongLength`].
    pub fn evaluate(
        &self,
        channel: &mut Channel,
        key: &PublicKey,
        left: &[u64],
        right: &[u64],
        prg: &mut Prg,
    ) -> Result<Vec<u64>, Error> {
        let Product { batch, inner, columns, .. } = self.product;
        self.check(left, right)?;
        let turned = Zeroizing::new(transposed(right, [batch, inner, columns]));
        let mut shares = [Vec::new(), Vec::new()];
        for ((plan, weights), share) in self.terms.iter().zip([turned.as_slice(), left]).zip(&mut shares) {
            let weights = Zeroizing::new(weights.iter().map(|&x| self.signed(x)).collect::<Vec<_>>());
            let weights = TransformedWeights::new(plan, &weights, workspace(plan))?;
            *share = evaluate(channel, plan, key, &weights, prg)?;
        }
        let [turned_share, straight_share] = shares;
        Ok(self.share(left, right, &turned_share, &straight_share, 1))
    }

    /// A ring element as the integer nearest to zero.
    fn signed(&self, x: u64) -> i64 {
        let unused = 64 - self.operand_bits;
        (x << unused).cast_signed() >> unused
    }

    /// This party's own term and its shares of the other two, of which the lowest bit is rounded off: down at the client, and up
    /// at the server, whose `carry` is 1. So if the terms are two units off together, the rounded sum is one off, and if they are one
    /// unit off, exactly one of the two lowest bits is set, and it is one off at most.
    fn share(&self, left: &[u64], right: &[u64], turned: &[u64], straight: &[u64], carry: u64) -> Vec<u64> {
        let Product { batch, rows, columns, .. } = self.product;
        let bits = self.operand_bits + self.guard_bits;
        let low = |bits: u32| u64::MAX >> (64 - bits);
        let cross = transposed(turned, [batch, columns, rows]);
        let rounded = cross.iter().zip(straight).map(|(a, b)| ((a.wrapping_add(*b) & low(bits + 1)) + carry) >> 1);
        let local = multiplied(left, right, self.product);
        local.iter().zip(rounded).map(|(local, x)| (local << self.guard_bits).wrapping_add(x) & low(bits)).collect()
    }

    fn check(&self, left: &[u64], right: &[u64]) -> Result<(), Error> {
        let Product { batch, rows, inner, columns } = self.product;
        let operands = [("the left operand", left, rows), ("the right operand", right, columns)];
        for (what, operand, other) in operands {
            Misuse::check_length(what, batch * inner * other, operand.len())?;
        }
        Ok(())
    }
}

impl Product {
    fn terms(&self) -> [Layer; 2] {
        let &Self { batch, rows, inner, columns } = self;
        let layer = |pixels: usize, outputs: usize| {
            Layer::Conv2d(Conv2d {
                batch: 1,
                in_channels: batch.saturating_mul(inner),
                height: 1,
                width: pixels,
                out_channels: batch.saturating_mul(outputs),
                kernel: [1, 1],
                stride: [1, 1],
                padding: [0; 4],
                dilation: [1, 1],
                groups: batch,
            })
        };
        [layer(rows, columns), layer(columns, rows)]
    }
}

/// Random matrices serve as weights once, so they are transformed a part at a time.
fn workspace(plan: &Plan) -> Workspace {
    Workspace { keep: Keep::Plain, ..Workspace::standard(plan) }
}

/// Each of a batch of matrices transposed.
fn transposed(x: &[u64], [batch, rows, columns]: [usize; 3]) -> Vec<u64> {
    let of = |matrix: usize| (0..columns).flat_map(move |j| (0..rows).map(move |i| (matrix * rows + i) * columns + j));
    (0..batch).flat_map(of).map(|at| x[at]).collect()
}

/// Products of the matrices of a batch, modulo `2^64`.
fn multiplied(left: &[u64], right: &[u64], product: Product) -> Vec<u64> {
    let Product { batch, rows, inner, columns } = product;
    let mut out = vec![0_u64; batch * rows * columns];
    for (index, out) in out.chunks_exact_mut(columns).enumerate() {
        let (left, right) = (&left[index * inner..][..inner], &right[index / rows * inner * columns..]);
        for (&x, row) in left.iter().zip(right.chunks_exact(columns)) {
            out.iter_mut().zip(row).for_each(|(out, y)| *out = out.wrapping_add(x.wrapping_mul(*y)));
        }
    }
    out
}
