//! Correlated OT: what any OT extension gives, and all that the stock of correlations needs of it.

use privet_channel::Channel;
use privet_prg::Block;
use privet_ring::Bits;

use crate::Error;

/// The side that holds the global difference `delta` and, per OT, a block `q`.
///
/// With the peer's choice bit `c` and block `t`: `q ^ t = c * delta`. `delta` is uniform over at least 127 bits.
pub trait CotSender: Send {
    /// The global difference; secret from the peer.
    fn delta(&self) -> Block;

    /// Whether [`Self::extend`] sends, and the peer's receives; otherwise it is the other way round. A party that extends
    /// in both directions must send first.
    fn speaks(&self) -> bool {
        false
    }

    /// The blocks `q` of `count` fresh OTs, in memory that is written over by the next call and wiped on drop. The peer must extend by
    /// the same count.
    ///
    /// # Errors
    /// [`Error::Channel`] if the link fails or the peer's message has a wrong length.
    fn extend(&mut self, channel: &mut Channel, count: usize) -> Result<&[Block], Error>;
}

/// The side that holds, per OT, a random choice bit `c` and the block `t = q ^ c * delta`.
pub trait CotReceiver: Send {
    /// Sends what the peer must have before its first [`CotSender::extend`], if that is still to be sent.
    ///
    /// # Errors
    /// [`Error::Channel`] if the link fails.
    fn begin(&mut self, _channel: &mut Channel) -> Result<(), Error> {
        Ok(())
    }

    /// Choice bits and blocks `t` of `count` fresh OTs, the blocks as in [`CotSender::extend`]. The peer must extend by the same count.
    ///
    /// # Errors
    /// [`Error::Channel`] if the link fails or the peer's message has a wrong length.
    fn extend(&mut self, channel: &mut Channel, count: usize) -> Result<(Bits, &[Block]), Error>;
}
