//! The dealer's sessions: brings the two parties of a deal together and deals.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use privet_channel::{AbortReason, Channel, DEFAULT_TIMEOUT};
use privet_prg::{Prg, Seed};
use privet_program::Program;
use serde::{Deserialize, Serialize};

use super::messages;
use crate::authenticated::{self, SetupSeeds};
use crate::{Error, MaterialId, Options, PeerMisbehaved, Plan, PlanRef, memory, sharing};

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
    /// The piece to be made, as both parties name it.
    material: MaterialId,
    /// Fingerprint of the other party's certificate; empty over links without certificates.
    other: String,
    program: String,
    suite: String,
    /// A name for the setups of this program with the other party that were given up here, if any were.
    spoiled: Option<MaterialId>,
}

/// Asks for the client's half of a deal.
pub(super) fn ask_as_client(
    dealer: &mut Channel,
    plan: PlanRef<'_>,
    id: &MaterialId,
    server: String,
    spoiled: Option<MaterialId>,
) -> Result<(), Error> {
    ask(dealer, Half::Client, plan, id, server, spoiled)
}

/// Asks for the server's half of a deal; the program's public half goes with it.
pub(super) fn ask_as_server(
    dealer: &mut Channel,
    plan: PlanRef<'_>,
    id: &MaterialId,
    client: String,
    spoiled: Option<MaterialId>,
    public: &[u8],
) -> Result<(), Error> {
    ask(dealer, Half::Server, plan, id, client, spoiled)?;
    dealer.send(public)?;
    Ok(dealer.flush()?)
}

fn ask(
    dealer: &mut Channel,
    half: Half,
    plan: PlanRef<'_>,
    id: &MaterialId,
    other: String,
    spoiled: Option<MaterialId>,
) -> Result<(), Error> {
    messages::greet(dealer)?;
    let (program, suite) = (plan.program().hash().to_string(), plan.options().name());
    messages::send(dealer, &Ask { half, material: id.clone(), other, program, suite, spoiled })
}

/// A party that has asked, with its link.
struct Party {
    channel: Channel,
    ask: Ask,
    /// The program's public half, from the server.
    public: Option<Vec<u8>>,
}

impl Party {
    fn fingerprint(&self) -> String {
        self.channel.peer().map(|peer| peer.to_string()).unwrap_or_default()
    }

    /// Whether both ask for halves of the same deal, each with the other.
    fn matches(&self, other: &Self) -> bool {
        self.ask.half != other.ask.half
            && (&self.ask.program, &self.ask.suite) == (&other.ask.program, &other.ask.suite)
            && self.ask.other == other.fingerprint()
            && other.ask.other == self.fingerprint()
    }
}

/// What a dealer made.
#[derive(Debug, Clone, PartialEq)]
pub struct Dealt {
    /// The model's name.
    pub model: String,
    /// The piece, as both parties name it.
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
/// the two parties. It keeps nothing but a secret of its own, and names for what was given up.
pub struct Dealer {
    waiting: Mutex<BTreeMap<MaterialId, Party>>,
    changed: Condvar,
    patience: Duration,
    most_bytes: u64,
    /// What setups are derived from, for as long as the dealer lives.
    secret: Seed,
    /// What two parties gave up for a program, if anything.
    spoiled: Mutex<BTreeMap<[String; 3], [Option<MaterialId>; 2]>>,
}

impl Dealer {
    /// A dealer that refuses to make pieces of more than `most_bytes` on the wire, and lets a party wait as long as
    /// `patience` for the other.
    ///
    /// # Errors
    /// [`Error::Randomness`].
    pub fn new(most_bytes: u64, patience: Duration) -> Result<Self, Error> {
        let secret = Prg::from_os()?.seed();
        let patience = patience.min(DEFAULT_TIMEOUT);
        Ok(Self {
            waiting: Mutex::default(),
            changed: Condvar::new(),
            patience,
            most_bytes,
            secret,
            spoiled: Mutex::default(),
        })
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
                    for party in [&mut first, &mut second] {
                        party.channel.abort_with(error.abort_reason(), &told(error));
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
            Half::Server => Some(channel.recv_at_most(messages::MAX_PROGRAM)?),
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
        let options = Options::from_name(&client.ask.suite).filter(|options| options.is_dealt());
        let options = options.ok_or_else(|| request(format!("nothing is dealt for suite {:?}", client.ask.suite)))?;
        let plan = Plan::new(program, options)?;
        let bytes: u64 = plan.by_ref().dealt_bytes().iter().sum();
        if bytes > self.most_bytes {
            return Err(request(format!("a piece takes {bytes} bytes, this dealer's limit is {}", self.most_bytes)));
        }
        match &plan {
            Plan::Sharing(plan) => sharing::deal(&mut client.channel, &mut server.channel, plan)?,
            Plan::Authenticated(plan) => {
                let parties = [client.fingerprint(), server.fingerprint()];
                let spoiled = self.spoiled([client, server]);
                let parties = parties.each_ref().map(String::as_str);
                let setup = SetupSeeds::derive(&self.secret, parties, &client.ask.program, &spoiled);
                authenticated::deal(&mut client.channel, &mut server.channel, plan, &setup)?;
            }
        }
        Ok(Dealt {
            model: plan.by_ref().program().model().to_owned(),
            material: client.ask.material.clone(),
            bytes: [0, 1].map(|i| ([&client.channel, &server.channel][i].cost() - before[i]).bytes_sent),
            seconds: started.elapsed().as_secs_f64(),
            peak_rss_mb: memory::peak_mb(),
        })
    }

    /// What each of the two gave up: as it says or, if it says nothing, as it said before, for its store may have been lost.
    /// The two are not mixed: one that lies about its own cannot keep the other one's from bringing another setup.
    fn spoiled(&self, [client, server]: [&Party; 2]) -> [Option<MaterialId>; 2] {
        let told = [client, server].map(|party| party.ask.spoiled.clone());
        let between = [client.fingerprint(), server.fingerprint(), client.ask.program.clone()];
        let mut spoiled = self.spoiled.lock().unwrap_or_else(PoisonError::into_inner);
        let known = spoiled.get(&between).cloned().unwrap_or_default();
        let [client, server] = known;
        let latest = [told[0].clone().or(client), told[1].clone().or(server)];
        if latest != [None, None] {
            spoiled.insert(between, latest.clone());
        }
        latest
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
fn told(error: &Error) -> String {
    match error {
        Error::PeerMisbehaved(error) => error.to_string(),
        _ => String::new(),
    }
}
