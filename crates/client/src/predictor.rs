//! Predictions and their preparation: jobs at a service, followed until they end.
//!
//! The service leases a worker when a job can run, and this client comes and does its own half. Another lease follows when the
//! service runs a job again after a failure that was not this side's.

use std::cell::Cell;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use privet_channel::Link;
use privet_prg::Prg;
use privet_suites::config::Weakness;
use privet_suites::forecast::Forecast;
use privet_suites::suite::SuitePlan;
use privet_suites::{PhaseCost, resident_memory};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::attempt::{Attempt, Lease};
use crate::calls::{maybe_printable, no_randomness, printable};
use crate::model::{Described, path};
use crate::suite::Resolved;
use crate::{Error, Model, Suite, Tensor};

/// How long the service is asked to hold a poll.
const HOLD: Duration = Duration::from_secs(25);

/// How often a request is asked anew because the service was restarted meanwhile.
const MOST_RESTARTS: usize = 5;

/// Material entries that a request tries of which this side has lost its half.
const MOST_LOST: usize = 100;

/// A model planned for a suite: makes material and infers. Clones share the plan; any number of threads may use it.
#[derive(Clone)]
pub struct Predictor(Arc<Planned>);

struct Planned {
    model: Model,
    suite: Resolved,
    plan: Box<dyn SuitePlan>,
}

/// A private prediction.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Prediction {
    /// The model's outputs by name, in its order.
    pub outputs: Vec<(String, Tensor<f64>)>,
    /// The material entry that was spent; none if nothing was prepared.
    pub material: Option<String>,
    /// What the inference cost this side, without preparation.
    pub online: PhaseCost,
}

/// Material that lies ready on both sides for one inference. It is kept by client and service beyond this process:
/// [`Predictor::prepared`] finds it again.
#[derive(Debug)]
#[must_use]
pub struct Prepared {
    predictor: Predictor,
    id: String,
}

/// What the service says of a job.
#[derive(Deserialize)]
struct Job {
    id: String,
    #[serde(default)]
    sequence: u64,
    state: String,
    #[serde(default, deserialize_with = "maybe_printable")]
    outcome: Option<String>,
    #[serde(default, deserialize_with = "printable")]
    reason: String,
    #[serde(default)]
    go: Vec<Lease>,
    #[serde(flatten)]
    more: Map<String, Value>,
}

#[derive(Deserialize)]
struct Jobs {
    jobs: Vec<Job>,
}

#[derive(Deserialize)]
struct Admitted {
    #[serde(deserialize_with = "printable")]
    id: String,
    sequence: u64,
}

impl Predictor {
    pub(crate) fn new(model: &Model, suite: &Suite) -> Result<Self, Error> {
        let Described { client, offered, stock, program, name, .. } = &*model.0;
        let alternatives = suite.alternatives()?;
        let facts = alternatives
            .first()
            .map(|resolved| (resolved.fact("suite").to_owned(), resolved.fact("security").to_owned()));
        let (suite, security) = facts.unwrap_or_default();
        let offer = offered.iter().find(|offer| (&offer.suite, &offer.security) == (&suite, &security));
        let offer = offer.ok_or_else(|| {
            let offers: Vec<_> = offered.iter().map(|offer| format!("{} {}", offer.suite, offer.security)).collect();
            Error::Misuse(format!("model {name} is not offered in {suite} {security}; it is in {}", offers.join(", ")))
        })?;
        let is_offered = |resolved: &Resolved| {
            offer.rounds.is_empty() || offer.rounds.iter().any(|rounds| rounds == resolved.fact("rounds"))
        };
        let link = client.link()?;
        let planned = alternatives.into_iter().filter(is_offered).map(|suite| {
            let plan = suite.config.plan(program.clone(), link)?;
            Ok(Planned { model: model.clone(), suite, plan })
        });
        let planned = planned.collect::<Result<Vec<_>, Error>>()?;
        let is_stocked = |planned: &Planned| stock.get(&planned.plan.label()).is_some_and(|&count| count > 0);
        let order = |planned: &Planned| (!is_stocked(planned), delay(&planned.plan.forecast(), link));
        let quickest = planned.into_iter().min_by_key(order).ok_or_else(|| {
            Error::Misuse(format!(
                "model {name} is offered with rounds {} alone",
                offer.rounds.join(", ").escape_debug()
            ))
        })?;
        let left = client.memory.saturating_sub(resident_memory());
        quickest.plan.check_client_memory(left, rayon::current_num_threads())?;
        Ok(Self(Arc::new(quickest)))
    }

    /// The private prediction for real inputs, in the model's order: up to its batch of samples each.
    ///
    /// Uses material that lies ready at the service, or has it made first. Blocks until there is a result.
    ///
    /// # Errors
    /// [`Error::Input`] before anything is sent if an input does not fit; [`Error::JobFailed`] if the service ended the
    /// job; [`Error::OtherProgram`] if it has another program by now; [`Error::NotAccepted`], [`Error::Busy`],
    /// [`Error::Link`], [`Error::PeerMisbehaved`].
    pub fn infer(&self, inputs: &[Tensor]) -> Result<Prediction, Error> {
        self.ask(inputs, None)
    }

    /// Makes material for one inference ahead of its input.
    ///
    /// # Errors
    /// [`Error::Misuse`] if the suite is without preparation; else as [`Predictor::infer`].
    pub fn prepare(&self) -> Result<Prepared, Error> {
        if self.0.suite.is_unprepared {
            return Err(Error::Misuse("the suite was chosen without preparation: nothing is prepared ahead".into()));
        }
        let Admitted { id, sequence } = self.submit("notices", json!({}))?;
        self.ended(&id, self.follow(&id, sequence, None))?;
        Ok(Prepared { predictor: self.clone(), id })
    }

    /// Material that lies ready, whoever of the clients with this certificate had it made.
    ///
    /// # Errors
    /// [`Error::Link`] and others if the service does not answer.
    pub fn prepared(&self) -> Result<Vec<Prepared>, Error> {
        let Jobs { jobs } = self.described().client.calls.get("/v2/jobs", Duration::ZERO)?;
        let program = self.0.plan.program().hash().to_string();
        let batch = u64::from(self.0.plan.program().batch());
        let fits = |job: &Job| {
            let fact = |name: &str| job.more.get(name);
            let same_suite = self.0.suite.facts.iter().all(|(name, value)| fact(name) == Some(value));
            let one_inference = fact("samples").and_then(Value::as_u64).is_some_and(|samples| samples <= batch);
            let is_notice = fact("kind").is_some_and(|kind| kind == "notice") && job.state == "prepared";
            is_notice && same_suite && one_inference && fact("program").is_some_and(|hash| *hash == program)
        };
        let prepared = jobs.into_iter().filter(fits);
        Ok(prepared.map(|job| Prepared { predictor: self.clone(), id: job.id }).collect())
    }

    /// The suite with every choice made, as material is labelled.
    pub fn label(&self) -> String {
        self.0.plan.label()
    }

    /// In which ways the suite promises less than the default.
    pub fn weaknesses(&self) -> Vec<Weakness> {
        self.0.suite.config.mode().weaknesses()
    }

    /// What one preparation and one inference will take, by formula.
    pub fn forecast(&self) -> Forecast {
        self.0.plan.forecast()
    }

    fn described(&self) -> &Described {
        &self.0.model.0
    }

    fn ask(&self, inputs: &[Tensor], mut notice: Option<&str>) -> Result<Prediction, Error> {
        let (payload, samples) = self.described().codec.encode(inputs)?;
        let mut body = json!({ "samples": samples });
        if self.0.suite.is_unprepared {
            body["unprepared"] = true.into();
        }
        let (mut lost, mut restarts) = (0, 0);
        loop {
            if let Some(notice) = notice {
                body["notice"] = notice.into();
            }
            let Admitted { id, sequence } = self.submit("requests", body.clone())?;
            match self.ended(&id, self.follow(&id, sequence, Some(&payload))) {
                Ok(Some((material, (revealed, report)))) => {
                    let outputs = self.described().codec.decode(&revealed, samples);
                    return Ok(Prediction { outputs, material, online: report.total });
                }
                Ok(None) => return Err(Error::PeerMisbehaved("the service calls a request prepared".into())),
                // The service has material whose other half is not here. Nothing was sent; the service drops the entry, and
                // others may be complete.
                Err(Error::Material(_)) if notice.is_none() && lost < MOST_LOST => lost += 1,
                // Another process takes the request, and uses other material.
                Err(Error::JobFailed { is_lost: true, .. }) if restarts < MOST_RESTARTS => {
                    restarts += 1;
                    notice = None;
                    body.as_object_mut().expect("an object").remove("notice");
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Asks for `notices` or `requests`.
    fn submit(&self, what: &str, more: Value) -> Result<Admitted, Error> {
        let Described { client, name, version, program, .. } = self.described();
        let mut body = self.0.suite.facts.clone();
        body.extend(more.as_object().into_iter().flatten().map(|(name, value)| (name.clone(), value.clone())));
        body.insert("version".into(), (*version).into());
        body.insert("program".into(), program.hash().to_string().into());
        if let Some(timeout) = client.timeout {
            body.insert("timeout".into(), timeout.as_secs_f64().into());
        }
        // A call whose answer was lost is sent again, and must not make a second job.
        let mut prg = Prg::from_os().map_err(no_randomness)?;
        body.insert("key".into(), format!("{:016x}{:016x}", prg.word(), prg.word()).into());
        client.calls.post(&format!("{}/{what}", path(name)), &body.into())
    }

    /// Follows a job until there is a prediction of `payload` or, without one, the material lies ready.
    fn follow(
        &self,
        id: &str,
        admitted: u64,
        payload: Option<&[Vec<i64>]>,
    ) -> Result<Option<crate::attempt::Spent>, Error> {
        let (client, mut seen) = (&self.described().client, admitted.saturating_sub(1));
        // Since when a worker is known, and whether all is done that there is to do with it.
        let mut begun: HashMap<String, (Instant, bool)> = HashMap::new();
        let (mut met, mut hold) = (None, HOLD);
        loop {
            let address = format!("/v2/jobs/{id}?wait={}&seen={seen}", hold.as_secs());
            let job: Job = match client.calls.get(&address, hold) {
                Ok(job) => job,
                Err(Error::Misuse(reason)) => return Err(failed(id, "failed", reason, true)),
                Err(error) => return Err(error),
            };
            (seen, hold) = (job.sequence, HOLD);
            for lease in job.go {
                let (since, is_done) = begun.entry(lease.job.clone()).or_insert((Instant::now(), false));
                if std::mem::replace(is_done, true) {
                    continue;
                }
                let (plan, is_unprepared) = (&*self.0.plan, self.0.suite.is_unprepared);
                let attempt = Attempt { client, plan, lease: &lease, is_unprepared, was_refused: Cell::new(false) };
                match attempt.run(payload) {
                    Ok(Some(spent)) => return Ok(Some(spent)),
                    Ok(None) => {}
                    // The service judges it, and may run the job again.
                    Err(error) if error.may_pass() => {
                        met = Some(error);
                        if attempt.was_refused.get() && since.elapsed().as_secs_f64() < lease.grace {
                            // If the service has leased no other meanwhile, this one is there still.
                            (*is_done, hold) = (false, Duration::ZERO);
                        }
                    }
                    Err(error) => return Err(error),
                }
            }
            match job.state.as_str() {
                "prepared" if payload.is_none() => return Ok(None),
                "ended" => {
                    let outcome = job.outcome.unwrap_or_else(|| "failed".into());
                    // What an earlier process left on record has no count of changes.
                    let is_lost = job.sequence == 0 && outcome == "failed";
                    let met = met.map(|error: Error| format!(" (this side: {error})")).unwrap_or_default();
                    let reason = if job.reason.is_empty() { "the service does not say why".into() } else { job.reason };
                    return Err(failed(id, &outcome, reason + &met, is_lost));
                }
                _ => {}
            }
        }
    }

    /// Ends a job at the service that failed here.
    fn ended<T>(&self, id: &str, result: Result<T, Error>) -> Result<T, Error> {
        if let Err(error) = &result
            && !matches!(error, Error::JobFailed { .. })
        {
            self.described().client.calls.delete(&format!("/v2/jobs/{id}"));
        }
        result
    }
}

impl Prepared {
    /// The id that the service knows it by.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// As [`Predictor::infer`], on this material, which is spent.
    ///
    /// # Errors
    /// As there; [`Error::Material`] if it was used or has expired.
    pub fn infer(self, inputs: &[Tensor]) -> Result<Prediction, Error> {
        self.predictor.ask(inputs, Some(&self.id))
    }
}

impl fmt::Debug for Predictor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Predictor").field("model", &self.0.model).field("suite", &self.label()).finish()
    }
}

fn failed(job: &str, outcome: &str, reason: String, is_lost: bool) -> Error {
    Error::JobFailed { job: job.into(), outcome: outcome.into(), reason, is_lost }
}

/// What a link adds to the online phase: the fuller direction counts, and a round takes half a round trip, because nearly always
/// both parties send at once.
fn delay(forecast: &Forecast, link: Link) -> Duration {
    let fuller = forecast.online_bytes_client.max(forecast.online_bytes_server);
    let bytes = 8.0 * fuller as f64 / link.bits_per_second() as f64;
    Duration::from_secs_f64(bytes) + link.rtt().mul_f64(forecast.online_rounds as f64 / 2.0)
}
