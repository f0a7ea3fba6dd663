//! One attempt at a job: a session with a worker, on which material is made or used.

use std::cell::Cell;
use std::sync::atomic::Ordering;
use std::thread::sleep;
use std::time::{Duration, Instant};

use privet_channel::{Channel, tls};
use privet_suites::session::{self, Connect};
use privet_suites::suite::{Prediction, SuitePlan};
use privet_suites::{MaterialId, Silent};
use serde::Deserialize;

use crate::Error;
use crate::calls::{maybe_printable, printable};
use crate::client::{Shared, split_address};

/// The only name in a dealer's certificate, so that no server can pass for the dealer.
const DEALER_NAME: &str = "privet-dealer";

const RETRY: Duration = Duration::from_millis(200);

/// How long a worker is knocked at that refuses connections. It listened before it was leased, so it has ended, and the service
/// leases another: whoever knocks on would not come to that one in time. Where it leases no other, as with a proxy that was
/// refused itself, this one is knocked at again.
const REFUSED: Duration = Duration::from_secs(1);

/// How long material may take to be stored here after the service has stored its half.
const ARRIVAL: Duration = Duration::from_secs(5);

/// What an inference gave, and the material that it spent.
pub(crate) type Spent = (Option<String>, Prediction);

/// The service's lease of a worker for a job; the fields are those of its answer.
#[derive(Deserialize)]
pub(crate) struct Lease {
    pub(crate) job: String,
    phase: Phase,
    #[serde(deserialize_with = "printable")]
    host: String,
    port: u16,
    program: String,
    suite: String,
    material: Option<String>,
    pub(crate) grace: f64,
    seconds: f64,
    #[serde(default, deserialize_with = "maybe_printable")]
    dealer: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Phase {
    Prepare,
    Infer,
}

pub(crate) struct Attempt<'a> {
    pub(crate) client: &'a Shared,
    pub(crate) plan: &'a dyn SuitePlan,
    pub(crate) lease: &'a Lease,
    pub(crate) is_unprepared: bool,
    /// Whether the worker refused connections until it was left.
    pub(crate) was_refused: Cell<bool>,
}

impl Attempt<'_> {
    /// Does this side's half of the job; `payload`: the inputs, if they are wanted.
    pub(crate) fn run(&self, payload: Option<&[Vec<i64>]>) -> Result<Option<Spent>, Error> {
        let (lease, plan) = (self.lease, self.plan);
        if (&lease.program, &lease.suite) != (&plan.program().hash().to_string(), &plan.label()) {
            return Err(Error::PeerMisbehaved(
                "the service wants to run another program or suite than was asked for".into(),
            ));
        }
        match (lease.phase, payload) {
            (Phase::Prepare, _) if lease.material.is_none() && !self.is_unprepared => self.prepare().map(|()| None),
            (Phase::Infer, Some(payload)) if lease.material.is_none() == self.is_unprepared => {
                self.infer(payload).map(Some)
            }
            _ => Err(Error::PeerMisbehaved("the service wants another job than was asked for".into())),
        }
    }

    fn prepare(&self) -> Result<(), Error> {
        self.client.making.fetch_add(1, Ordering::SeqCst);
        let prepared = self.on_session(|session| session.prepare(self.plan, &mut Silent));
        self.client.making.fetch_sub(1, Ordering::SeqCst);
        prepared.map(drop)
    }

    fn infer(&self, payload: &[Vec<i64>]) -> Result<Spent, Error> {
        let Some(name) = &self.lease.material else {
            let outputs = self.on_session(|session| session.infer_unprepared(self.plan, payload, &mut Silent))?;
            return Ok((None, outputs));
        };
        let id = MaterialId::try_from(name.clone()).map_err(Error::PeerMisbehaved)?;
        self.await_arrival(&id);
        let outputs = self.on_session(|session| session.infer(self.plan, &id, payload, &mut Silent))?;
        Ok((Some(name.clone()), outputs))
    }

    /// Waits for material that another thread still makes: the service may be done with its half before.
    fn await_arrival(&self, id: &MaterialId) {
        let limit = Instant::now() + ARRIVAL;
        let is_making = || self.client.making.load(Ordering::SeqCst) > 0;
        while self.client.store.metadata(id).is_err() && is_making() && Instant::now() < limit {
            sleep(RETRY / 10);
        }
    }

    /// Works on a session that is kept from an earlier job with the worker, and on a new one if there is none, or the worker
    /// has ended it before it heard of this job. It is kept then.
    fn on_session<T>(
        &self,
        work: impl Fn(&mut session::Client) -> Result<T, privet_suites::Error>,
    ) -> Result<T, Error> {
        let (sessions, lease) = (&self.client.sessions, self.lease);
        let dealer = self.plan.is_dealt().then(|| self.dealer()).transpose()?;
        let named = dealer.as_ref().map(|(host, port)| format!("{host}:{port}"));
        let peer = (lease.host.clone(), lease.port, named);
        if let Some(mut session) = sessions.take(&peer, seconds(lease.seconds)?) {
            match work(&mut session) {
                Ok(result) => {
                    sessions.put(peer, session);
                    return Ok(result);
                }
                Err(error) if !session.was_left() => return Err(error.into()),
                Err(_) => {}
            }
        }
        let mut session = session::Client::new(self.connect()?, self.client.store.clone())?.keeping_base_ots();
        if let Some((host, port)) = dealer {
            session = session.with_dealer(self.to_dealer(host, port)?);
        }
        let result = work(&mut session)?;
        sessions.put(peer, session);
        Ok(result)
    }

    /// Connects to the worker within the time that the service gives. Its certificate must carry the service's name: nothing that
    /// the service says changes it.
    fn connect(&self) -> Result<Channel, Error> {
        let grace = seconds(self.lease.grace)?;
        let start = Instant::now();
        let (identity, trust) = (&self.client.credentials.identity, &self.client.credentials.trust);
        let (host, name) = (&self.lease.host, &self.client.calls.server_name);
        loop {
            match tls::connect(host, self.lease.port, identity, trust, name, grace) {
                Err(privet_channel::Error::Io(error)) => {
                    let is_refused = matches!(error, privet_channel::Io::ConnectionRefused { .. });
                    let time = if is_refused { grace.min(REFUSED) } else { grace };
                    if start.elapsed() + RETRY >= time {
                        self.was_refused.set(is_refused);
                        return Err(privet_channel::Error::Io(error).into());
                    }
                    sleep(RETRY);
                }
                Err(error) => return Err(error.into()),
                Ok(mut channel) => {
                    channel.set_timeout(seconds(self.lease.seconds)?);
                    return Ok(channel);
                }
            }
        }
    }

    /// Where the dealer is: the client's own, or the one that the service names.
    fn dealer(&self) -> Result<(String, u16), Error> {
        match (&self.client.dealer, &self.lease.dealer) {
            (Some(own), _) => Ok(own.clone()),
            (None, Some(named)) => split_address(named).map_err(|error| Error::PeerMisbehaved(error.to_string())),
            (None, None) => Err(Error::PeerMisbehaved("the service names no dealer for a suite with one".into())),
        }
    }

    fn to_dealer(&self, host: String, port: u16) -> Result<Connect, Error> {
        let timeout = seconds(self.lease.seconds)?;
        let (identity, trust) = (self.client.credentials.identity.clone(), self.client.credentials.trust.clone());
        Ok(Connect::new(move || {
            let mut channel = tls::connect(&host, port, &identity, &trust, DEALER_NAME, timeout)?;
            channel.set_timeout(timeout);
            Ok(channel)
        }))
    }
}

/// A time that the service gives, of a day at most.
fn seconds(given: f64) -> Result<Duration, Error> {
    let time = Duration::try_from_secs_f64(given.min(86_400.0)).ok().filter(|time| !time.is_zero());
    time.ok_or_else(|| Error::PeerMisbehaved(format!("the service gives {given} seconds for a job")))
}

#[cfg(test)]
mod tests {
    use privet_channel::Link;
    use privet_suites::gmw;
    use privet_suites::suite::SuiteConfig;
    use serde_json::{Value, json};

    use super::*;
    use crate::{Client, Credentials, codec};

    /// Of a key of its own; nobody is asked who knows it.
    fn credentials() -> Credentials {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut own = rcgen::CertificateParams::new([]).unwrap();
        own.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let certificate = own.self_signed(&key).unwrap().pem();
        Credentials::from_pem(certificate.as_bytes(), key.serialize_pem().as_bytes(), certificate.as_bytes()).unwrap()
    }

    /// What becomes of a lease that is as a request wants it but for `changes`. Nobody listens where it leads.
    fn attempted(changes: Value, is_unprepared: bool, payload: Option<&[Vec<i64>]>) -> Error {
        let folder = tempfile::tempdir().unwrap();
        let client = Client::builder("https://localhost:1", credentials(), folder.path()).build().unwrap();
        let program = codec::tests::program(1, &[1, 2], "", "null", "");
        let plan = gmw::Config::default().plan(program, Link::LAN).unwrap();
        let mut lease = json!({
            "job": "j", "phase": "infer", "host": "127.0.0.1", "port": 1, "server_name": "localhost",
            "program": plan.program().hash().to_string(), "suite": plan.label(), "material": "0".repeat(32),
            "samples": 1, "grace": 0.1, "seconds": 1.0, "dealer": null,
        });
        for (name, value) in changes.as_object().unwrap() {
            lease[name] = value.clone();
        }
        let lease: Lease = serde_json::from_value(lease).unwrap();
        let was_refused = Cell::new(false);
        let attempt = Attempt { client: client.shared(), plan: &*plan, lease: &lease, is_unprepared, was_refused };
        let error = attempt.run(payload).expect_err("nobody listens");
        assert_eq!(attempt.was_refused.get(), matches!(error, Error::Link(_)), "{error}");
        error
    }

    #[test]
    fn a_service_that_leases_something_else_is_refused_before_it_is_met() {
        let payload = [vec![0, 0]];
        let payload = Some(&payload[..]);
        for (changes, is_unprepared, payload) in [
            (json!({"program": "00"}), false, payload),
            (json!({"suite": "gmw linear one-bit tables"}), false, payload),
            // Inputs are asked for, where only material was to be made.
            (json!({}), false, None),
            // An inference whose input would go out without the material that hides it, and the other way round.
            (json!({"material": null}), false, payload),
            (json!({}), true, payload),
            (json!({"phase": "prepare"}), false, payload),
            (json!({"phase": "prepare", "material": null}), true, payload),
            (json!({"material": "../../secrets"}), false, payload),
            (json!({"grace": -1.0}), false, payload),
        ] {
            let error = attempted(changes.clone(), is_unprepared, payload);
            assert!(matches!(error, Error::PeerMisbehaved(_)), "{changes}: {error}");
        }
    }

    #[test]
    fn a_worker_that_refuses_connections_is_left_long_before_its_grace_is_over() {
        let payload = [vec![0, 0]];
        let start = Instant::now();
        let error = attempted(json!({"grace": 15.0}), false, Some(&payload[..]));
        assert!(matches!(error, Error::Link(_)), "{error}");
        assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    }

    #[test]
    fn a_lease_of_what_was_asked_for_leads_to_its_worker() {
        let payload = [vec![0, 0]];
        for (changes, is_unprepared, payload) in [
            (json!({}), false, Some(&payload[..])),
            (json!({"material": null}), true, Some(&payload[..])),
            (json!({"phase": "prepare", "material": null}), false, None),
        ] {
            let error = attempted(changes.clone(), is_unprepared, payload);
            assert!(matches!(error, Error::Link(_)), "{changes}: {error}");
        }
    }
}
