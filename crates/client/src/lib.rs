//! Asks a Privet service (`privet serve`) for private predictions: the service learns neither input nor prediction, the client
//! nothing of the weights beyond what predictions imply.
//!
//! ```no_run
//! use privet_client::{Client, Credentials, Suite, Tensor};
//!
//! # fn main() -> Result<(), privet_client::Error> {
//! let credentials = Credentials::from_folder("keys")?;
//! let client = Client::builder("https://model.example.org:7480", credentials, "state").build()?;
//! let model = client.model("digits")?;
//! let predictor = model.predictor(Suite::gmw())?;
//! let ahead = predictor.prepare()?; // while there is no input yet
//! let image = Tensor::new([1, 1, 8, 8], [0.5; 64])?;
//! let prediction = ahead.infer(&[image])?;
//! println!("{:?}", prediction.outputs);
//! # Ok(())
//! # }
//! ```
//!
//! Calls block; a [`Client`], a [`Model`] and a [`Predictor`] may be used from any number of threads. The life of a job at the
//! service is told in `docs/reference/service-api.md`, what the suites promise in `docs/reference/suites.md`.
//!
//! # Limits
//! Models are served in suites `gmw` and `fss`. What a client computes in the clear is the encoding of numbers, rows of a table
//! and places of features of trees, and a softmax; a model with another head, with a front (`client_side = true`) or with state
//! between inferences is refused as [`Error::Unsupported`]. `privet gateway` computes these for applications in any language.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod attempt;
mod calls;
mod client;
mod codec;
mod credentials;
mod error;
mod model;
mod network;
mod predictor;
mod sessions;
mod suite;
mod tensor;

pub use client::{Client, ClientBuilder};
pub use credentials::Credentials;
pub use error::Error;
pub use model::{Model, Offered};
pub use predictor::{Prediction, Predictor, Prepared};
pub use suite::Suite;
pub use tensor::Tensor;

pub use privet_channel::Link;
pub use privet_suites::config::Weakness;
pub use privet_suites::forecast::Forecast;
pub use privet_suites::fss::Config as Fss;
pub use privet_suites::gmw::{Config as Gmw, Transfers};
pub use privet_suites::malicious::Config as FssMalicious;
pub use privet_suites::sharing::{Arithmetic, Linear, Maker, Rounds, Truncation};
pub use privet_suites::{Error as SessionError, PhaseCost};
