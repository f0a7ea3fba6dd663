//! What windows read together.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::Range;

use crate::linear::weights::Windows;

/// The runs of inputs of some windows, each that is read more than once only once. Runs of padding are left out.
pub(super) struct Runs<'a> {
    length: usize,
    /// Runs in a window.
    each: usize,
    distinct: Vec<&'a [Option<usize>]>,
    /// For each run of each window its place among the distinct ones.
    places: Vec<Option<usize>>,
}

impl<'a> Runs<'a> {
    /// Runs of `length` inputs, a divisor of a window's, of the windows in `range`.
    pub fn of(windows: &'a Windows, length: usize, range: Range<usize>) -> Self {
        let each = windows.inputs() / length;
        let mut indices = HashMap::new();
        let mut distinct = Vec::new();
        let mut places = Vec::with_capacity(range.len() * each);
        for run in range.flat_map(|window| windows.window(window).chunks_exact(length)) {
            let padding = run.iter().all(Option::is_none);
            places.push((!padding).then(|| match indices.entry(run) {
                Entry::Occupied(place) => *place.get(),
                Entry::Vacant(free) => {
                    distinct.push(run);
                    *free.insert(distinct.len() - 1)
                }
            }));
        }
        Self { length, each, distinct, places }
    }

    /// Inputs of a run.
    pub fn length(&self) -> usize {
        self.length
    }

    /// How many runs differ.
    pub fn distinct(&self) -> usize {
        self.distinct.len()
    }

    /// How many runs all windows read together.
    pub fn read(&self) -> usize {
        self.places.iter().flatten().count()
    }

    /// The inputs of a run; none where padding is read.
    pub fn inputs(&self, place: usize) -> &'a [Option<usize>] {
        self.distinct[place]
    }

    /// The places of a window's runs, counted from the first of the windows.
    pub fn window(&self, index: usize) -> &[Option<usize>] {
        &self.places[index * self.each..][..self.each]
    }
}
