//! Whole programs between two parties in one process: results, costs, privacy, and what bad peers can do.

mod authenticated;
mod chunked;
mod costs;
mod dealt;
mod deviating;
mod gates;
mod hostile_programs;
mod ideal;
mod kept_base;
mod lying;
mod material;
mod oneshot;
mod overflow;
mod parties;
mod policy;
mod privacy;
mod products;
mod requests;
mod results;
mod room;
mod security;
mod sharing_a_store;
mod spoiling;
mod state;
mod stream;
mod tampering;
