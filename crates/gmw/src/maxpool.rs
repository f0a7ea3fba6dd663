//! MaxPool as a knockout tournament: all windows play each round at once.

use privet_ring::window::Groups;
use privet_ring::{Modulus, tournament};

use crate::{Error, Party, relu};

/// Shares of the maximum of each group; `x`: this party's share in Z_2^k, `groups`: indices into `x`, each group with
/// at least one. Where a difference does not fit below 2^(k-1), its sign in the ring decides.
///
/// Groups of `w` take `w - 1` comparisons in `log2 w` levels, rounded up, where a running maximum takes `w - 1` levels.
pub fn max_pool(party: &mut Party<'_>, x: &[u64], groups: &Groups, ring: Modulus) -> Result<Vec<u64>, Error> {
    tournament::maxima(x, groups, ring, |differences| relu(party, differences, ring))
}
