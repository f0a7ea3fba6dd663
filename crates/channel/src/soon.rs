//! Looking again and again for bytes that come soon, as a thread that sleeps takes longer to wake up than a peer nearby to answer.

use std::hint;
use std::time::{Duration, Instant};

use crate::deadline::Deadline;
use crate::error::Error;

/// How long a thread looks before it sleeps.
const SOON: Duration = Duration::from_micros(40);

/// After this many waits in a row that were longer, one of `2^MOST` begins with looking.
const MOST: u32 = 6;

/// Whether waits are worth looking, from how long the last ones took: those for a peer far away, or for one that computes, are not.
#[derive(Default)]
pub(crate) struct Soon {
    /// Looks in a row that found nothing, at most [`MOST`].
    vain: u32,
    /// Waits to come that begin with sleep.
    asleep: u32,
}

impl Soon {
    /// Calls `look` until it finds something, for a short time or not at all; returns whether it did.
    ///
    /// # Errors
    /// What `look` fails with; if `deadline` has passed, as if this thread had slept.
    pub fn comes(&mut self, deadline: &Deadline, mut look: impl FnMut() -> Result<bool, Error>) -> Result<bool, Error> {
        if self.asleep > 0 {
            self.asleep -= 1;
            return Ok(false);
        }
        deadline.remaining()?;
        let begun = Instant::now();
        loop {
            if look()? {
                self.vain = 0;
                return Ok(true);
            }
            if begun.elapsed() >= SOON {
                break;
            }
            // It keeps its core, for so short a time: where others are busy, who yields has to wait for milliseconds until it is back.
            hint::spin_loop();
        }
        self.vain = MOST.min(self.vain + 1);
        self.asleep = (1 << self.vain) - 1;
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Io;

    #[test]
    fn waits_that_take_long_are_looked_into_ever_more_rarely() -> Result<(), Error> {
        let (mut soon, mut looked) = (Soon::default(), Vec::new());
        let deadline = Deadline::after(Duration::from_secs(60), "a test");
        for _ in 0..300 {
            let mut times = 0;
            let came = soon.comes(&deadline, || {
                times += 1;
                Ok(false)
            });
            assert!(!came?);
            looked.push(times > 0);
        }
        let places: Vec<usize> = (0..300).filter(|&at| looked[at]).collect();
        assert_eq!(places, [0, 2, 6, 14, 30, 62, 126, 190, 254]);
        // What comes at once is found, and looked for each time from then on.
        let count = (0..100).filter(|_| soon.comes(&deadline, || Ok(true)) == Ok(true)).count();
        assert!(count >= 100 - (1 << MOST), "{count}");
        Ok(())
    }

    #[test]
    fn a_peer_that_trickles_bytes_soon_is_given_up() {
        let deadline = Deadline::after(Duration::ZERO, "a test");
        let came = Soon::default().comes(&deadline, || Ok(true));
        assert!(matches!(came, Err(Error::Io(Io::TimedOut { waiting_for: "a test", .. }))));
    }
}
