//! The client: encryption of its random input, decryption of its share.

use privet_channel::Channel;
use privet_prg::{Prg, Seed};
use rayon::prelude::*;
use zeroize::Zeroizing;

use crate::error::{Error, Misuse};

use super::keys::ClientKeys;
use super::plan::{Plan, messages};

/// Encrypts and sends a layer's input: the client's uniform `r`, `[plan.input_len()]` residues modulo `p`, row-major. Call it for
/// all layers before the first [`decrypt`].
///
/// # Errors
/// [`Misuse::WrongLength`], [`Misuse::PlansDiffer`] for keys of other parameters; those of the channel.
pub fn encrypt(channel: &mut Channel, plan: &Plan, keys: &ClientKeys, r: &[u64], prg: &mut Prg) -> Result<(), Error> {
    keys.check(plan)?;
    if r.len() != plan.input_len() {
        return Err(Misuse::WrongLength { what: "r", expected: plan.input_len(), actual: r.len() }.into());
    }
    let inputs = plan.packing().inputs;
    for message in messages(plan.input_ciphertexts()) {
        let work: Vec<(usize, Seed)> = message.map(|index| (index, prg.seed())).collect();
        let ciphertexts: Vec<Vec<u8>> = work
            .into_par_iter()
            .map(|(index, seed)| {
                let mut slots = Zeroizing::new(vec![0; plan.parameters().degree()]);
                plan.packing().fill_input(index / inputs, index % inputs, r, &mut slots);
                let mut bytes = Vec::with_capacity(plan.parameters().ciphertext_bytes());
                keys.secret.encrypt(&slots, &mut Prg::from_seed(&seed), &mut bytes)?;
                Ok::<_, Error>(bytes)
            })
            .collect::<Result<_, _>>()?;
        channel.send(&ciphertexts.concat())?;
    }
    Ok(())
}

/// Receives a layer's replies: the client's share of `W r`, `[plan.output_len()]` residues modulo `p`, row-major.
///
/// # Errors
/// [`crate::PeerMisbehaved`] for messages of the wrong length or form; [`Misuse::PlansDiffer`] for keys of other
/// parameters; those of the channel.
pub fn decrypt(channel: &mut Channel, plan: &Plan, keys: &ClientKeys) -> Result<Vec<u64>, Error> {
    keys.check(plan)?;
    let mut output = vec![0; plan.output_len()];
    let each = plan.parameters().reply_bytes();
    for message in messages(plan.output_ciphertexts()) {
        let bytes = channel.recv(message.len() * each)?;
        let open = |(index, reply)| Ok::<_, Error>((index, keys.secret.open(reply)?));
        let replies: Vec<(usize, &[u8])> = message.zip(bytes.chunks(each)).collect();
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
