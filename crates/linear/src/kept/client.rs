//! The client: products of the weights that it keeps with its random input, and replies.

use privet_bfv::{Group, Panel, PublicKey, Sum};
use privet_channel::Channel;
use privet_prg::{Prg, Seed};
use rayon::prelude::*;
use zeroize::Zeroizing;

use super::plan::{Plan, Strip};
use crate::error::{Error, Misuse};
use crate::mail::messages;

/// Multiplies kept weights by `r`, `[rows, inner]` elements of Z_2^`mask_bits`, and sends the server what it opens: the client's share of
/// each product, `[rows, columns]`. `read` gives the next bytes of the weights as [`super::ServerKeys::encrypt`] wrote them.
///
/// # Errors
/// [`crate::PeerMisbehaved`] if the weights are not well-formed; [`Misuse::WrongLength`], [`Misuse::PlansDiffer`] for a key of other
/// parameters; those of `read` and of the channel.
pub fn multiply<E: From<Error>>(
    channel: &mut Channel,
    plan: &Plan,
    key: &PublicKey,
    read: &mut dyn FnMut(&mut [u8]) -> Result<(), E>,
    r: &[u64],
    prg: &mut Prg,
) -> Result<Vec<Vec<u64>>, E> {
    let product = plan.product();
    Misuse::check_length("r", product.rows * product.inner, r.len()).map_err(Error::from)?;
    Misuse::check_plans("keys", plan.parameters().agrees_with(key.parameters())).map_err(Error::from)?;
    let unused = 64 - plan.mask_bits();
    let signed = r.iter().map(|&x| (x << unused).cast_signed() >> unused).collect();
    let signed: Zeroizing<Vec<i64>> = Zeroizing::new(signed);
    let width = plan.width();
    let mut shares = vec![0; product.rows * width];
    let mut workspace = (Panel::new(plan.parameters()), Vec::new());
    for strip in plan.strips() {
        let sums = sums(plan, strip, &mut workspace, read, &signed)?;
        let positions = plan.positions(strip);
        let mut sums = sums.into_iter();
        for message in messages(product.rows) {
            let work: Vec<(Sum, Seed)> = sums.by_ref().take(message.len()).map(|sum| (sum, prg.seed())).collect();
            let replies = work.into_par_iter().map(|(sum, seed)| {
                let mut reply = Vec::with_capacity(plan.reply_bytes(strip));
                let share = sum.reply(key, &positions, &mut Prg::from_seed(&seed), &mut reply)?;
                Ok::<_, Error>((reply, share))
            });
            let (replies, row_shares): (Vec<_>, Vec<_>) = replies.collect::<Result<Vec<_>, _>>()?.into_iter().unzip();
            channel.send(&replies.concat()).map_err(Error::from)?;
            for (row, share) in message.zip(row_shares) {
                shares[row * width..][strip.columns.clone()].copy_from_slice(&share);
            }
        }
    }
    Ok(apart(plan, &shares))
}

/// A strip's sum for each row.
fn sums<E: From<Error>>(
    plan: &Plan,
    strip: &Strip,
    (panel, bytes): &mut (Panel, Vec<u8>),
    read: &mut dyn FnMut(&mut [u8]) -> Result<(), E>,
    signed: &[i64],
) -> Result<Vec<Sum>, E> {
    let (parameters, inner) = (plan.parameters(), plan.product().inner);
    let (rows, per) = (plan.product().rows, strip.blocks.rows());
    let mut sums = vec![Sum::new(parameters); rows];
    let ciphertext_bytes = parameters.ciphertext_bytes();
    let at_once = rows.div_ceil(rayon::current_num_threads());
    for start in (0..strip.ciphertexts).step_by(Panel::MOST) {
        let count = Panel::MOST.min(strip.ciphertexts - start);
        bytes.resize(count * ciphertext_bytes, 0);
        read(bytes)?;
        let groups = panel.groups(count).map_err(Error::from)?.par_iter_mut();
        let filled = groups
            .zip(bytes.par_chunks(Group::MOST * ciphertext_bytes))
            .map(|(group, bytes)| group.read(parameters, bytes));
        filled.collect::<Result<(), _>>().map_err(Error::from)?;
        let multiplied = sums.par_chunks_mut(at_once).enumerate().map(|(chunk, sums)| {
            let factors = |row: usize| {
                let mut factors = Zeroizing::new(vec![0; count * per]);
                let row = &signed[(chunk * at_once + row) * inner..][..inner];
                let part = &row[(start * per).min(inner)..((start + count) * per).min(inner)];
                factors[..part.len()].copy_from_slice(part);
                factors
            };
            let factors: Vec<_> = (0..sums.len()).map(factors).collect();
            let factors: Vec<&[i64]> = factors.iter().map(|factors| factors.as_slice()).collect();
            panel.multiply_add(strip.blocks, sums, &factors)
        });
        multiplied.collect::<Result<(), _>>().map_err(Error::from)?;
    }
    Ok(sums)
}

/// The columns of each matrix, of `[rows, width]` results.
pub(super) fn apart(plan: &Plan, results: &[u64]) -> Vec<Vec<u64>> {
    let member = |columns: std::ops::Range<usize>| {
        results.chunks(plan.width()).flat_map(|row| &row[columns.clone()]).copied().collect()
    };
    plan.members().into_iter().map(member).collect()
}
