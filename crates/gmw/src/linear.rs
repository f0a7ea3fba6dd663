//! Opening a shared vector to one party or to both.
//!
//! The online part of a linear layer is one opening to the server of the input behind the client's random mask
//! (the split of Delphi): offline the parties got shares of `W r`; the server then adds `W (x - r)` in the clear.

use privet_channel::Channel;
use privet_ot::Role;
use privet_ring::Modulus;

use crate::Error;

/// The server learns `x - r`; `share`: this party's share of x, `[n]`; `mask`: the client's `r`, which the server does
/// not have. The client gets nothing back.
///
/// One flight of `n k` bits ([`crate::cost::open_to_server`]).
pub fn open_to_server(
    channel: &mut Channel,
    share: &[u64],
    mask: Option<&[u64]>,
    ring: Modulus,
) -> Result<Option<Vec<u64>>, Error> {
    match mask {
        Some(mask) => {
            channel.send(&ring.pack(&ring.sub(share, mask)))?;
            Ok(None)
        }
        None => {
            let mut opened = ring.unpack(&channel.recv(ring.packed_bytes(share.len()))?, share.len())?;
            ring.add_assign(&mut opened, share);
            Ok(Some(opened))
        }
    }
}

/// The client learns `x`; `share`: this party's share, `[n]`. The server gets nothing.
///
/// One flight of `n k` bits ([`crate::cost::open_to_client`]).
pub fn open_to_client(
    channel: &mut Channel,
    role: Role,
    share: &[u64],
    ring: Modulus,
) -> Result<Option<Vec<u64>>, Error> {
    if role == Role::Server {
        channel.send(&ring.pack(share))?;
        return Ok(None);
    }
    let mut opened = ring.unpack(&channel.recv(ring.packed_bytes(share.len()))?, share.len())?;
    ring.add_assign(&mut opened, share);
    Ok(Some(opened))
}

/// Both learn `x`; `share`: this party's share, `[n]`.
///
/// One exchange of `n k` bits each way ([`crate::cost::open`]).
pub fn open(channel: &mut Channel, share: &[u64], ring: Modulus) -> Result<Vec<u64>, Error> {
    let mut opened = ring.unpack(&channel.exchange(&ring.pack(share))?, share.len())?;
    ring.add_assign(&mut opened, share);
    Ok(opened)
}
