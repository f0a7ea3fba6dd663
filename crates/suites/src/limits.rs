//! What one inference may come to at most, whoever compiled the program.
//!
//! A client plans what a server describes before it decides to run it, and a server whatever a client asks for. Programs are
//! bounded as files (`privet_program`); these limits bound what a plan makes of them, so that neither planning nor a count
//! overflows. They are far above what runs on one machine: what is too much for a machine is refused by its memory and disk.

use crate::Error;

/// Oblivious transfers in either direction: 14 GB of correlations at a client, twelve times those of a ResNet-50.
pub const MOST_TRANSFERS: usize = 1 << 35;

/// BFV ciphertexts that both parties send: 170 GB at the largest degree.
pub const MOST_CIPHERTEXTS: usize = 1 << 20;

/// Bytes of one material entry at either party.
pub const MOST_MATERIAL: u64 = 1 << 38;

/// # Errors
/// [`Error::Misuse`] with the figure that is above its limit.
pub(crate) fn check(transfers: usize, ciphertexts: usize, material: u64) -> Result<(), Error> {
    let figures = [
        ("oblivious transfers", transfers as u64, MOST_TRANSFERS as u64),
        ("ciphertexts", ciphertexts as u64, MOST_CIPHERTEXTS as u64),
        ("bytes of material", material, MOST_MATERIAL),
    ];
    match figures.into_iter().find(|(_, actual, limit)| actual > limit) {
        None => Ok(()),
        Some((what, actual, limit)) => Err(Error::Misuse(format!(
            "an inference of this program takes {actual} {what}, and {limit} is the most: take a smaller model, input or batch"
        ))),
    }
}
