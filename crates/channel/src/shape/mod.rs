//! Links that are slower than what really lies below: each direction delays by half a round trip and limits bandwidth.
//!
//! One side shapes both directions, so no clocks need to agree and no peer needs to know. A [`relay::Relay`] stands between
//! the TLS session and its socket.

mod line;
mod pacer;
mod relay;

pub(crate) use relay::Relay;
