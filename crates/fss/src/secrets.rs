//! Shares of what the dealer knows: the client's from its seed, the server's as corrections.

use privet_prg::Wiped;
use privet_ring::Modulus;
use zeroize::Zeroizing;

use crate::streams::Streams;
use crate::{Error, Role, Source};

/// Elements whose secrets are unpacked at once. A multiple of 64, so that each part of a packed column starts on a byte.
pub(crate) const PART: usize = 1024;

/// Bytes of corrections: each secret of a batch as a packed column.
pub(crate) fn bytes(rings: &[Modulus], count: usize) -> usize {
    rings.iter().map(|ring| ring.packed_bytes(count)).sum()
}

/// The server's shares of secrets, packed; `secrets(i, out)` gives those of element `i`.
pub(crate) fn correct(
    rings: &[Modulus],
    count: usize,
    client: &mut Streams,
    mut secrets: impl FnMut(usize, &mut [u64]),
) -> Vec<u8> {
    let mut packed: Vec<Vec<u8>> = rings.iter().map(|ring| Vec::with_capacity(ring.packed_bytes(count))).collect();
    let width = rings.len();
    let (mut values, mut client_shares) = (Zeroizing::new(vec![0; width]), Zeroizing::new(vec![0; width * PART]));
    let mut columns = Zeroizing::new(vec![[0; PART]; width]);
    for first in (0..count).step_by(PART) {
        let part = PART.min(count - first);
        client.shares(&mut client_shares[..width * part]);
        for (i, client_shares) in client_shares.chunks_exact(width).take(part).enumerate() {
            secrets(first + i, &mut values);
            for (column, (value, share)) in columns.iter_mut().zip(values.iter().zip(client_shares)) {
                column[i] = value.wrapping_sub(*share);
            }
        }
        for ((packed, ring), column) in packed.iter_mut().zip(rings).zip(columns.iter()) {
            packed.extend(ring.pack(&column[..part]));
        }
    }
    packed.concat()
}

/// Calls `work` with this party's shares of one secret of each element, [`PART`] at a time and with the first one's index; as many low bits count
/// as `ring` has.
pub(crate) fn each_part(
    ring: Modulus,
    count: usize,
    role: Role,
    streams: &mut Streams,
    body: &mut dyn Source,
    mut work: impl FnMut(usize, &mut [u64]),
) -> Result<(), Error> {
    let corrections = match role {
        Role::Client => &[],
        Role::Server => body.pull(ring.packed_bytes(count))?,
    };
    let mut shares = Wiped::from(vec![0; PART.min(count)]);
    for first in (0..count).step_by(PART) {
        let shares = &mut shares[..PART.min(count - first)];
        match role {
            Role::Client => streams.shares(shares),
            Role::Server => {
                let packed = &corrections[ring.packed_bytes(first)..][..ring.packed_bytes(shares.len())];
                ring.unpack_into(shares, packed);
            }
        }
        work(first, shares);
    }
    Ok(())
}

/// One value for each element from this party's shares of its secrets, of which as many low bits count as their rings have.
pub(crate) fn fold(
    rings: &[Modulus],
    count: usize,
    role: Role,
    streams: &mut Streams,
    body: &mut dyn Source,
    mut value: impl FnMut(usize, &[u64]) -> u64,
) -> Result<Vec<u64>, Error> {
    let corrections = match role {
        Role::Client => &[],
        Role::Server => body.pull(bytes(rings, count))?,
    };
    let width = rings.len();
    let most = PART.min(count);
    let (mut shares, mut column) = (Wiped::from(vec![0; width * most]), Wiped::from(vec![0; most]));
    let mut values = Vec::with_capacity(count);
    for first in (0..count).step_by(PART) {
        let part = PART.min(count - first);
        let shares = &mut shares[..width * part];
        match role {
            Role::Client => streams.shares(shares),
            Role::Server => {
                let mut begin = 0;
                for (at, ring) in rings.iter().enumerate() {
                    let packed = &corrections[begin + ring.packed_bytes(first)..][..ring.packed_bytes(part)];
                    ring.unpack_into(&mut column[..part], packed);
                    shares.chunks_exact_mut(width).zip(&*column).for_each(|(shares, share)| shares[at] = *share);
                    begin += ring.packed_bytes(count);
                }
            }
        }
        values.extend(shares.chunks_exact(width).enumerate().map(|(i, shares)| value(first + i, shares)));
    }
    Ok(values)
}
