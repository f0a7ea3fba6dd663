//! The dealer's sessions: brings the two parties of a deal together and deals.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use privet_channel::{AbortReason, Channel, DEFAULT_TIMEOUT, Error as LinkError, Io, Link};
use privet_prg::{Prg, Seed};
use privet_program::Program;
use serde::{Deserialize, Serialize};

use super::messages;
use crate::store::{KeptSetup, SetupSeeds, setup_proof};
use crate::suite::{DealtSetup, SuitePlan, SuiteRegistry};
use crate::{Error, MaterialId, PeerMisbehaved, memory};

/// How long a party keeps a link for another deal. Dealers keep it longer, so that few end as a party asks.
const KEPT: Duration = Duration::from_secs(10);

/// How long a dealer may take to answer on a link that was kept. Then another one is opened.
const GREETING: Duration = Duration::from_secs(2);

/// The way to a dealer, for one deal after the other. Links stay for a while, and serve deals that begin then.
#[derive(Clone)]
pub struct Connect {
    dial: Arc<dyn Fn() -> Result<Channel, Error> + Send + Sync>,
    idle: Arc<Mutex<Vec<(Instant, Channel)>>>,
    timeout: Arc<Mutex<Option<Duration>>>,
}

impl Connect {
    /// A way that opens links by `dial`.
    pub fn new(dial: impl Fn() -> Result<Channel, Error> + Send + Sync + 'static) -> Self {
        Self { dial: Arc::new(dial), idle: Arc::default(), timeout: Arc::default() }
    }

    /// Bounds the wait for any one message of deals to come.
    pub(super) fn set_timeout(&self, timeout: Duration) {
        *self.timeout.lock().unwrap_or_else(PoisonError::into_inner) = Some(timeout);
    }

    /// A link on which the dealer has answered a greeting.
    pub(super) fn open(&self) -> Result<Channel, Error> {
        let timeout = *self.timeout.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            // Others may use the way meanwhile.
            let link = self.idle().pop();
            let Some((since, mut channel)) = link else { break };
            let usual = channel.timeout();
            channel.set_timeout(GREETING.min(usual));
            // The dealer may have ended it meanwhile.
            if since.elapsed() < KEPT && messages::greet(&mut channel).is_ok() {
                channel.set_timeout(timeout.unwrap_or(usual));
                return Ok(channel);
            }
        }
        let mut channel = (self.dial)()?;
        if let Some(timeout) = timeout {
            channel.set_timeout(timeout);
        }
        messages::greet(&mut channel)?;
        Ok(channel)
    }

    /// Keeps a link after a deal that went well.
    pub(super) fn keep(&self, channel: Channel) {
        let old: Vec<_> = {
            let mut idle = self.idle();
            idle.push((Instant::now(), channel));
            idle.extract_if(.., |(since, _)| since.elapsed() >= KEPT).collect()
        };
        // Which may wait for the network.
        drop(old);
    }

    fn idle(&self) -> MutexGuard<'_, Vec<(Instant, Channel)>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Which half of a deal a party asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Half {
    Client,
    Server,
}

/// What a party tells the dealer before it gets its half.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Ask {
    half: Half,
    /// The entry to be made, as both parties name it.
    material: MaterialId,
    /// Fingerprint of the other party's certificate; empty over links without certificates.
    other: String,
    program: String,
    suite: String,
    /// The setups of this program with the other party that this one keeps, the one it likes best first.
    kept: Vec<Kept>,
}

/// A setup that a party keeps.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    name: MaterialId,
    /// [`setup_proof`] of the party's seed.
    proof: [u8; 16],
}

/// Asks for a half of a deal on an open link: the server's if the program's public half goes with it, or else the client's.
pub(super) fn ask(
    dealer: &mut Channel,
    (plan, public): (&dyn SuitePlan, Option<&[u8]>),
    id: &MaterialId,
    other: String,
    setups: &[KeptSetup],
) -> Result<(), Error> {
    let half = if public.is_some() { Half::Server } else { Half::Client };
    let (program, suite) = (plan.program().hash().to_string(), plan.label());
    let kept = setups.iter().map(|setup| Kept { name: setup.name.clone(), proof: setup_proof(&setup.seed) }).collect();
    messages::send(dealer, &Ask { half, material: id.clone(), other, program, suite, kept })?;
    if let Some(public) = public {
        dealer.send(public)?;
        dealer.flush()?;
    }
    Ok(())
}

/// A party that has asked, with its link.
struct Party {
    channel: Channel,
    ask: Ask,
    /// The program's public half, from the server.
    public: Option<Vec<u8>>,
}

impl Party {
    /// Whether both ask for halves of the same deal, each with the other.
    fn matches(&self, other: &Self) -> bool {
        self.ask.half != other.ask.half
            && (&self.ask.program, &self.ask.suite) == (&other.ask.program, &other.ask.suite)
            && self.ask.other == other.channel.peer_fingerprint()
            && other.ask.other == self.channel.peer_fingerprint()
    }
}

/// The first party of a deal, until the other one comes.
struct Waiting {
    party: Party,
    /// No other party ever has it, also under the same name of material.
    ticket: u64,
    /// Gives the party's link back to the thread that waits, once the deal has gone well.
    back: Sender<Channel>,
}

/// What a party that has asked finds.
enum Met {
    /// The party that came first, and this one.
    Other(Box<(Waiting, Party)>),
    /// The other party came later, and the deal is over: this party's own link, if it went well.
    Dealt(Option<Channel>),
}

/// What a dealer made.
#[derive(Debug, Clone, PartialEq)]
pub struct Dealt {
    /// The model's name.
    pub model: String,
    /// The entry, as both parties name it.
    pub material: MaterialId,
    /// Bytes sent to the client and to the server.
    pub bytes: [u64; 2],
    /// How long it took, from the second party's arrival to the last byte.
    pub seconds: f64,
    /// Largest resident memory of the dealer's process meanwhile, in MB; 0 where the system does not tell.
    pub peak_rss_mb: f64,
}

/// What came of serving a party.
#[derive(Debug, Default)]
pub struct Deal {
    /// What was dealt; `None` if the other party's thread did.
    pub dealt: Option<Dealt>,
    /// The party's link, for [another](Dealer::serve_another) deal; `None` if it is over.
    pub link: Option<Channel>,
}

/// A dealer: makes the two halves of material for parties that trust it not to collude with the other one.
///
/// It sees public halves of programs, who asks, and all material; it sees no input, no weight and no message between
/// the two parties. It keeps nothing but a secret of its own.
///
/// A setup of two parties is derived from the secret and the setup's name, which is drawn when it is new. It is dealt again
/// only if both parties prove that they keep it. A party that gave a setup up, or lost what it knew of it, proves nothing, so
/// that setup never comes back, whatever the other party says.
pub struct Dealer {
    suites: &'static dyn SuiteRegistry,
    waiting: Mutex<BTreeMap<MaterialId, Waiting>>,
    tickets: AtomicU64,
    patience: Duration,
    most_bytes: u64,
    /// What setups are derived from, for as long as the dealer lives.
    secret: Seed,
}

impl Dealer {
    /// A dealer for these suites that refuses to make entries of more than `most_bytes` on the wire, and lets a party wait as long as
    /// `patience` for the other.
    pub fn new(suites: &'static dyn SuiteRegistry, most_bytes: u64, patience: Duration) -> Result<Self, Error> {
        let secret = Prg::from_os()?.seed();
        let patience = patience.min(DEFAULT_TIMEOUT);
        Ok(Self { suites, waiting: Mutex::default(), tickets: AtomicU64::default(), patience, most_bytes, secret })
    }

    /// Serves a party's deal, on the thread of the party that comes second.
    ///
    /// # Errors
    /// If this party's link fails, it asks for what it cannot have, or the other party does not come; the parties
    /// are told.
    pub fn serve(&self, mut channel: Channel) -> Result<Deal, Error> {
        with_abort(messages::greet(&mut channel), &mut channel)?;
        self.serve_greeted(channel)
    }

    /// As [`Dealer::serve`] on a link of an earlier deal, once the party wants another, which it has `idle` to say; nothing is dealt
    /// if it does not. `begins` is called then; if that says why not, the party is told.
    ///
    /// # Errors
    /// As [`Dealer::serve`].
    pub fn serve_another(
        &self,
        mut channel: Channel,
        idle: Duration,
        begins: impl FnOnce() -> Result<(), String>,
    ) -> Result<Deal, Error> {
        let timeout = channel.timeout();
        channel.set_timeout(idle);
        match messages::hear_greeting(&mut channel) {
            Err(Error::Channel(LinkError::Io(Io::TimedOut { .. } | Io::Disconnected))) => return Ok(Deal::default()),
            greeted => with_abort(greeted, &mut channel)?,
        }
        channel.set_timeout(timeout);
        // Before the answer, after which the party takes the link for a good one.
        if let Err(why) = begins() {
            channel.abort_with(AbortReason::NotAllowed, &why);
            return Ok(Deal::default());
        }
        with_abort(messages::answer_greeting(&mut channel), &mut channel)?;
        self.serve_greeted(channel)
    }

    fn serve_greeted(&self, mut channel: Channel) -> Result<Deal, Error> {
        let (ask, public) = with_abort(Self::listen(&mut channel), &mut channel)?;
        // A party says nothing more until all is dealt.
        channel.set_unread_limit(messages::UNREAD_REQUESTS);
        let id = ask.material.clone();
        let party = Party { channel, ask, public };
        match self.meet(&id, party)? {
            Met::Dealt(link) => Ok(Deal { dealt: None, link }),
            Met::Other(both) => {
                let (Waiting { party: mut first, back, .. }, mut second) = *both;
                let result = self.deal(&mut first, &mut second);
                if let Err(error) = &result {
                    // The client first: once its service says that the job failed, it breaks off and hears nothing more.
                    let parties = match first.ask.half {
                        Half::Client => [&mut first, &mut second],
                        Half::Server => [&mut second, &mut first],
                    };
                    for party in parties {
                        party.channel.abort_with(error.abort_reason(), &message_to_parties(error));
                    }
                }
                let dealt = result?;
                // A thread that waits no more has panicked.
                let _ = back.send(first.channel);
                Ok(Deal { dealt: Some(dealt), link: Some(second.channel) })
            }
        }
    }

    fn listen(channel: &mut Channel) -> Result<(Ask, Option<Vec<u8>>), Error> {
        let ask: Ask = messages::receive(channel)?;
        let public = match ask.half {
            Half::Server => Some(channel.recv_at_most(privet_program::MAX_BYTES)?),
            Half::Client => None,
        };
        Ok((ask, public))
    }

    /// The other party with this one, if it waits already; otherwise waits until it comes and has dealt.
    fn meet(&self, id: &MaterialId, party: Party) -> Result<Met, Error> {
        let mut waiting = self.waiting();
        if let Entry::Occupied(other) = waiting.entry(id.clone()) {
            if other.get().party.matches(&party) {
                return Ok(Met::Other(Box::new((other.remove(), party))));
            }
            drop(waiting);
            return Err(refuse(party, "another party asked for this deal with other wishes or another partner"));
        }
        let (back, link) = channel();
        let ticket = self.tickets.fetch_add(1, Ordering::Relaxed);
        waiting.insert(id.clone(), Waiting { party, ticket, back });
        drop(waiting);
        match link.recv_timeout(self.patience) {
            Ok(channel) => return Ok(Met::Dealt(Some(channel))),
            Err(RecvTimeoutError::Disconnected) => return Ok(Met::Dealt(None)),
            Err(RecvTimeoutError::Timeout) => {}
        }
        let mut waiting = self.waiting();
        if let Entry::Occupied(entry) = waiting.entry(id.clone())
            && entry.get().ticket == ticket
        {
            let Waiting { party, .. } = entry.remove();
            drop(waiting);
            return Err(refuse(party, "the other party of the deal did not come: does it use the same dealer?"));
        }
        drop(waiting);
        // It came at the last moment: a deal that has begun ends by itself.
        Ok(Met::Dealt(link.recv().ok()))
    }

    fn deal(&self, first: &mut Party, second: &mut Party) -> Result<Dealt, Error> {
        let (client, server) = match first.ask.half {
            Half::Client => (first, second),
            Half::Server => (second, first),
        };
        let started = Instant::now();
        let before = [&client.channel, &server.channel].map(Channel::cost);
        memory::reset_peak();
        let request = |problem: String| Error::from(PeerMisbehaved::Request(problem));
        let program = Program::parse(&server.public.take().unwrap_or_default())?;
        if program.hash().to_string() != client.ask.program {
            return Err(request("the public half does not have the hash that was asked for".into()));
        }
        let config = self.suites.config(&client.ask.suite).filter(|config| config.is_dealt());
        let config = config.ok_or_else(|| request("nothing is dealt for a suite of that name".into()))?;
        let plan = config.plan(program, Link::LAN)?;
        let bytes: u64 = plan.dealt_bytes().iter().sum();
        if bytes > self.most_bytes {
            return Err(request(format!("an entry takes {bytes} bytes, this dealer's limit is {}", self.most_bytes)));
        }
        let setup = if plan.needs_setup() { Some(self.setup([client, server])?) } else { None };
        plan.deal([&mut client.channel, &mut server.channel], setup)?;
        Ok(Dealt {
            model: plan.program().model().to_owned(),
            material: client.ask.material.clone(),
            bytes: [0, 1].map(|i| ([&client.channel, &server.channel][i].cost() - before[i]).bytes_sent),
            seconds: started.elapsed().as_secs_f64(),
            peak_rss_mb: memory::peak_mb(),
        })
    }

    /// The first setup on the client's list that both prove to keep as this dealer deals it, or else a new one.
    fn setup(&self, parties: [&Party; 2]) -> Result<DealtSetup, Error> {
        let names = parties.map(|party| party.channel.peer_fingerprint());
        let derive = |name: &MaterialId| {
            let names = names.each_ref().map(String::as_str);
            SetupSeeds::derive(&self.secret, names, &parties[0].ask.program, name)
        };
        let seeds = parties[0].ask.kept.iter().map(|kept| derive(&kept.name)).find(|setup| {
            let seeds = [&setup.seeds.client, &setup.seeds.server];
            parties.iter().zip(seeds).all(|(party, seed)| {
                let proof = setup_proof(seed);
                party.ask.kept.iter().any(|kept| kept.name == setup.name && kept.proof == proof)
            })
        });
        if let Some(seeds) = seeds {
            return Ok(DealtSetup { seeds, is_new: false });
        }
        let mut name = [0; 16];
        Prg::from_os()?.fill(&mut name);
        Ok(DealtSetup { seeds: derive(&MaterialId::new(&name)), is_new: true })
    }

    fn waiting(&self) -> MutexGuard<'_, BTreeMap<MaterialId, Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The result. The party is told of an error by an abort, unless the error is an abort itself.
fn with_abort<T>(result: Result<T, Error>, channel: &mut Channel) -> Result<T, Error> {
    result.inspect_err(|error| {
        if !error.is_abort() {
            channel.abort(error.abort_reason());
        }
    })
}

fn refuse(mut party: Party, text: &str) -> Error {
    party.channel.abort_with(AbortReason::BadRequest, text);
    PeerMisbehaved::Request(text.to_owned()).into()
}

/// What parties are told of an error: their own faults, nothing of the dealer.
fn message_to_parties(error: &Error) -> String {
    match error {
        Error::PeerMisbehaved(error) => error.to_string(),
        _ => String::new(),
    }
}
