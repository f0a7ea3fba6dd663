//! When bytes arrive that are sent over a link one after the other.

use std::time::{Duration, Instant};

use crate::link::Link;

/// Bytes travel in packets that keep the link busy for about this long, so that small messages in one stretch of bytes
/// arrive one after the other.
const PACKET_TIME: Duration = Duration::from_millis(1);

/// No packet is shorter (a common one on Ethernet) or longer (more would gain nothing).
const PACKET_BYTES: std::ops::RangeInclusive<usize> = 1500..=64 * 1024;

/// The clock of one direction of a link.
pub(crate) struct Pacer {
    link: Link,
    /// When everything sent so far has left.
    free: Instant,
}

impl Pacer {
    pub fn new(link: Link) -> Self {
        Self { link, free: Instant::now() }
    }

    /// When the last of `bytes` bytes arrives that are sent at `now`.
    pub fn due(&mut self, now: Instant, bytes: usize) -> Instant {
        self.free = self.free.max(now) + self.link.transmission(bytes);
        self.free + self.link.latency()
    }

    /// The most bytes to send under one due time.
    pub fn packet_bytes(&self) -> usize {
        self.link.bytes_in(PACKET_TIME).clamp(*PACKET_BYTES.start(), *PACKET_BYTES.end())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_waits_for_those_before_it_and_pays_latency_once() {
        let link = Link::new(Duration::from_millis(20), 8e6).expect("a link");
        let mut pacer = Pacer::new(link);
        let start = Instant::now() + Duration::from_secs(1);
        let after = |millis| start + Duration::from_millis(millis);
        assert_eq!(pacer.due(start, 3000), after(3 + 10));
        assert_eq!(pacer.due(start, 1000), after(4 + 10));
        assert_eq!(pacer.due(after(2), 0), after(4 + 10));
        assert_eq!(pacer.due(after(50), 1000), after(51 + 10));
    }
}
