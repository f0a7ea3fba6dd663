//! Two parties that compute on shares.

mod cost;
mod field;
mod pair;
mod privacy;
mod relations;
