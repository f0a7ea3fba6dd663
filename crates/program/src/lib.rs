//! The compiled program: what a model becomes before any suite runs it.
//!
//! A program has two halves. The public half (operators, shapes, fixed-point widths) is a JSON file; the SHA-256 of
//! its bytes names the program, and both parties compare that hash before they start. The private half (weights) is a
//! safetensors file that stays at the server; the public half carries its SHA-256, and a random salt among the tensors
//! keeps that hash from confirming a guess of the weights.
//!
//! A public half may come from a peer, so [`Program::parse`] checks every shape before anything is computed from it:
//! a `Program` in hand is a consistent one.

#![forbid(unsafe_code)]

mod check;
mod error;
mod function;
mod operation;
mod program;
mod shape;
mod weights;

pub use check::{MAX_BYTES, MAX_ELEMENTS, MAX_LINEAR, MAX_LINES, MAX_OPERATIONS, MAX_TOTAL};
pub use error::Error;
pub use function::{Constant, Primitive, Step};
pub use operation::{Operation, Operator, Window};
pub use program::{ClientStep, Input, Output, Program, ProgramHash, State, Value};
pub use weights::Weights;
