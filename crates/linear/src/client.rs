//! The client: keys, encryption of its random input, decryption of its share.

use privet_bfv::{Parameters, PublicKey, SecretKey};
use privet_channel::Channel;
use privet_prg::Prg;
use rayon::prelude::*;

use crate::error::{Error, Misuse};
use crate::mail::{messages, send_encrypted};
use crate::packing::Places;
use crate::plan::Plan;

/// The client's keys for all layers under the same parameters. Made for one session and never stored.
pub struct ClientKeys {
    secret: SecretKey,
}

impl ClientKeys {
    /// Fresh keys.
    pub fn generate(parameters: &Parameters, prg: &mut Prg) -> Self {
        Self { secret: SecretKey::generate(parameters, prg) }
    }

    /// What they were made for.
    pub fn parameters(&self) -> &Parameters {
        self.secret.parameters()
    }

    /// Sends a public key, once per session: [`Plan::public_key_cost`].
    ///
    /// # Errors
    /// Those of the channel.
    pub fn send_public_key(&self, channel: &mut Channel, prg: &mut Prg) -> Result<(), Error> {
        Ok(channel.send(&self.secret.public_key(prg))?)
    }

    fn check(&self, plan: &Plan) -> Result<(), Error> {
        Ok(Misuse::check_plans("keys", self.parameters().agrees_with(plan.parameters()))?)
    }
}

/// The server's half of [`ClientKeys::send_public_key`].
///
/// # Errors
/// [`crate::PeerMisbehaved`] if what comes is not a public key for these parameters; those of the channel.
pub fn receive_public_key(channel: &mut Channel, parameters: &Parameters) -> Result<PublicKey, Error> {
    let bytes = channel.recv(parameters.public_key_bytes())?;
    Ok(PublicKey::from_bytes(parameters, &bytes)?)
}

/// Encrypts and sends a layer's input: the client's random `r`, `[plan.input_len()]` elements of Z_2^l, row-major.
///
/// Call it for all layers of a program before the first [`decrypt`], in the order in which the server evaluates them: the
/// whole offline phase is then one round.
///
/// # Errors
/// [`Misuse::WrongLength`], [`Misuse::PlansDiffer`] for keys of other parameters; those of the channel.
pub fn encrypt(channel: &mut Channel, plan: &Plan, keys: &ClientKeys, r: &[u64], prg: &mut Prg) -> Result<(), Error> {
    keys.check(plan)?;
    Misuse::check_length("r", plan.input_len(), r.len())?;
    let sizes = (plan.parameters().degree(), plan.parameters().ciphertext_bytes());
    let messages = messages(plan.input_ciphertexts());
    let fill = |index, polynomial: &mut [u64]| plan.packing().fill_input(index, r, polynomial);
    send_encrypted(channel, messages, sizes, prg, fill, |polynomial, prg, out| {
        keys.secret.encrypt(polynomial, prg, out)
    })
}

/// Receives a layer's replies: the client's share of `W r`, `[plan.output_len()]` elements of Z_2^l, row-major.
///
/// # Errors
/// [`crate::PeerMisbehaved`] for messages of the wrong length or form; [`Misuse::PlansDiffer`] for keys of other
/// parameters; those of the channel.
pub fn decrypt(channel: &mut Channel, plan: &Plan, keys: &ClientKeys) -> Result<Vec<u64>, Error> {
    keys.check(plan)?;
    let mut output = vec![0; plan.output_len()];
    for message in messages(plan.output_ciphertexts()) {
        let lengths: Vec<usize> = message.clone().map(|index| plan.reply_bytes(index)).collect();
        let bytes = channel.recv(lengths.iter().sum())?;
        let mut rest = bytes.as_slice();
        let replies: Vec<(usize, &[u8])> = message
            .zip(lengths)
            .map(|(index, length)| {
                let (reply, after) = rest.split_at(length);
                rest = after;
                (index, reply)
            })
            .collect();
        let opened: Vec<(Places, Vec<u64>)> = replies
            .into_par_iter()
            .map(|(index, reply)| {
                let (positions, places) = plan.packing().results(index);
                Ok::<_, Error>((places, keys.secret.open(reply, &positions)?))
            })
            .collect::<Result<_, _>>()?;
        for (places, shares) in opened {
            places.put(&shares, &mut output);
        }
    }
    Ok(output)
}
