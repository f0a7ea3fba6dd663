//! The Python module `privet._native`: one file per class, no logic of its own.
//!
//! Long calls release the interpreter's lock. Errors become the classes of `privet.errors`; `python/privet/_native.pyi`
//! is the typed view of this module.

#![forbid(unsafe_code)]

mod client;
mod connection;
mod dealer;
mod errors;
mod held;
mod link;
mod listener;
mod plan;
mod policy;
mod progress;
mod server;
mod stages;
mod store;
mod stream;

use pyo3::prelude::*;

/// Resident memory of this process in bytes; 0 where the system does not tell.
#[pyfunction]
fn resident_memory() -> u64 {
    privet_suites::resident_memory()
}

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<connection::Credentials>()?;
    module.add_function(wrap_pyfunction!(connection::authorities, module)?)?;
    module.add_class::<connection::Connection>()?;
    module.add_class::<dealer::Dialer>()?;
    module.add_class::<dealer::Dealer>()?;
    module.add_class::<link::Link>()?;
    module.add_class::<listener::Listener>()?;
    module.add_class::<listener::Pending>()?;
    module.add_class::<plan::Plan>()?;
    module.add_class::<policy::Policy>()?;
    module.add_class::<policy::Guard>()?;
    module.add_class::<client::Client>()?;
    module.add_class::<server::Server>()?;
    module.add_class::<store::Store>()?;
    module.add_class::<stream::StreamPlan>()?;
    module.add_class::<stream::StreamServer>()?;
    module.add_class::<stream::StreamClient>()?;
    module.add_class::<stages::StreamKey>()?;
    module.add_class::<stages::StreamNoise>()?;
    module.add_class::<stages::StreamStages>()?;
    module.add_class::<connection::Stopper>()?;
    module.add_function(wrap_pyfunction!(resident_memory, module)?)?;
    module.add_function(wrap_pyfunction!(policy::configs, module)?)?;
    module.add_function(wrap_pyfunction!(policy::label_of, module)?)?;
    module.add_function(wrap_pyfunction!(policy::mode_of, module)?)?;
    module.add_function(wrap_pyfunction!(policy::weaknesses, module)?)?;
    module.add("PROTOCOL_VERSION", privet_suites::session::VERSION)?;
    Ok(())
}
