//! The client: encryption of its random input, decryption of its share.

use privet_channel::Channel;
use privet_prg::Prg;
use rayon::prelude::*;

use crate::error::{Error, Misuse};
use crate::mail::send_encrypted;

use super::keys::ClientKeys;
use super::plan::{Plan, messages};

/// Encrypts and sends a layer's input: the client's uniform `r`, `[plan.input_len()]` residues modulo `p`, row-major. Call it for
/// all layers before the first [`decrypt`].
///
/// # Errors
/// [`Misuse::WrongLength`], [`Misuse::PlansDiffer`] for keys of other parameters; those of the channel.
pub fn encrypt(channel: &mut Channel, plan: &Plan, keys: &ClientKeys, r: &[u64], prg: &mut Prg) -> Result<(), Error> {
    keys.check(plan)?;
    Misuse::check_length("r", plan.input_len(), r.len())?;
    let inputs = plan.packing().inputs;
    let sizes = (plan.parameters().degree(), plan.parameters().ciphertext_bytes());
    let messages = messages(plan.input_ciphertexts());
    let fill = |index, slots: &mut [u64]| plan.packing().fill_input(index / inputs, index % inputs, r, slots);
    send_encrypted(channel, messages, sizes, prg, fill, |slots, prg, out| keys.secret.encrypt(slots, prg, out))
}

/// Receives a layer's replies: the client's share of `W r`, `[plan.output_len()]` residues modulo `p`, row-major.
///
/// # Errors
/// [`crate::PeerMisbehaved`] for messages of the wrong length or form; [`Misuse::PlansDiffer`] for keys of other
/// parameters; those of the channel.
pub fn decrypt(channel: &mut Channel, plan: &Plan, keys: &ClientKeys) -> Result<Vec<u64>, Error> {
    keys.check(plan)?;
    let mut output = vec![0; plan.output_len()];
    let reply_bytes = plan.parameters().reply_bytes();
    for message in messages(plan.output_ciphertexts()) {
        let bytes = channel.recv(message.len() * reply_bytes)?;
        let open = |(index, reply)| Ok::<_, Error>((index, keys.secret.open(reply)?));
        let replies: Vec<(usize, &[u8])> = message.zip(bytes.chunks(reply_bytes)).collect();
        let opened: Vec<(usize, Vec<u64>)> = replies.into_par_iter().map(open).collect::<Result<_, _>>()?;
        opened.iter().for_each(|(index, slots)| gather(plan, *index, slots, &mut output));
    }
    Ok(output)
}

/// Adds the shares in the slots of an output ciphertext to the results that they are of.
pub(super) fn gather(plan: &Plan, index: usize, slots: &[u64], output: &mut [u64]) {
    let (field, outputs) = (plan.field(), plan.packing().outputs);
    for (slot, place) in plan.packing().results(index / outputs, index % outputs) {
        output[place] = field.add(output[place], slots[slot]);
    }
}
