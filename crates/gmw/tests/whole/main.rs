//! Two parties that compute on shares.

mod cost;
mod field;
mod lanes;
mod pair;
mod privacy;
mod relations;
