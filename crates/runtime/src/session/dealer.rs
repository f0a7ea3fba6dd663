//! The dealer's sessions: brings the two parties of a deal together and deals.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use privet_channel::{AbortReason, Channel, DEFAULT_TIMEOUT, Link};
use privet_prg::{Prg, Seed};
use privet_program::Program;
use serde::{Deserialize, Serialize};

use super::messages;
use crate::store::{KeptSetup, SetupSeeds, setup_proof};
use crate::suite::{DealtSetup, SuitePlan, SuiteRegistry};
use crate::{Error, MaterialId, PeerMisbehaved, memory};

/// Opens a link to the dealer; a party calls it for each deal.
pub type Connect = Arc<dyn Fn() -> Result<Channel, Error> + Send + Sync>;

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

/// Asks for a half of a deal: the server's if the program's public half goes with it, or else the client's.
pub(super) fn ask(
    dealer: &mut Channel,
    (plan, public): (&dyn SuitePlan, Option<&[u8]>),
    id: &MaterialId,
    other: String,
    kept: &[KeptSetup],
) -> Result<(), Error> {
    messages::greet(dealer)?;
    let half = if public.is_some() { Half::Server } else { Half::Client };
    let (program, suite) = (plan.program().hash().to_string(), plan.label());
    let kept = kept.iter().map(|kept| Kept { name: kept.name.clone(), proof: setup_proof(&kept.seed) }).collect();
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
    waiting: Mutex<BTreeMap<MaterialId, Party>>,
    changed: Condvar,
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
        Ok(Self { suites, waiting: Mutex::default(), changed: Condvar::new(), patience, most_bytes, secret })
    }

    /// Serves one party's deal. The thread of the party that comes second deals and returns what was dealt; the other
    /// one returns `None`.
    ///
    /// # Errors
    /// If this party's link fails, it asks for what it cannot have, or the other party does not come; the parties
    /// are told.
    pub fn serve(&self, mut channel: Channel) -> Result<Option<Dealt>, Error> {
        let (ask, public) = match Self::listen(&mut channel) {
            Ok(asked) => asked,
            Err(error) => {
                if !error.is_abort() {
                    channel.abort(error.abort_reason());
                }
                return Err(error);
            }
        };
        let id = ask.material.clone();
        let party = Party { channel, ask, public };
        match self.meet(id, party)? {
            None => Ok(None),
            Some((mut first, mut second)) => {
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
                result.map(Some)
            }
        }
    }

    fn listen(channel: &mut Channel) -> Result<(Ask, Option<Vec<u8>>), Error> {
        messages::greet(channel)?;
        let ask: Ask = messages::receive(channel)?;
        let public = match ask.half {
            Half::Server => Some(channel.recv_at_most(privet_program::MAX_BYTES)?),
            Half::Client => None,
        };
        Ok((ask, public))
    }

    /// Both parties, if the other one waits already; otherwise waits until it comes and takes this one along.
    fn meet(&self, id: MaterialId, party: Party) -> Result<Option<(Party, Party)>, Error> {
        let mut waiting = self.waiting();
        if waiting.get(&id).is_some_and(|other| other.matches(&party)) {
            let other = waiting.remove(&id);
            self.changed.notify_all();
            return Ok(other.map(|other| (other, party)));
        }
        if waiting.contains_key(&id) {
            drop(waiting);
            return Err(refuse(party, "another party asked for this deal with other wishes or another partner"));
        }
        waiting.insert(id.clone(), party);
        let end = Instant::now() + self.patience;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            (waiting, _) = self.changed.wait_timeout(waiting, left).unwrap_or_else(PoisonError::into_inner);
            if !waiting.contains_key(&id) {
                return Ok(None);
            }
            if Instant::now() >= end {
                let party = waiting.remove(&id);
                drop(waiting);
                let text = "the other party of the deal did not come: does it use the same dealer?";
                return party.map_or(Ok(None), |party| Err(refuse(party, text)));
            }
        }
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
        let known = parties[0].ask.kept.iter().map(|kept| derive(&kept.name)).find(|setup| {
            let seeds = [&setup.seeds.client, &setup.seeds.server];
            parties.iter().zip(seeds).all(|(party, seed)| {
                let proof = setup_proof(seed);
                party.ask.kept.iter().any(|kept| kept.name == setup.name && kept.proof == proof)
            })
        });
        if let Some(seeds) = known {
            return Ok(DealtSetup { seeds, is_new: false });
        }
        let mut name = [0; 16];
        Prg::from_os()?.fill(&mut name);
        Ok(DealtSetup { seeds: derive(&MaterialId::new(&name)), is_new: true })
    }

    fn waiting(&self) -> MutexGuard<'_, BTreeMap<MaterialId, Party>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
