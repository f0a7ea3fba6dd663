//! Looking again and again for bytes that come soon, as a thread that sleeps takes longer to wake up than a peer nearby to answer.

use std::thread;
use std::time::{Duration, Instant};

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
    /// What `look` fails with.
    pub fn comes<E>(&mut self, mut look: impl FnMut() -> Result<bool, E>) -> Result<bool, E> {
        if self.asleep > 0 {
            self.asleep -= 1;
            return Ok(false);
        }
        let begun = Instant::now();
        while begun.elapsed() < SOON {
            // Whoever else wants this core gets it.
            thread::yield_now();
            if look()? {
                self.vain = 0;
                return Ok(true);
            }
        }
        self.vain = MOST.min(self.vain + 1);
        self.asleep = (1 << self.vain) - 1;
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    #[test]
    fn waits_that_take_long_are_looked_into_ever_more_rarely() {
        let (mut soon, mut looked) = (Soon::default(), Vec::new());
        for _ in 0..300 {
            let mut times = 0;
            let Ok(found) = soon.comes(|| {
                times += 1;
                Ok::<_, Infallible>(false)
            });
            assert!(!found);
            looked.push(times > 0);
        }
        let places: Vec<usize> = (0..300).filter(|&at| looked[at]).collect();
        assert_eq!(places, [0, 2, 6, 14, 30, 62, 126, 190, 254]);
        // What comes at once is found, and looked for each time from then on.
        let found = (0..100).filter(|_| soon.comes(|| Ok::<_, Infallible>(true)) == Ok(true)).count();
        assert!(found >= 100 - (1 << MOST), "{found}");
    }
}
