//! The server's side of sessions.

use std::sync::Arc;
use std::time::Duration;

use privet_channel::Channel;

use super::admission::Admission;
use super::budget::Budget;
use super::catalog::Catalog;
use super::dealer::Connect;
use super::gate::Gate;
use super::requests::Session;
use super::sequence::Sequence;
use crate::suite::{SessionState, SuiteRegistry};
use crate::{Error, MaterialId, Observer, Report, Store};

/// What a server did for a client.
pub enum Event {
    /// It sent a public half.
    Described {
        /// The model's name.
        model: String,
    },
    /// It told a client the name of the encrypted weights that it keeps, and sent them unless the client had them.
    Kept {
        /// The model's name.
        model: String,
        /// What it cost.
        report: Report,
    },
    /// It made a material entry.
    Prepared {
        /// The model's name.
        model: String,
        /// The entry.
        material: MaterialId,
        /// What it cost.
        report: Report,
    },
    /// It took part in an inference.
    Inferred {
        /// The model's name.
        model: String,
        /// The entry that is spent; `None` if nothing was prepared.
        material: Option<MaterialId>,
        /// What it cost.
        report: Report,
    },
}

/// A server's catalog and store; one serves any number of sessions, also at the same time.
#[derive(Clone)]
pub struct Server {
    pub(super) suites: &'static dyn SuiteRegistry,
    pub(super) catalog: Catalog,
    pub(super) store: Store,
    pub(super) admission: Arc<dyn Admission>,
    pub(super) dealer: Option<Connect>,
    pub(super) budget: Option<Budget>,
    pub(super) gate: Option<Gate>,
    pub(super) idle: Option<Duration>,
}

impl Server {
    /// Serves `catalog` in these suites with material kept in `store`, to clients that `admission` lets in.
    pub fn new(
        suites: &'static dyn SuiteRegistry,
        catalog: Catalog,
        store: Store,
        admission: Arc<dyn Admission>,
    ) -> Self {
        Self { suites, catalog, store, admission, dealer: None, budget: None, gate: None, idle: None }
    }

    /// The same server with a way to the dealer, for clients that want their material dealt.
    #[must_use]
    pub fn with_dealer(self, connect: Connect) -> Self {
        Self { dealer: Some(connect), ..self }
    }

    /// The same server, whose jobs wait for one another where they would not fit `budget` together.
    #[must_use]
    pub fn within(self, budget: Budget) -> Self {
        Self { budget: Some(budget), ..self }
    }

    /// The same server, which refuses what `gate` does not admit.
    #[must_use]
    pub fn behind(self, gate: Gate) -> Self {
        Self { gate: Some(gate), ..self }
    }

    /// The same server, whose sessions end by themselves once no request follows a job for `idle`. A job uses neither keys nor
    /// state of the one before: clients [resume](super::Client::resume) sessions.
    #[must_use]
    pub fn ending_after(self, idle: Duration) -> Self {
        Self { idle: Some(idle), ..self }
    }

    /// Serves one client until it says goodbye; `on_event` is called for each finished request.
    ///
    /// # Errors
    /// Whatever ended the session early; the client was told why, if the link still carried it.
    pub fn serve(
        &self,
        mut channel: Channel,
        observer: &mut dyn Observer,
        on_event: &mut dyn FnMut(Event),
    ) -> Result<(), Error> {
        let (state, sequence) = (SessionState::default(), Sequence::default());
        let mut session = Session { server: self, channel: &mut channel, state, sequence, sent: Vec::new() };
        let result = session.run(observer, on_event);
        result.map_err(|refusal| {
            if !refusal.error.is_abort() {
                channel.abort_with(refusal.reason, &refusal.text);
            }
            refusal.error
        })
    }
}
