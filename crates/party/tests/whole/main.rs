//! Whole programs between two parties in one process: results, costs, privacy, and what bad peers can do.

mod costs;
mod parties;
mod privacy;
mod results;
