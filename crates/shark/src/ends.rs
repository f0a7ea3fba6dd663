//! Where values enter and leave a run: the client's input and the client's output.

use privet_fss::{KeyBytes, Role};
use privet_ring::Modulus;

use crate::dealer::MASK_BYTES;
use crate::{Error, Masked, Party, Values};

/// What the client's input or output of `count` values takes of a key.
pub fn key_bytes(count: usize) -> KeyBytes {
    KeyBytes { words: 0, corrections: count * MASK_BYTES }
}

impl Party<'_> {
    /// The client's input, with its values `x` in `ring` behind masks from [`Party::input_masks`]. Sends the bits of `ring` for each.
    ///
    /// # Panics
    /// At the server: it has [`Party::input_of_client`].
    ///
    /// # Errors
    /// If the link fails.
    pub fn input(&mut self, x: &[u64], ring: Modulus, mask: Values) -> Result<Masked, Error> {
        assert_eq!(self.role(), Role::Client, "the input is the client's");
        let masked: Vec<u64> = x.iter().zip(mask.shares()).map(|(x, r)| x.wrapping_add(*r as u64)).collect();
        let message = ring.pack(&masked);
        // The server starts on it while the client works on its own part.
        self.send_now(&message)?;
        self.entered(&message, ring, masked, mask)
    }

    /// The client's input at the server, with its masks.
    ///
    /// # Errors
    /// If the link fails or the message has bits behind its end.
    pub fn input_of_client(&mut self, ring: Modulus, mask: Values) -> Result<Masked, Error> {
        let count = mask.len();
        let message = self.receive(ring.packed_bytes(count))?;
        let masked = ring.unpack(&message, count)?;
        self.ensure_padding(ring.pack(&masked) == message)?;
        self.entered(&message, ring, masked, mask)
    }

    /// Both parties must have the same message in mind.
    fn entered(&mut self, message: &[u8], ring: Modulus, masked: Vec<u64>, mask: Values) -> Result<Masked, Error> {
        self.state(message);
        let masked: Vec<u128> = masked.into_iter().map(u128::from).collect();
        Ok(Masked::new(ring, &masked, mask))
    }

    /// Gives the client, and nobody else, the values `y` in `ring`, and ends the run.
    ///
    /// What was opened before is checked first: a client that altered an opening would otherwise get the server's share of
    /// another function of the weights. Then `y` is opened behind a mask of which the client knows the bits of `ring`, and
    /// checked again before the client looks at it: a server that altered its share would otherwise choose the output.
    ///
    /// # Errors
    /// If the link fails or a check does. The client has no output then.
    pub fn reveal(mut self, y: &Values, ring: Modulus) -> Result<Option<Vec<u64>>, Error> {
        self.check()?;
        let mask = self.output_masks(ring, y.len())?;
        let opened = self.open_owned(y.add(&mask))?;
        self.check()?;
        let unmask = |(y, r): (&u128, &u128)| ring.reduce(y.wrapping_sub(*r) as u64);
        Ok(match self.role() {
            Role::Client => Some(opened.iter().zip(mask.shares()).map(unmask).collect()),
            Role::Server => None,
        })
    }
}
