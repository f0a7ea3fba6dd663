//! Every message of a server's first preparation, altered: what a client keeps of the server's weights is then of no use to anybody.

use std::time::Duration;

use privet_channel::pair;
use privet_channel::record::{self, Direction};
use privet_channel::tamper::{self, Action};
use privet_suites::sharing::Truncation;

use crate::deviating::Scene;
use crate::parties::{PATIENCE, RESIDUAL, StoreFolder};

/// Messages of the server before anything is made: the greeting, and its yes to the request.
const BEFORE: usize = 2;

/// How long the parties wait for a message that never comes.
const WAIT: Duration = Duration::from_secs(1);

/// How material ends that was made with an altered message.
#[derive(Debug, Default)]
struct Ends {
    /// There was none.
    unmade: usize,
    failed: usize,
    right: usize,
    wrong: usize,
}

fn folders() -> [StoreFolder; 2] {
    [StoreFolder::new(), StoreFolder::new()]
}

/// Bytes of the messages with which the server prepares.
fn lengths(scene: &Scene) -> Vec<usize> {
    let (near, far, transcript) = record::pair();
    scene.prepare_over((near, far), &folders()).0.expect("an honest deal");
    let transcript = transcript.lock().expect("no thread panicked");
    transcript.payloads(Direction::SecondToFirst).map(<[u8]>::len).skip(BEFORE).collect()
}

fn alter(scene: &Scene) -> Ends {
    let mut ends = Ends::default();
    for (message, length) in lengths(scene).into_iter().enumerate() {
        let last = 8 * length - 1;
        let mut actions: Vec<_> = [0, last / 3, last / 2, last - 1, last].map(|bit| Action::FlipBit { bit }).into();
        actions.extend([
            Action::Zero,
            Action::Randomise { seed: 5 },
            Action::ReplayPrevious,
            Action::SwapWithNext,
            Action::Shorten { by: 1 },
            Action::Drop,
        ]);
        for action in actions {
            let folders = folders();
            let (mut far, mut near, witness) = tamper::pair(BEFORE + message, action.clone());
            let wait = if matches!(action, Action::Drop | Action::SwapWithNext) { WAIT } else { PATIENCE };
            [&mut near, &mut far].into_iter().for_each(|channel| channel.set_timeout(wait));
            let result = scene.prepare_over((near, far), &folders).0;
            if !witness.happened() {
                continue;
            }
            match result.map(|id| scene.infer_on(&id, pair(), &folders).0) {
                Err(_) => ends.unmade += 1,
                Ok(Err(_)) => ends.failed += 1,
                Ok(Ok(outputs)) if scene.is_right(&outputs) => ends.right += 1,
                Ok(Ok(_)) => ends.wrong += 1,
            }
            // Whatever was altered, it is over with that.
            scene.serves(&folders);
        }
    }
    ends
}

#[test]
fn no_altered_message_of_a_preparation_chooses_an_output() {
    let ends = alter(&Scene::malicious(&RESIDUAL, Truncation::Exact));
    assert!(ends.wrong == 0 && ends.failed > 10 && ends.unmade > 2, "{ends:?}");
}
