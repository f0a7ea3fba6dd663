//! What lies between two parties: a latency and a bandwidth.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::error::Misuse;

/// The longest round trip: a minute.
const LONGEST_RTT: Duration = Duration::from_secs(60);

/// Bits per second, from a thousand to a hundred thousand million.
const BANDWIDTHS: std::ops::RangeInclusive<f64> = 1e3..=1e11;

/// The most bytes on their way at once: they are held in memory.
const MOST_IN_FLIGHT: f64 = (256_u64 << 20) as f64;

/// Units of time in seconds, and of bandwidth in bits per second.
const TIMES: [(&str, f64); 3] = [("us", 1e-6), ("ms", 1e-3), ("s", 1.0)];
const RATES: [(&str, f64); 6] = [("kbit", 1e3), ("Mbit", 1e6), ("Gbit", 1e9), ("kB", 8e3), ("MB", 8e6), ("GB", 8e9)];

/// A network link to shape a channel to ([`crate::Channel::shaped`]): the same in both directions, and full duplex.
///
/// `n` bytes sent at time `t` arrive at `max(t, when the link is free) + 8 n / bandwidth + rtt / 2`; the link is free
/// again half a round trip before that.
///
/// As text: `lan`, `wan`, or round-trip time and bandwidth, such as `20ms,100Mbit`. Times are in `us`, `ms` or `s`,
/// bandwidths in `kbit`, `Mbit`, `Gbit`, or bytes in `kB`, `MB`, `GB`, all per second (`/s` may be written).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Link {
    rtt: Duration,
    bits_per_second: u64,
}

impl Link {
    /// The local network of Cheetah (Huang, Lu, Hong, Ding, USENIX Security 2022) and of its public scripts: 0.3 ms there
    /// and back, 384 MB/s. SecONNds keeps both parties on one machine and names no link.
    pub const LAN: Self = Self { rtt: Duration::from_micros(300), bits_per_second: 384 * 8_000_000 };

    /// The wide-area network of Cheetah: 40 ms there and back, 44 MB/s.
    pub const WAN: Self = Self { rtt: Duration::from_millis(40), bits_per_second: 44 * 8_000_000 };

    /// A link with this round-trip time and this bandwidth in each direction.
    ///
    /// # Errors
    /// [`Misuse::Link`] above a minute, outside 1 kbit/s to 100 Gbit/s, or if over 256 MiB would be on their way at once.
    pub fn new(rtt: Duration, bits_per_second: f64) -> Result<Self, Misuse> {
        let refuse = |problem| Err(Misuse::Link { text: format!("{rtt:?},{bits_per_second}bit"), problem });
        if rtt > LONGEST_RTT {
            return refuse("a round trip takes at most a minute");
        }
        if !BANDWIDTHS.contains(&bits_per_second) {
            return refuse("the bandwidth is between 1 kbit and 100 Gbit");
        }
        if rtt.as_secs_f64() / 2.0 * bits_per_second / 8.0 > MOST_IN_FLIGHT {
            return refuse("more than 256 MiB would be on their way at once");
        }
        Ok(Self { rtt, bits_per_second: bits_per_second.round() as u64 })
    }

    /// Time there and back for a message without length.
    pub fn rtt(&self) -> Duration {
        self.rtt
    }

    /// Bandwidth of each direction.
    pub fn bits_per_second(&self) -> u64 {
        self.bits_per_second
    }

    /// Time one way for a message without length.
    pub(crate) fn latency(&self) -> Duration {
        self.rtt / 2
    }

    /// How long `bytes` bytes keep the link busy.
    pub(crate) fn transmission(&self, bytes: usize) -> Duration {
        Duration::from_secs_f64(bytes as f64 * 8.0 / self.bits_per_second as f64)
    }

    /// Bytes that the link takes in `time`.
    pub(crate) fn bytes_in(&self, time: Duration) -> usize {
        (time.as_secs_f64() * self.bits_per_second as f64 / 8.0) as usize
    }
}

impl FromStr for Link {
    type Err = Misuse;

    fn from_str(text: &str) -> Result<Self, Misuse> {
        match text {
            "lan" => return Ok(Self::LAN),
            "wan" => return Ok(Self::WAN),
            _ => {}
        }
        let refuse = |problem| Misuse::Link { text: text.to_owned(), problem };
        let (rtt, bandwidth) = text.split_once(',').ok_or_else(|| refuse("it has no comma"))?;
        let seconds = measure(rtt, &TIMES).ok_or_else(|| refuse("the time is a number and us, ms or s"))?;
        let bandwidth = bandwidth.trim_end().trim_end_matches("/s");
        let bits_per_second = measure(bandwidth, &RATES)
            .ok_or_else(|| refuse("the bandwidth is a number and kbit, Mbit, Gbit, kB, MB or GB"))?;
        // Above any bound that `new` draws, whatever was written.
        let rtt = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
        Self::new(rtt, bits_per_second).map_err(|error| match error {
            Misuse::Link { problem, .. } => refuse(problem),
            other => other,
        })
    }
}

/// A number that is not negative, with one of the units.
fn measure(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let text = text.trim();
    let split = text.find(|c: char| c.is_ascii_alphabetic())?;
    let (number, unit) = text.split_at(split);
    let number: f64 = number.trim_end().parse().ok()?;
    let (_, factor) = units.iter().find(|(name, _)| *name == unit)?;
    (number >= 0.0).then_some(number * factor)
}

impl fmt::Display for Link {
    /// The text that [`Link::from_str`] takes, such as `40ms,352Mbit`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rate, unit) = match self.bits_per_second {
            rate @ 1_000_000_000.. => (rate as f64 / 1e9, "Gbit"),
            rate @ 1_000_000.. => (rate as f64 / 1e6, "Mbit"),
            rate => (rate as f64 / 1e3, "kbit"),
        };
        write!(f, "{}ms,{rate}{unit}", self.rtt.as_secs_f64() * 1e3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(text: &str) -> Result<Link, Misuse> {
        text.parse()
    }

    #[test]
    fn links_are_read_and_written() {
        let plain = Link::new(Duration::from_millis(20), 100e6);
        for text in ["20ms,100Mbit", "20000us,0.1Gbit/s", " 0.02s , 12.5 MB/s ", "20ms,12500kB"] {
            assert_eq!(link(text), plain, "{text}");
        }
        for (text, written) in [
            ("lan", "0.3ms,3.072Gbit"),
            ("wan", "40ms,352Mbit"),
            ("0s,1kbit", "0ms,1kbit"),
            ("1us,5kbit", "0.001ms,5kbit"),
        ] {
            assert_eq!(link(text).map(|link| link.to_string()).as_deref(), Ok(written));
            assert_eq!(link(written), link(text));
        }
    }

    #[test]
    fn other_texts_are_refused_and_say_why() {
        for (text, part) in [
            ("man", "no comma"),
            ("40,1Mbit", "us, ms or s"),
            ("ms,1Mbit", "us, ms or s"),
            ("-1ms,1Mbit", "us, ms or s"),
            ("infs,1Mbit", "us, ms or s"),
            ("61s,1Mbit", "a minute"),
            ("99999999999999999999999s,1Mbit", "a minute"),
            ("1e3s,1Mbit", "us, ms or s"),
            ("40ms,352", "kbit, Mbit"),
            ("40ms,352Mbps", "kbit, Mbit"),
            ("40ms,NaNMbit", "kbit, Mbit"),
            ("40ms,0Mbit", "1 kbit and 100 Gbit"),
            ("40ms,101Gbit", "1 kbit and 100 Gbit"),
            ("60s,1Gbit", "256 MiB"),
        ] {
            let error = link(text).expect_err(text).to_string();
            assert!(error.contains(part) && error.contains(text) && error.contains("20ms,100Mbit"), "{error}");
        }
    }
}
