//! The server: its key, the weights under it, and its shares.

use privet_bfv::{Parameters, SecretKey};
use privet_channel::Channel;
use privet_prg::{Prg, Seed};
use rayon::prelude::*;

use super::client::apart;
use super::plan::{Plan, Strip};
use crate::error::{Error, Misuse};
use crate::mail::messages;

/// The server's key for all weights that a client keeps.
pub struct ServerKeys {
    secret: SecretKey,
}

impl ServerKeys {
    /// The key that grows from a seed.
    pub fn from_seed(parameters: &Parameters, seed: &Seed) -> Self {
        Self { secret: SecretKey::generate(parameters, &mut Prg::from_seed(seed)) }
    }

    /// A public key for a client: [`Parameters::public_key_bytes`] bytes, other ones each time.
    pub fn public_key(&self, prg: &mut Prg) -> Vec<u8> {
        self.secret.public_key(prg)
    }

    /// Encrypts the weights of a plan's matrices, `[inner, columns]` each, and hands them to `send` in parts: [`Plan::kept_bytes`] in all.
    ///
    /// # Errors
    /// [`Misuse::WrongLength`], [`Misuse::PlansDiffer`]; those of `send`.
    pub fn encrypt<E: From<Error>>(
        &self,
        plan: &Plan,
        weights: &[&[i64]],
        prg: &mut Prg,
        send: &mut dyn FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        self.check(plan)?;
        let product = plan.product();
        let lengths = product.columns.iter().map(|columns| product.inner * columns);
        for (expected, weights) in lengths.zip(weights) {
            Misuse::check_length("weights", expected, weights.len()).map_err(Error::from)?;
        }
        let parameters = plan.parameters();
        for strip in plan.strips() {
            for part in messages(strip.ciphertexts) {
                let work: Vec<(usize, Seed)> = part.map(|index| (index, prg.seed())).collect();
                let encrypted = work.into_par_iter().map(|(index, seed)| {
                    let mut message = vec![0; parameters.degree()];
                    fill(plan, strip, index, weights, &mut message);
                    let mut bytes = Vec::with_capacity(parameters.ciphertext_bytes());
                    self.secret.encrypt(&message, &mut Prg::from_seed(&seed), &mut bytes)?;
                    Ok::<_, Error>(bytes)
                });
                send(&encrypted.collect::<Result<Vec<_>, _>>()?.concat())?;
            }
        }
        Ok(())
    }

    /// Receives replies: the server's share of each product, `[rows, columns]`.
    ///
    /// # Errors
    /// [`crate::PeerMisbehaved`] for messages of the wrong length or form; [`Misuse::PlansDiffer`]; those of the channel.
    pub fn open(&self, channel: &mut Channel, plan: &Plan) -> Result<Vec<Vec<u64>>, Error> {
        self.check(plan)?;
        let (rows, width) = (plan.product().rows, plan.width());
        let mut shares = vec![0; rows * width];
        for strip in plan.strips() {
            let (positions, each) = (plan.positions(strip), plan.reply_bytes(strip));
            for message in messages(rows) {
                let bytes = channel.recv(message.len() * each)?;
                let opened = bytes.par_chunks(each).map(|reply| self.secret.open(reply, &positions));
                for (row, opened) in message.zip(opened.collect::<Result<Vec<_>, _>>()?) {
                    shares[row * width..][strip.columns.clone()].copy_from_slice(&opened);
                }
            }
        }
        Ok(apart(plan, &shares))
    }

    fn check(&self, plan: &Plan) -> Result<(), Error> {
        Ok(Misuse::check_plans("keys", self.secret.parameters().agrees_with(plan.parameters()))?)
    }
}

/// Lays a ciphertext's rows of a strip behind each other.
fn fill(plan: &Plan, strip: &Strip, index: usize, weights: &[&[i64]], message: &mut [u64]) {
    let (blocks, inner) = (strip.blocks, plan.product().inner);
    let (step, ring) = (blocks.width * blocks.block(message.len()), u64::MAX >> (64 - plan.parameters().ring_bits()));
    for (row, at) in (index * blocks.rows()..inner).zip((0..blocks.rows()).map(|row| row * step)) {
        for (member, weights) in plan.members().into_iter().zip(weights) {
            let columns = strip.columns.start.max(member.start)..strip.columns.end.min(member.end);
            if columns.is_empty() {
                continue;
            }
            let row = &weights[row * member.len()..][columns.start - member.start..columns.end - member.start];
            let places = &mut message[at + columns.start - strip.columns.start..];
            places.iter_mut().zip(row).for_each(|(place, w)| *place = (w.cast_unsigned() << plan.guard_bits()) & ring);
        }
    }
}
