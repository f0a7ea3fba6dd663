//! What a party keeps of a program's state between the inferences of one session.
//!
//! A sequence is what follows from one first step: each inference takes the state that the one before it left, once. It lives
//! in memory with its session, so that it is that of one client, and a session keeps one at a time. An inference that fails
//! leaves none.

use privet_program::{Program, ProgramHash};

/// A party's shares of the state of the inference that comes next, if one has begun.
#[derive(Default)]
pub(super) struct Sequence(Option<Kept>);

struct Kept {
    program: ProgramHash,
    suite: String,
    step: u64,
    shares: Vec<Vec<u64>>,
}

impl Sequence {
    /// The step that the next inference of a program in the suite of this label is: 0 unless its sequence is kept.
    pub(super) fn next(&self, program: &Program, suite: &str) -> u64 {
        self.0.as_ref().filter(|state| state.is_of(program, suite)).map_or(0, |state| state.step)
    }

    /// Takes the shares that `step` begins with, so that nobody gets them again. Step 0 gives up whatever was kept.
    ///
    /// # Errors
    /// What to tell the peer unless `step` is the next of the sequence that is kept, which stays.
    pub(super) fn take(&mut self, program: &Program, suite: &str, step: u64) -> Result<Vec<Vec<u64>>, String> {
        if step == 0 {
            self.0 = None;
            return Ok(program.zero_state());
        }
        match self.0.take_if(|state| state.is_of(program, suite) && state.step == step) {
            Some(state) => Ok(state.shares),
            None => Err(format!(
                "step {step} of a sequence was asked for, and step {} comes next",
                self.next(program, suite)
            )),
        }
    }

    /// Keeps the shares that `step` has left. Of a program without state there is nothing to keep.
    pub(super) fn keep(&mut self, program: &Program, suite: &str, step: u64, shares: Vec<Vec<u64>>) {
        if has_steps(program) {
            self.0 = Some(Kept { program: program.hash(), suite: suite.to_owned(), step: step + 1, shares });
        }
    }

    /// Gives up what is kept: the next inference is the first of another sequence.
    pub(super) fn end(&mut self) {
        self.0 = None;
    }
}

impl Kept {
    fn is_of(&self, program: &Program, suite: &str) -> bool {
        self.program == program.hash() && self.suite == suite
    }
}

/// Whether inferences of a program are steps of sequences.
pub(super) fn has_steps(program: &Program) -> bool {
    !program.state().is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUITE: &str = "gmw log one-bit";

    /// Adds its input to its state, and gives the sum.
    fn program(model: &str) -> Program {
        let value = |_| serde_json::json!({"shape": [2], "scale": 12});
        let file = serde_json::json!({
            "format": "privet-program", "version": 1, "model": model, "ring_bits": 37, "scale_bits": 12, "weight_bits": 16,
            "weights_commitment": "", "values": ([0, 1, 2].map(value)),
            "inputs": [{"name": "x", "value": 0}],
            "outputs": [{"name": "y", "value": 2, "client": null}],
            "state": [{"name": "sum", "input": 1, "output": 2}],
            "operations": [{"op": "add", "name": "add", "inputs": [0, 1], "output": 2}],
        });
        Program::parse(file.to_string().as_bytes()).expect("a program")
    }

    /// A sequence of which two steps are done.
    fn sequence(program: &Program) -> Sequence {
        let mut sequence = Sequence::default();
        for step in 0..2 {
            sequence.take(program, SUITE, step).expect("it is due");
            sequence.keep(program, SUITE, step, vec![vec![step, 7]]);
        }
        sequence
    }

    #[test]
    fn a_state_is_taken_once_by_the_step_that_comes_next() {
        let program = program("m");
        assert_eq!(Sequence::default().take(&program, SUITE, 0), Ok(vec![vec![0, 0]]));
        // The control: the step that is due.
        assert_eq!(sequence(&program).take(&program, SUITE, 2), Ok(vec![vec![1, 7]]));
        for wrong in [1, 3, u64::MAX] {
            let mut sequence = sequence(&program);
            assert!(sequence.take(&program, SUITE, wrong).is_err(), "step {wrong}");
            assert_eq!(sequence.next(&program, SUITE), 2);
        }
        // A step that failed leaves nothing: neither it nor the next can be asked for.
        let mut sequence = sequence(&program);
        sequence.take(&program, SUITE, 2).expect("it is due");
        assert_eq!([1, 2, 3].map(|step| sequence.take(&program, SUITE, step).is_ok()), [false; 3]);
    }

    #[test]
    fn a_state_is_of_one_program_suite_and_session() {
        let (first, second) = (program("m"), program("n"));
        assert!(sequence(&first).take(&second, SUITE, 2).is_err());
        assert!(sequence(&first).take(&first, "fss", 2).is_err());
        assert!(Sequence::default().take(&first, SUITE, 2).is_err());
        assert_eq!(
            [(&first, SUITE), (&first, "fss"), (&second, SUITE)].map(|(p, s)| sequence(&first).next(p, s)),
            [2, 0, 0]
        );
    }

    #[test]
    fn another_beginning_gives_up_what_was_kept() {
        let program = program("m");
        let mut sequence = sequence(&program);
        assert_eq!(sequence.take(&program, SUITE, 0), Ok(vec![vec![0, 0]]));
        assert!(sequence.take(&program, SUITE, 2).is_err());
    }
}
