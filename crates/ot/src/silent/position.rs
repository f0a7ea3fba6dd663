//! Where an extension stands. Both parties and the cost formulas step through the same positions, so that every message
//! has a length that all of them know.

use std::ops::Range;

use super::parameters::Parameters;

/// Counts of what was made; no secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Position {
    ladder: &'static [Parameters],
    /// Which rung the current iteration stands on, and its next group; `None` before the first iteration.
    current: Option<(usize, usize)>,
    /// Outputs made and not handed out.
    ready: usize,
}

/// What is to be done next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// Start the first iteration, from OTs of another extension.
    Begin(Parameters),
    /// Grow these groups for the caller.
    Grow(Range<usize>),
    /// Grow these groups, and start the next iteration from them.
    Continue(Range<usize>, Parameters),
}

impl Position {
    pub(crate) fn new(ladder: &'static [Parameters]) -> Self {
        Self { ladder, current: None, ready: 0 }
    }

    /// Whether the first iteration is still to start.
    pub(crate) fn is_new(&self) -> bool {
        self.current.is_none()
    }

    /// The most OTs that a group gives.
    pub(crate) fn largest_group(&self) -> usize {
        self.ladder.iter().map(Parameters::group_outputs).max().unwrap_or(0)
    }

    /// What the first iteration starts from.
    pub(crate) fn first(&self) -> Parameters {
        self.ladder[0]
    }

    /// The next step towards `count` OTs, or `None` if they are ready; then they count as handed out.
    pub(crate) fn step(&mut self, count: usize) -> Option<Step> {
        if self.ready >= count {
            self.ready -= count;
            return None;
        }
        let Some((rung, group)) = self.current else {
            self.current = Some((0, 0));
            return Some(Step::Begin(self.ladder[0]));
        };
        let parameters = self.ladder[rung];
        let next_rung = (rung + 1).min(self.ladder.len() - 1);
        let next_parameters = self.ladder[next_rung];
        let free = parameters.free_groups(&next_parameters);
        if group == free {
            self.current = Some((next_rung, 0));
            return Some(Step::Continue(free..parameters.groups(), next_parameters));
        }
        let group_count = (count - self.ready).div_ceil(parameters.group_outputs());
        let groups = group..free.min(group + group_count);
        self.ready += groups.len() * parameters.group_outputs();
        self.current = Some((rung, groups.end));
        Some(Step::Grow(groups))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Size;
    use super::*;

    /// Every step towards `count` OTs.
    fn steps(position: &mut Position, count: usize) -> Vec<Step> {
        std::iter::from_fn(|| position.step(count)).collect()
    }

    #[test]
    fn every_group_is_grown_once_and_in_order() {
        for size in Size::ALL {
            let mut position = Position::new(size.ladder());
            let (mut next_group, mut blocks, mut asked, mut iterations) = (0, 0, 0, 0);
            let mut parameters = size.ladder()[0];
            while iterations < 5 {
                let count = asked % 300_007 + 1;
                asked += count;
                for step in steps(&mut position, count) {
                    match step {
                        Step::Begin(first) => assert_eq!((first, iterations), (parameters, 0)),
                        Step::Grow(groups) => {
                            assert_eq!(groups.start, next_group);
                            blocks += groups.len() * parameters.group_outputs();
                            next_group = groups.end;
                        }
                        Step::Continue(groups, following) => {
                            assert_eq!((groups.start, groups.end), (next_group, parameters.groups()));
                            assert!(groups.len() * parameters.group_outputs() >= following.base());
                            (parameters, next_group) = (following, 0);
                            iterations += 1;
                        }
                    }
                }
                assert_eq!(position.ready, blocks - asked);
                assert!(position.ready < parameters.group_outputs());
            }
            assert_eq!(Some(&parameters), size.ladder().last());
        }
    }

    #[test]
    fn nothing_asked_takes_no_step() {
        assert_eq!(Position::new(Size::Large.ladder()).step(0), None);
    }
}
