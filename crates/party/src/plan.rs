//! A plan of either kind: on plain shares, or on authenticated ones.

use privet_channel::Link;
use privet_ot::Extension;
use privet_program::Program;

use crate::security::Security;
use crate::sharing::{Forecast, Memory};
use crate::{Error, authenticated, sharing};

/// A suite with its options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Options {
    /// Both parties follow the protocol.
    Sharing(sharing::Options),
    /// One of them may deviate.
    Authenticated(authenticated::Options),
}

impl Options {
    /// Every choice, with full comparisons.
    pub fn all() -> impl Iterator<Item = Self> {
        let sharing = sharing::Options::made().chain(sharing::Options::dealt()).chain(sharing::Options::one_shot());
        sharing.map(Self::Sharing).chain(authenticated::Options::all().map(Self::Authenticated))
    }

    /// The suite with its options, as control messages and stores name it.
    pub fn name(self) -> String {
        match self {
            Self::Sharing(options) => options.name(),
            Self::Authenticated(options) => options.name(),
        }
    }

    /// The options of which [`Options::name`] is `name`.
    pub fn from_name(name: &str) -> Option<Self> {
        let authenticated =
            authenticated::Options::all().map(Self::Authenticated).find(|options| options.name() == name);
        sharing::Options::from_name(name).map(Self::Sharing).or(authenticated)
    }

    /// Whether a dealer makes the material.
    pub fn is_dealt(self) -> bool {
        match self {
            Self::Sharing(options) => options.is_dealt(),
            Self::Authenticated(_) => true,
        }
    }
}

/// A planned program.
pub enum Plan {
    /// On plain shares.
    Sharing(sharing::Plan),
    /// On authenticated shares.
    Authenticated(authenticated::Plan),
}

/// A [`Plan`], or either kind alone, as sessions take it.
#[derive(Clone, Copy)]
pub enum PlanRef<'a> {
    /// On plain shares.
    Sharing(&'a sharing::Plan),
    /// On authenticated shares.
    Authenticated(&'a authenticated::Plan),
}

impl<'a> From<&'a Plan> for PlanRef<'a> {
    fn from(plan: &'a Plan) -> Self {
        match plan {
            Plan::Sharing(plan) => Self::Sharing(plan),
            Plan::Authenticated(plan) => Self::Authenticated(plan),
        }
    }
}

impl<'a> From<&'a sharing::Plan> for PlanRef<'a> {
    fn from(plan: &'a sharing::Plan) -> Self {
        Self::Sharing(plan)
    }
}

impl<'a> From<&'a authenticated::Plan> for PlanRef<'a> {
    fn from(plan: &'a authenticated::Plan) -> Self {
        Self::Authenticated(plan)
    }
}

impl<'a> PlanRef<'a> {
    /// The program.
    pub fn program(self) -> &'a Program {
        match self {
            Self::Sharing(plan) => plan.program(),
            Self::Authenticated(plan) => plan.program(),
        }
    }

    /// Width of the ring in which each value is made, in bits.
    pub fn widths(self) -> Vec<u32> {
        let values = 0..self.program().values().len();
        match self {
            Self::Sharing(plan) => values.map(|id| plan.width(id)).collect(),
            Self::Authenticated(plan) => values.map(|id| plan.width(id)).collect(),
        }
    }

    /// What both parties chose.
    pub fn options(self) -> Options {
        match self {
            Self::Sharing(plan) => Options::Sharing(plan.options()),
            Self::Authenticated(plan) => Options::Authenticated(plan.options()),
        }
    }

    /// Room that a piece takes in the stores of client and server, in bytes: the material, and at most a kilobyte of
    /// header and metadata besides the model's name.
    pub fn piece_bytes(self) -> (u64, u64) {
        let [client, server] = match self {
            Self::Sharing(plan) => {
                let forecast = plan.forecast();
                [forecast.material_bytes_client, forecast.material_bytes_server]
            }
            Self::Authenticated(plan) => plan.stored_bytes(),
        };
        // A character takes up to 6 bytes in JSON.
        let rest = 1024 + 6 * self.program().model().len() as u64;
        (client + rest, server + rest)
    }

    /// The OT extension that the two parties would make material with; only those that make it use it.
    pub(crate) fn extension(self) -> Extension {
        match self {
            Self::Sharing(plan) => plan.extension(),
            Self::Authenticated(_) => Extension::for_demand(&Default::default(), &Link::LAN),
        }
    }

    /// What a deal sends to the client and to the server.
    pub(crate) fn dealt_bytes(self) -> [u64; 2] {
        match self {
            Self::Sharing(plan) => sharing::dealt_bytes(plan),
            Self::Authenticated(plan) => authenticated::dealt_bytes(plan),
        }
    }
}

impl Plan {
    /// Plans `program`.
    ///
    /// # Errors
    /// If a layer does not fit its suite.
    pub fn new(program: Program, options: Options) -> Result<Self, Error> {
        match options {
            Options::Sharing(options) => Ok(Self::Sharing(sharing::Plan::new(program, options)?)),
            Options::Authenticated(options) => Ok(Self::Authenticated(authenticated::Plan::new(program, options)?)),
        }
    }

    /// The same plan for material that is made over `link` instead of a local network.
    #[must_use]
    pub fn over(self, link: Link) -> Self {
        match self {
            Self::Sharing(plan) => Self::Sharing(plan.over(link)),
            authenticated => authenticated,
        }
    }

    /// The plan by reference.
    pub fn by_ref(&self) -> PlanRef<'_> {
        self.into()
    }

    /// What one preparation and one inference will take.
    pub fn forecast(&self) -> Forecast {
        match self {
            Self::Sharing(plan) => plan.forecast(),
            Self::Authenticated(plan) => plan.forecast(),
        }
    }

    /// What the plan assumes and loses.
    pub fn security(&self) -> Security {
        match self {
            Self::Sharing(plan) => plan.security(),
            Self::Authenticated(plan) => plan.security(),
        }
    }

    /// What the client takes.
    pub fn client_memory(&self, threads: usize) -> Memory {
        match self {
            Self::Sharing(plan) => plan.client_memory(threads),
            Self::Authenticated(plan) => plan.memory(),
        }
    }

    /// # Errors
    /// [`Error::Misuse`] if the client takes more than `limit` bytes, with the figure.
    pub fn check_client_memory(&self, limit: u64, threads: usize) -> Result<(), Error> {
        match self.client_memory(threads).peak() {
            peak if peak <= limit => Ok(()),
            peak => Err(sharing::too_little(self.by_ref().program(), limit, peak)),
        }
    }
}
