//! Oblivious transfers between two parties.

mod cost;
mod hostile;
mod material;
mod parties;
mod secrecy;
mod silent;
mod stock;
