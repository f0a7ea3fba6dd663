//! What sessions, stores and memory budgets know of a suite: this interface, and nothing besides.
//!
//! A [`SuiteConfig`] is a suite with every choice made; its label names it in messages and in stores. It plans a program,
//! and a [`SuitePlan`] does the jobs: client and server prepare material and infer on it, a dealer deals. A
//! [`SuiteRegistry`] finds the config of a label that a peer sent.
//!
//! The session does what is alike in every suite: requests, leave, room in the store, memory, names of material. A suite
//! gets a job with the links and the files that it needs, and writes nothing else.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fs::File;

use privet_channel::{Channel, Link};
use privet_linear::Keep;
use privet_ot::{BaseOts, Extension};
use privet_prg::Seed;
use privet_program::Program;
use privet_ring::Modulus;
use privet_seal::Stored;

use crate::forecast::{Forecast, Memory, too_little};
use crate::security::Security;
use crate::session::{HiddenWeights, KeptWeights, Served};
use crate::store::{KeptSetup, SetupSeeds, Setups};
use crate::{Error, MaterialId, Observer, Report, Store, TemporaryEntry};

/// A suite with every choice made; both parties derive the same plan from it.
pub trait SuiteConfig: Send + Sync {
    /// The suite with its choices, as messages and stores name it.
    fn label(&self) -> String;

    /// Whether a dealer makes the material.
    fn is_dealt(&self) -> bool;

    /// Plans `program` for material that is made over `link`.
    ///
    /// # Errors
    /// If the suite cannot run a layer.
    fn plan(&self, program: Program, link: Link) -> Result<Box<dyn SuitePlan>, Error>;
}

/// The suites that a server or a dealer knows.
pub trait SuiteRegistry: Send + Sync {
    /// The config of a label; `None` if there is no such suite.
    fn config(&self, label: &str) -> Option<Box<dyn SuiteConfig>>;

    /// Tells the mask that grows from `secret` from others of a program, without telling anything of it.
    fn mask_name(&self, program: &str, secret: &Seed) -> MaterialId;

    /// Sends a program's weights to a client, hidden by the mask that grows from `secret`, layer by layer
    /// ([`HiddenWeights::send`]).
    ///
    /// # Errors
    /// If no suite hides weights of this program, or the link fails.
    fn send_hidden_weights(&self, served: &Served, secret: &Seed, channel: &mut Channel) -> Result<(), Error>;
}

/// A program planned for a suite.
pub trait SuitePlan: Send + Sync {
    /// The program.
    fn program(&self) -> &Program;

    /// The label of its [`SuiteConfig`].
    fn label(&self) -> String;

    /// Whether a dealer makes the material.
    fn is_dealt(&self) -> bool;

    /// Width of the ring in which each value is made, in bits.
    fn widths(&self) -> Vec<u32>;

    /// What one preparation and one inference will take.
    fn forecast(&self) -> Forecast;

    /// What it assumes and loses.
    fn security(&self) -> Security;

    /// What the client takes with so many threads.
    fn client_memory(&self, threads: usize) -> Memory;

    /// What the server takes for a program that it has loaded, with the OT extension that the client chose.
    ///
    /// # Errors
    /// If what the suite keeps of the program cannot be made.
    fn server_memory(&self, served: &Served, extension: Extension) -> Result<Memory, Error>;

    /// What the server takes if it keeps the weights of linear layers in this form.
    fn server_memory_keeping(&self, keep: Keep, threads: usize) -> Memory;

    /// Bytes of one material entry at client and server, beside its metadata.
    fn material_bytes(&self) -> [u64; 2];

    /// Bytes that a deal sends to the client and to the server.
    fn dealt_bytes(&self) -> [u64; 2];

    /// The OT extension that the two parties would make material with; only those that make it use it.
    fn extension(&self) -> Extension {
        Extension::for_demand(&Default::default(), &Link::LAN)
    }

    /// Whether the two parties make correlations by oblivious transfers when they prepare.
    fn transfers(&self) -> bool {
        false
    }

    /// The ring of the server's hidden weights and the length of each layer, if the client needs them before a deal.
    fn hidden_layers(&self) -> Option<(Modulus, Vec<usize>)> {
        None
    }

    /// Bytes of encrypted weights that the client keeps for preparations; 0 if it keeps none.
    fn kept_bytes(&self) -> u64 {
        0
    }

    /// Tells what a client keeps, under the key that grows from `secret`, from others, without telling anything of weights or key.
    fn kept_name(&self, _secret: &Seed) -> MaterialId {
        MaterialId::new(&[0; 16])
    }

    /// Hands what a client keeps to `send`, in parts: [`SuitePlan::kept_bytes`] in all.
    ///
    /// # Errors
    /// Those of `send`.
    fn send_kept(
        &self,
        _served: &Served,
        _secret: &Seed,
        _send: &mut dyn FnMut(&[u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        Ok(())
    }

    /// Whether material belongs to a setup, which the two parties keep over many runs.
    fn needs_setup(&self) -> bool {
        false
    }

    /// How correlations are made for an inference without material, if the suite runs one.
    fn filling(&self) -> Option<Filling> {
        None
    }

    /// The dealer's side of a preparation; `setup` if the plan needs one.
    ///
    /// # Errors
    /// If a link fails or a party misbehaves.
    fn deal(&self, parties: [&mut Channel; 2], setup: Option<DealtSetup>) -> Result<(), Error>;

    /// The client's side of a preparation; `hidden`: the server's weights behind their mask, if the plan needs them.
    ///
    /// # Errors
    /// If a link fails or the peer misbehaves; nothing made so far may then be used.
    fn prepare_client(&self, job: Preparation<'_>, hidden: Option<HiddenWeights>) -> Result<Prepared, Error>;

    /// The server's side of a preparation.
    ///
    /// # Errors
    /// As [`SuitePlan::prepare_client`].
    fn prepare_server(&self, job: Preparation<'_>, server: ServerSide<'_>) -> Result<Prepared, Error>;

    /// The client's side of an inference on `inputs`, signed fixed-point integers.
    ///
    /// # Errors
    /// If the material is of another plan, the link fails or the peer misbehaves.
    fn infer_client(&self, job: Inference<'_>, inputs: &[Vec<i64>]) -> Result<Prediction, Error>;

    /// The server's side of an inference, which the client was granted.
    ///
    /// # Errors
    /// As [`SuitePlan::infer_client`].
    fn infer_server(&self, job: Inference<'_>, served: &Served) -> Result<Report, Error>;
}

impl dyn SuitePlan + '_ {
    /// Room that an entry takes in the stores of client and server, in bytes: the material, and at most a kilobyte of
    /// header and metadata besides the model's name.
    pub fn entry_bytes(&self) -> (u64, u64) {
        let [client, server] = self.material_bytes();
        // A character takes up to 6 bytes in JSON.
        let rest = 1024 + 6 * self.program().model().len() as u64;
        (client + rest, server + rest)
    }

    /// # Errors
    /// [`Error::Misuse`] if the client takes more than `limit` bytes, with the figure.
    pub fn check_client_memory(&self, limit: u64, threads: usize) -> Result<(), Error> {
        match self.client_memory(threads).peak() {
            peak if peak <= limit => Ok(()),
            peak => Err(too_little(self.program(), limit, peak)),
        }
    }
}

/// A program's outputs as signed fixed-point integers, and what they cost.
pub type Prediction = (Vec<Vec<i64>>, Report);

/// How a buffer of correlations is filled, on which both parties must agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filling {
    /// The OT extension.
    pub extension: Extension,
    /// OTs in either direction that it takes at once, or the demand of one step if that is more.
    pub buffer: usize,
}

/// The setup of a deal, and whether it is new to both parties.
pub struct DealtSetup {
    /// What both derive it from.
    pub seeds: SetupSeeds,
    /// Otherwise both have proved to keep it.
    pub is_new: bool,
}

/// One party's side of a preparation on which both have agreed.
pub struct Preparation<'a> {
    /// The link to the other party.
    pub channel: &'a mut Channel,
    /// The link to the dealer, who knows what is wanted, if one makes the material.
    pub dealer: Option<&'a mut Channel>,
    /// Where the material goes, but for its [head](Prepared::head).
    pub entry: &'a mut TemporaryEntry,
    /// The setups for this program with the other party.
    pub setups: Setups,
    /// Those that the dealer was told of.
    pub kept: Vec<KeptSetup>,
    /// How oblivious transfers begin, where the parties make correlations themselves.
    pub base: &'a mut BaseOts,
    /// The encrypted weights that the client keeps, if the plan wants any.
    pub weights: Option<KeptWeights>,
    /// Keeps other preparations from getting a first setup, too, until it is dropped.
    pub first_setup: Option<File>,
    /// Is called with progress.
    pub observer: &'a mut dyn Observer,
}

impl<'a> Preparation<'a> {
    /// The link to the dealer.
    ///
    /// # Errors
    /// [`Error::Misuse`] if there is none.
    pub fn take_dealer(&mut self) -> Result<&'a mut Channel, Error> {
        self.dealer.take().ok_or_else(|| Error::Misuse("this plan's material is dealt: say where the dealer is".into()))
    }
}

/// What a server has for a preparation besides.
pub struct ServerSide<'a> {
    /// The program.
    pub served: &'a Served,
    /// For secrets that outlive the process.
    pub store: &'a Store,
    /// The OT extension that the client chose.
    pub extension: Extension,
}

/// What a preparation left to the session.
pub struct Prepared {
    /// The last bytes of the material.
    pub head: Vec<u8>,
    /// The setup that it belongs to.
    pub setup: Option<MaterialId>,
    /// What it cost.
    pub report: Report,
}

/// Where an inference takes its correlations from.
pub enum Material<'a> {
    /// An entry that was claimed.
    Claimed {
        /// Its name.
        id: MaterialId,
        /// Its bytes.
        file: Stored,
    },
    /// None: they are made as it goes, by oblivious transfers that begin so.
    Unprepared(Filling, &'a mut BaseOts),
}

/// One party's side of an inference.
pub struct Inference<'a> {
    /// The link to the other party.
    pub channel: &'a mut Channel,
    /// What it uses up.
    pub material: Material<'a>,
    /// The setups for this program with the other party.
    pub setups: Setups,
    /// What the suite keeps for this session.
    pub session: &'a mut SessionState,
    /// This party's shares of the program's state, in its ring: those that the inference begins with, to be replaced by those
    /// that it leaves.
    pub kept: &'a mut Vec<Vec<u64>>,
    /// Is called with progress.
    pub observer: &'a mut dyn Observer,
}

/// What suites keep for the length of a session, such as keys; each has a type of its own.
#[derive(Default)]
pub struct SessionState(HashMap<TypeId, Box<dyn Any + Send>>);

impl SessionState {
    /// What is kept of this type, new at first.
    pub fn of<T: Default + Send + 'static>(&mut self) -> &mut T {
        let value = self.0.entry(TypeId::of::<T>()).or_insert_with(|| Box::new(T::default()));
        value.downcast_mut().expect("what is kept under a type is of that type")
    }
}
