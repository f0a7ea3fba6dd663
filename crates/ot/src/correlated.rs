//! Correlated OT: what any OT extension gives, and all that the stock of correlations needs of it.

use privet_channel::Channel;
use privet_prg::Block;
use privet_ring::Bits;

use crate::Error;

/// The side that holds the global difference `delta` and, per OT, a block `q`.
///
/// With the peer's choice bit `c` and block `t`: `q ^ t = c * delta`. `delta` is uniform over all 128 bits.
pub trait CotSender: Send {
    /// The global difference; secret from the peer.
    fn delta(&self) -> Block;

    /// The blocks `q` of `count` fresh OTs. The peer must extend by the same count.
    ///
    /// # Errors
    /// [`Error::Channel`] if the link fails or the peer's message has a wrong length.
    fn extend(&mut self, channel: &mut Channel, count: usize) -> Result<Vec<Block>, Error>;
}

/// The side that holds, per OT, a random choice bit `c` and the block `t = q ^ c * delta`.
pub trait CotReceiver: Send {
    /// Choice bits and blocks `t` of `count` fresh OTs. The peer must extend by the same count.
    ///
    /// # Errors
    /// [`Error::Channel`] if the link fails.
    fn extend(&mut self, channel: &mut Channel, count: usize) -> Result<(Bits, Vec<Block>), Error>;
}
