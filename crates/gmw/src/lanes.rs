//! Which comparisons wait for which flights: either party begins half of them, and where round trips are long and comparisons many, each
//! half has some lanes. Why: `docs/decisions/comparisons-in-lanes.md`.

use std::ops::Range;

use privet_channel::Channel;
use privet_ot::{Role, Stock};
use privet_ring::Bits;

use crate::tables::{Adder, Step};
use crate::{Error, Party, Rounds};

/// The least number of comparisons in a lane, of which one flight takes some 150 KB.
const LANE: usize = 1 << 14;

const MOST_LANES: usize = 4;

/// This party's shares of the carries of one lane, some from each half, with their places.
pub(crate) type Carries = [(Range<usize>, Bits); 2];

/// An exchange that follows the carries of each lane.
pub(crate) trait LastExchange {
    /// This party's message, of a lane's carries.
    fn speak(&mut self, stock: &mut Stock, carries: Carries) -> Result<Vec<u8>, Error>;

    /// Bytes of the other party's message for the first lane that waits for one.
    fn expects(&self) -> usize;

    /// Takes that message in.
    fn listen(&mut self, stock: &Stock, reply: Vec<u8>) -> Result<(), Error>;
}

/// Of `n` comparisons, those whose first question is the client's and those whose first is the server's, in words of 64, each half by
/// lanes: all as even as they come.
pub(crate) fn halves(n: usize, rounds: Rounds) -> [Vec<usize>; 2] {
    let first = (n / 2).next_multiple_of(64).min(n);
    let lanes = if rounds == Rounds::Blocks { (n / LANE).clamp(1, MOST_LANES) } else { 1 };
    [first, n - first].map(|n| {
        let ends: Vec<usize> = (0..=lanes).map(|lane| (n * lane / lanes).next_multiple_of(64).min(n)).collect();
        ends.windows(2).map(|ends| ends[1] - ends[0]).collect()
    })
}

/// Who asks in a step of the first or the second half.
pub(crate) fn asker(half: usize, step: usize) -> Role {
    if (half + step).is_multiple_of(2) { Role::Client } else { Role::Server }
}

/// Runs all steps, of both halves of the summands.
///
/// A lane speaks as soon as its last flight has come, so flights of other lanes are made and are on the link while it waits.
pub(crate) fn run(
    party: &mut Party<'_>,
    planes: &[Bits],
    steps: &[Step],
    mut last_exchange: Option<&mut dyn LastExchange>,
) -> Result<[Vec<Adder>; 2], Error> {
    let (mut start, mut adders, mut places) = (0, [Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
    for (half, lanes) in halves(planes[0].len(), party.rounds).into_iter().enumerate() {
        for len in lanes {
            let planes = planes.iter().map(|plane| plane.slice(start, len)).collect();
            adders[half].push(Adder::new(party, half, planes, steps)?);
            places[half].push(start..start + len);
            start += len;
        }
    }
    let flights = steps.len() + 1;
    let around = |flight: usize| (flight.checked_sub(1).map(|step| steps[step]), steps.get(flight).copied());
    let receive = |channel: &mut Channel, lane: usize, bytes: usize| match lane {
        0 => channel.recv(bytes),
        _ => channel.recv_beside(bytes),
    };
    for flight in 0..=flights {
        for lane in 0..adders[0].len() {
            if let Some(last) = flight.checked_sub(1) {
                let listener = &mut adders[usize::from(asker(0, last) == party.role)][lane];
                let bits = listener.expects(around(last));
                let reply = receive(party.channel, lane, bits.div_ceil(8))?;
                listener.listen(around(last), &Bits::from_bytes(&reply, bits)?);
            }
            let message = if flight < flights {
                let mut message = Bits::default();
                adders[usize::from(asker(0, flight) != party.role)][lane].speak(around(flight), &mut message);
                message.to_bytes()
            } else if let Some(exchange) = &mut last_exchange {
                let carries = [0, 1].map(|half| (places[half][lane].clone(), adders[half][lane].generate[0].clone()));
                exchange.speak(party.stock, carries)?
            } else {
                continue;
            };
            party.channel.send(&message)?;
            party.channel.flush()?;
        }
    }
    if let Some(exchange) = last_exchange {
        for lane in 0..adders[0].len() {
            let reply = receive(party.channel, lane, exchange.expects())?;
            exchange.listen(party.stock, reply)?;
        }
    }
    Ok(adders)
}
