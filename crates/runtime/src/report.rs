//! What a job cost: time, traffic and memory, for each phase and layer.

use std::time::Instant;

use privet_channel::Channel;
use serde::Serialize;

use crate::memory;

/// The two jobs of a suite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Making material, before there is an input.
    Offline,
    /// Using it on an input.
    Online,
}

/// At the other end of the link that a job's traffic went over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Counterpart {
    /// The other party.
    Party,
    /// A dealer.
    Dealer,
}

/// Is called with progress; a job calls it from its own thread.
pub trait Observer {
    /// `done` of `total` steps of `phase` are finished; `next` names the step that starts.
    fn progress(&mut self, phase: Phase, done: usize, total: usize, next: &str);
}

/// An observer that does nothing.
pub struct Silent;

impl Observer for Silent {
    fn progress(&mut self, _phase: Phase, _done: usize, _total: usize, _next: &str) {}
}

/// Cost of a phase as one party saw it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct PhaseCost {
    /// Wall-clock seconds.
    pub seconds: f64,
    /// Bytes that this party sent, frame headers included, TLS not.
    pub bytes_sent: u64,
    /// Bytes that this party received.
    pub bytes_received: u64,
    /// Times that this party turned to waiting for the other.
    pub rounds: u64,
    /// Largest resident memory of this party's process during the phase, in MB; 0 where the system does not tell.
    pub peak_rss_mb: f64,
}

/// Cost of one layer in one phase as one party saw it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LayerCost {
    /// The ONNX node, or what the work is for where it serves the whole program.
    pub name: String,
    /// The operator or protocol.
    pub operator: String,
    /// Offline or online.
    pub phase: Phase,
    /// Wall-clock seconds.
    pub seconds: f64,
    /// Bytes that this party sent.
    pub bytes_sent: u64,
    /// Bytes that this party received.
    pub bytes_received: u64,
    /// Times that this party turned to waiting for the other.
    pub rounds: u64,
    /// Bytes of keys that this party used up, read from its store.
    pub key_bytes: u64,
}

/// Cost of a job: the phase as a whole and its layers in order.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// Which job.
    pub phase: Phase,
    /// Whom it exchanged messages with.
    pub counterpart: Counterpart,
    /// The whole.
    pub total: PhaseCost,
    /// What came before it, once for many such jobs, and is not in it: encrypted weights that the client keeps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub setup: Option<PhaseCost>,
    /// The parts.
    pub layers: Vec<LayerCost>,
}

/// Takes a job's measurements as it goes.
pub struct Recorder {
    phase: Phase,
    counterpart: Counterpart,
    started: Instant,
    start_cost: privet_channel::Cost,
    layers: Vec<LayerCost>,
}

impl Recorder {
    /// Begins a job with the other party.
    pub fn start(phase: Phase, channel: &Channel) -> Self {
        Self::start_with(Counterpart::Party, phase, channel)
    }

    /// Begins a job with either counterpart.
    pub fn start_with(counterpart: Counterpart, phase: Phase, channel: &Channel) -> Self {
        memory::reset_peak();
        Self { phase, counterpart, started: Instant::now(), start_cost: channel.cost(), layers: Vec::new() }
    }

    /// Runs `work` on `channel` and books what it costs under `name`.
    ///
    /// # Errors
    /// What `work` fails with.
    pub fn layer<T, E>(
        &mut self,
        name: &str,
        operator: &str,
        channel: &mut Channel,
        work: impl FnOnce(&mut Channel) -> Result<T, E>,
    ) -> Result<T, E> {
        let (started, before) = (Instant::now(), channel.cost());
        let result = work(channel)?;
        self.book(name, operator, started, channel.cost() - before);
        Ok(result)
    }

    /// Books work that began at `started` and took `cost` on the channel.
    pub fn book(&mut self, name: &str, operator: &str, started: Instant, cost: privet_channel::Cost) {
        self.layers.push(LayerCost {
            name: name.to_owned(),
            operator: operator.to_owned(),
            phase: self.phase,
            seconds: started.elapsed().as_secs_f64(),
            bytes_sent: cost.bytes_sent,
            bytes_received: cost.bytes_received,
            rounds: cost.rounds,
            key_bytes: 0,
        });
    }

    /// Books keys that the last layer used up.
    pub fn used_keys(&mut self, bytes: u64) {
        if let Some(layer) = self.layers.last_mut() {
            layer.key_bytes = bytes;
        }
    }

    /// Ends the job.
    pub fn finish(self, channel: &Channel) -> Report {
        let cost = channel.cost() - self.start_cost;
        let total = PhaseCost {
            seconds: self.started.elapsed().as_secs_f64(),
            bytes_sent: cost.bytes_sent,
            bytes_received: cost.bytes_received,
            rounds: cost.rounds,
            peak_rss_mb: memory::peak_mb(),
        };
        Report { phase: self.phase, counterpart: self.counterpart, total, setup: None, layers: self.layers }
    }
}
