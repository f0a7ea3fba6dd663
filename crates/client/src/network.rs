//! How far a service is, for the choice of a depth of comparisons and of an OT extension.
//!
//! A TCP connection takes one round trip to whoever accepts it, which behind a proxy is not the service. So calls are timed as
//! well: they count where they take so much longer than a connection that somebody must be in between.

use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use privet_channel::Link;
use serde::de::IgnoredAny;

use crate::Error;
use crate::calls::Calls;

const TRIALS: usize = 3;
const ANSWERS: usize = 8;
const CONNECT: Duration = Duration::from_secs(5);

/// What the quickest of the answers may take besides the network, on a machine under load.
const BUSY: Duration = Duration::from_millis(30);

/// What the network to a service is taken for: its round trip, and the bandwidth of `wan`. Fails if the service does
/// not answer.
pub(crate) fn network_to(calls: &Calls) -> Result<Link, Error> {
    let connected = (0..TRIALS).filter_map(|_| connection(&calls.address)).min();
    let mut answered = Duration::MAX;
    for _ in 0..ANSWERS {
        let start = Instant::now();
        let _: IgnoredAny = calls.get("/v2/health/live", Duration::ZERO)?;
        answered = answered.min(start.elapsed());
        if let Some(connected) = connected.filter(|round_trip| answered <= *round_trip + BUSY) {
            return link(connected);
        }
    }
    link(answered)
}

fn link(rtt: Duration) -> Result<Link, Error> {
    let link = Link::new(rtt.min(Duration::from_secs(10)), Link::WAN.bits_per_second() as f64);
    link.map_err(|problem| Error::Misuse(problem.to_string()))
}

fn connection((host, port): &(String, u16)) -> Option<Duration> {
    let address = (host.as_str(), *port).to_socket_addrs().ok()?.next()?;
    let start = Instant::now();
    TcpStream::connect_timeout(&address, CONNECT).ok().map(|_| start.elapsed())
}
