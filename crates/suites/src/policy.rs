//! What a server accepts: which modes, from whom, and how many answers in an hour.
//!
//! A [`Mode`] is every choice of a client that changes what is promised; suites give one for their options. A [`Policy`] lists
//! the accepted values of each choice, for everybody or for a client by name, and is the same type wherever a server is
//! configured: a file, the arguments of a process, the control plane of a service. By default it accepts what keeps the
//! weights best: exact truncations, no dealer, statistical noise, no suite that reveals values.
//!
//! A [`Guard`] holds clients to a policy. It is asked before anything is made or spent for a request.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use crate::StoreError;
use crate::allowance::{Allowance, HOUR};
use crate::registry;
pub use crate::session::{Admission, Caller, Refused};

/// A choice with its values, named alike in Rust, JSON, messages and Python.
macro_rules! choice {
    ($(#[$doc:meta])* $name:ident { $($(#[$about:meta])* $value:ident = $text:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum $name { $($(#[$about])* #[serde(rename = $text)] $value,)+ }

        impl $name {
            /// Its name in options and messages.
            pub fn name(self) -> &'static str {
                match self { $(Self::$value => $text,)+ }
            }

            /// Every value.
            pub const ALL: &[Self] = &[$(Self::$value),+];
        }
    };
}
pub(crate) use choice;

choice! {
    /// How the data is protected.
    Suite {
        /// Boolean sharing between two parties.
        Gmw = "gmw",
        /// Function secret sharing with keys from a dealer.
        Fss = "fss",
        /// Homomorphic encryption.
        Ckks = "ckks",
        /// Encryption for linear layers, values revealed up to order for the rest.
        Stream = "stream",
    }
}
choice! {
    /// What the other party may do.
    Security {
        /// It follows the protocol and studies what it sees.
        SemiHonest = "semi-honest",
        /// It deviates as it likes.
        Malicious = "malicious",
    }
}
choice! {
    /// What becomes of the carry that a truncation drops.
    Truncation {
        /// It is computed: outputs are a function of the input.
        Exact = "exact",
        /// It is lost: outputs depend on what the client knows of its shares.
        OneBit = "one-bit",
    }
}
impl From<Truncation> for privet_gmw::Truncation {
    fn from(truncation: Truncation) -> Self {
        match truncation {
            Truncation::Exact => Self::Exact,
            Truncation::OneBit => Self::OneBit,
        }
    }
}
choice! {
    /// Who makes correlations.
    Correlations {
        /// The two parties.
        Parties = "parties",
        /// A dealer.
        Dealer = "dealer",
    }
}
choice! {
    /// When linear layers run under encryption.
    Linear {
        /// Ahead of time.
        Offline = "offline",
        /// When the input is there.
        Online = "online",
    }
}
choice! {
    /// What linear layers are shared in.
    Field {
        /// The ring of everything else.
        Ring = "ring",
        /// A prime field.
        Prime = "prime",
    }
}
choice! {
    /// What is encrypted under whose key in suite `ckks`.
    Scenario {
        /// The client's data under its own key.
        EncryptedData = "encrypted-data",
        /// The model under its owner's key.
        EncryptedModel = "encrypted-model",
        /// Both under a key that a cohort shares.
        Collective = "collective",
    }
}
choice! {
    /// Noise on results of suite `ckks`.
    Flooding {
        /// Enough to hide all else.
        Statistical = "statistical",
        /// About as much as encryption leaves.
        Light = "light",
    }
}
choice! {
    /// A way in which a mode promises less than the default.
    Weakness {
        /// Truncations lose their carry.
        OneBit = "one-bit",
        /// A third party must collude with neither of the two.
        Dealer = "dealer",
        /// Values are revealed to the client in an order that it does not know.
        RevealedValues = "revealed-values",
        /// Results carry little noise.
        LightFlooding = "light-flooding",
    }
}

impl Weakness {
    /// What it means, for people who read a result.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::OneBit => {
                "one-bit truncation: outputs vary with randomness that the client knows in part, and a client that repeats \
                 an input can learn weights"
            }
            Self::Dealer => "dealer: whoever makes the material must collude with neither party",
            Self::RevealedValues => "revealed values: the client sees all values before activations, up to their order",
            Self::LightFlooding => "light flooding: no statistical proof that results hide the rest of the weights",
        }
    }
}

/// Every choice of a client that a server may forbid; `None` where the suite does not have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mode {
    /// How the data is protected.
    pub suite: Suite,
    /// What the other party may do.
    pub security: Security,
    /// What becomes of carries.
    #[serde(default)]
    pub truncation: Option<Truncation>,
    /// Who makes correlations.
    #[serde(default)]
    pub correlations: Option<Correlations>,
    /// When linear layers run under encryption.
    #[serde(default)]
    pub linear: Option<Linear>,
    /// What linear layers are shared in.
    #[serde(default)]
    pub field: Option<Field>,
    /// What is encrypted under whose key.
    #[serde(default)]
    pub scenario: Option<Scenario>,
    /// Noise on results.
    #[serde(default)]
    pub flooding: Option<Flooding>,
}

impl Mode {
    /// Suite `stream`, with either cipher.
    pub const STREAM: Self = Self::of(Suite::Stream);

    /// A suite against semi-honest parties, without any further choice.
    pub const fn of(suite: Suite) -> Self {
        Self {
            suite,
            security: Security::SemiHonest,
            truncation: None,
            correlations: None,
            linear: None,
            field: None,
            scenario: None,
            flooding: None,
        }
    }

    /// In which ways it promises less than the default.
    pub fn weaknesses(self) -> Vec<Weakness> {
        let found = [
            (self.truncation == Some(Truncation::OneBit), Weakness::OneBit),
            (self.correlations == Some(Correlations::Dealer), Weakness::Dealer),
            (self.suite == Suite::Stream, Weakness::RevealedValues),
            (self.flooding == Some(Flooding::Light), Weakness::LightFlooding),
        ];
        found.into_iter().filter_map(|(there, weakness)| there.then_some(weakness)).collect()
    }
}

/// The accepted values of each choice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Accepts {
    /// Suites.
    pub suite: BTreeSet<Suite>,
    /// Levels of security.
    pub security: BTreeSet<Security>,
    /// Truncations.
    pub truncation: BTreeSet<Truncation>,
    /// Who makes correlations.
    pub correlations: BTreeSet<Correlations>,
    /// When linear layers run.
    pub linear: BTreeSet<Linear>,
    /// What they are shared in.
    pub field: BTreeSet<Field>,
    /// Scenarios of suite `ckks`.
    pub scenario: BTreeSet<Scenario>,
    /// Noise on its results.
    pub flooding: BTreeSet<Flooding>,
}

impl Default for Accepts {
    /// Nothing that has a [`Weakness`]: suite `fss` needs a dealer to be accepted besides.
    fn default() -> Self {
        Self {
            suite: [Suite::Gmw, Suite::Fss, Suite::Ckks].into(),
            security: [Security::SemiHonest, Security::Malicious].into(),
            truncation: [Truncation::Exact].into(),
            correlations: [Correlations::Parties].into(),
            linear: [Linear::Offline, Linear::Online].into(),
            field: [Field::Ring, Field::Prime].into(),
            scenario: [Scenario::EncryptedData, Scenario::EncryptedModel, Scenario::Collective].into(),
            flooding: [Flooding::Statistical].into(),
        }
    }
}

impl Accepts {
    /// Accepts a weakness, too.
    pub fn allow(&mut self, weakness: Weakness) {
        match weakness {
            Weakness::OneBit => drop(self.truncation.insert(Truncation::OneBit)),
            Weakness::Dealer => drop(self.correlations.insert(Correlations::Dealer)),
            Weakness::RevealedValues => drop(self.suite.insert(Suite::Stream)),
            Weakness::LightFlooding => drop(self.flooding.insert(Flooding::Light)),
        }
    }

    /// Whether all choices of a mode are accepted; otherwise the first that is not, and what is instead.
    fn check(&self, mode: Mode) -> Result<(), String> {
        check("suite", Some(mode.suite), &self.suite, Suite::name)?;
        check("security", Some(mode.security), &self.security, Security::name)?;
        check("truncation", mode.truncation, &self.truncation, Truncation::name)?;
        check("correlations", mode.correlations, &self.correlations, Correlations::name)?;
        check("linear", mode.linear, &self.linear, Linear::name)?;
        check("field", mode.field, &self.field, Field::name)?;
        check("scenario", mode.scenario, &self.scenario, Scenario::name)?;
        check("flooding", mode.flooding, &self.flooding, Flooding::name)
    }
}

fn check<T: Copy + Ord>(
    what: &str,
    wish: Option<T>,
    accepted: &BTreeSet<T>,
    name: fn(T) -> &'static str,
) -> Result<(), String> {
    let Some(wish) = wish.filter(|wish| !accepted.contains(wish)) else { return Ok(()) };
    let names: Vec<_> = accepted.iter().map(|&value| name(value)).collect();
    let instead = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    Err(format!("this server's policy does not accept {what} {}: accepted for you: {instead}", name(wish)))
}

/// What holds for one client instead of what holds for all; what is left out does not differ.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Rule {
    /// What is accepted from it.
    pub accepts: Option<Accepts>,
    /// How many answers it may have in an hour.
    pub answers_per_hour: Option<u32>,
}

/// What a server accepts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Policy {
    /// What is accepted from a client without a rule of its own.
    pub accepts: Accepts,
    /// How many answers a client may have in any hour, over all models and modes; a batch is as many as it has samples.
    pub answers_per_hour: Option<u32>,
    /// Whether clients without a rule of their own are refused altogether.
    pub named_only: bool,
    /// Rules for clients: by the SHA-256 of a certificate in hexadecimal, or else by its common name.
    pub clients: BTreeMap<String, Rule>,
}

impl Policy {
    /// Everything that there is, without limits.
    pub fn unrestricted() -> Self {
        let mut policy = Self::default();
        let all = [Weakness::OneBit, Weakness::Dealer, Weakness::RevealedValues, Weakness::LightFlooding];
        all.into_iter().for_each(|weakness| policy.accepts.allow(weakness));
        policy
    }

    /// Whether any client's answers are counted.
    fn counts(&self) -> bool {
        self.answers_per_hour.is_some() || self.clients.values().any(|rule| rule.answers_per_hour.is_some())
    }

    /// The rule for a client, and under which name its answers are counted.
    fn rule<'a>(&'a self, client: &'a Caller) -> Option<(&'a Accepts, Option<u32>, &'a str)> {
        let named = [Some(client.fingerprint.as_str()), client.name.as_deref()].into_iter().flatten();
        let found = named.filter_map(|name| self.clients.get(name).map(|rule| (rule, name))).next();
        match found {
            Some((rule, name)) => Some((
                rule.accepts.as_ref().unwrap_or(&self.accepts),
                rule.answers_per_hour.or(self.answers_per_hour),
                name,
            )),
            None if self.named_only => None,
            None => Some((&self.accepts, self.answers_per_hour, &client.fingerprint)),
        }
    }
}

/// Holds clients to a policy. Clones share their counts.
#[derive(Clone, Debug, Default)]
pub struct Guard {
    policy: Policy,
    allowance: Option<Allowance>,
}

impl Guard {
    /// A guard that counts answers, if the policy limits them, in files below `folder`.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn new(policy: Policy, folder: impl Into<PathBuf>) -> Result<Self, StoreError> {
        let allowance = policy.counts().then(|| Allowance::open(folder)).transpose()?;
        Ok(Self { policy, allowance })
    }

    /// Whether a client may ask for anything at all.
    ///
    /// # Errors
    /// [`Refused::Outside`].
    pub fn admit(&self, client: &Caller) -> Result<(), Refused> {
        self.rule(client).map(drop)
    }

    /// Whether a client may ask in this mode.
    ///
    /// # Errors
    /// [`Refused::Outside`] with what is accepted instead.
    pub fn check(&self, client: &Caller, mode: Mode) -> Result<(), Refused> {
        self.rule(client)?.0.check(mode).map_err(Refused::Outside)
    }

    /// Whether a client may use a dealer, in any suite.
    ///
    /// # Errors
    /// As [`Guard::check`].
    pub fn check_dealer(&self, client: &Caller) -> Result<(), Refused> {
        let accepted = &self.rule(client)?.0.correlations;
        check("correlations", Some(Correlations::Dealer), accepted, Correlations::name).map_err(Refused::Outside)
    }

    /// Counts so many answers to a client, durably, before they are given. They stay counted, whatever becomes of them.
    ///
    /// # Errors
    /// [`Refused::Exhausted`] if the client has had its answers, [`Refused::Outside`] if it may never have so many at once;
    /// [`Refused::Store`] if they cannot be counted.
    pub fn count(&self, client: &Caller, answers: u32) -> Result<(), Refused> {
        let (_, per_hour, name) = self.rule(client)?;
        let (Some(per_hour), Some(allowance)) = (per_hour, &self.allowance) else { return Ok(()) };
        if answers > per_hour {
            let text =
                format!("{answers} samples at once are more than the {per_hour} answers an hour that you may have");
            return Err(Refused::Outside(text));
        }
        let wait = allowance.take(name, per_hour, answers, SystemTime::now())?;
        wait.map_or(Ok(()), |wait| {
            Err(Refused::Exhausted { per_hour, seconds: wait.as_secs().clamp(1, HOUR.as_secs()) })
        })
    }

    fn rule<'a>(&'a self, client: &'a Caller) -> Result<(&'a Accepts, Option<u32>, &'a str), Refused> {
        let text = "this server's policy serves clients that it names alone: ask its operator for a place in it";
        self.policy.rule(client).ok_or_else(|| Refused::Outside(text.into()))
    }
}

impl Admission for Guard {
    fn admit(&self, client: &Caller) -> Result<(), Refused> {
        Self::admit(self, client)
    }

    fn check_suite(&self, client: &Caller, label: &str) -> Result<(), Refused> {
        let config = registry::parse(label).ok_or_else(|| Refused::Outside(format!("there is no suite {label:?}")))?;
        self.check(client, config.mode())
    }

    fn check_dealer(&self, client: &Caller) -> Result<(), Refused> {
        Self::check_dealer(self, client)
    }

    fn count(&self, client: &Caller, answers: u32) -> Result<(), Refused> {
        Self::count(self, client, answers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(name: &str) -> Caller {
        Caller { fingerprint: "ab".repeat(32), name: Some(name.into()) }
    }

    fn guard(text: &str) -> Guard {
        Guard::new(serde_json::from_str(text).unwrap(), "unused").unwrap()
    }

    /// Every option of the suites that speak in sessions, by the way it is weaker.
    #[test]
    fn the_default_accepts_what_has_no_weakness_and_nothing_else() {
        let (default, lifted) = (guard("{}"), Guard::new(Policy::unrestricted(), "unused").unwrap());
        let mut counts = [0, 0];
        for config in registry::configs() {
            let (mode, label) = (config.mode(), config.label());
            let accepted = default.check(&caller("a"), mode).is_ok();
            assert_eq!(accepted, mode.weaknesses().is_empty(), "{label}");
            assert_eq!(accepted, label.contains("exact") && !config.is_dealt(), "{label}");
            lifted.check(&caller("a"), mode).unwrap();
            counts[usize::from(accepted)] += 1;
        }
        assert!(counts.iter().all(|&count| count > 0), "{counts:?}");
        let encrypted = |flooding| Mode {
            scenario: Some(Scenario::EncryptedData),
            flooding: Some(flooding),
            ..Mode::of(Suite::Ckks)
        };
        for (mode, accepted) in
            [(Mode::STREAM, false), (encrypted(Flooding::Light), false), (encrypted(Flooding::Statistical), true)]
        {
            assert_eq!(default.check(&caller("a"), mode).is_ok(), accepted);
            assert_eq!(mode.weaknesses().is_empty(), accepted);
            lifted.check(&caller("a"), mode).unwrap();
        }
    }

    #[test]
    fn each_weakness_is_allowed_by_itself() {
        let exact_dealt = registry::parse("gmw log exact dealt").unwrap().mode();
        let one_bit = registry::parse("gmw log one-bit").unwrap().mode();
        let mut policy = Policy::default();
        policy.accepts.allow(Weakness::Dealer);
        let guard = Guard::new(policy, "unused").unwrap();
        guard.check(&caller("a"), exact_dealt).unwrap();
        let told = guard.check(&caller("a"), one_bit).unwrap_err().to_string();
        assert_eq!(told, "this server's policy does not accept truncation one-bit: accepted for you: exact");
    }

    #[test]
    fn clients_have_rules_by_fingerprint_before_name() {
        let text = r#"{"named_only": true, "clients": {
            "ann": {"accepts": {"truncation": ["exact", "one-bit"]}}, "FP": {"accepts": {"suite": []}}, "bob": {}}}"#;
        let guard = guard(&text.replace("FP", &"cd".repeat(32)));
        let one_bit = registry::parse("gmw log one-bit").unwrap().mode();
        let exact = registry::parse("gmw log exact").unwrap().mode();
        guard.check(&caller("ann"), one_bit).unwrap();
        guard.check(&caller("bob"), exact).unwrap();
        assert!(guard.check(&caller("bob"), one_bit).is_err());
        assert!(guard.admit(&caller("eve")).is_err());
        let fingerprint = Caller { fingerprint: "cd".repeat(32), ..caller("ann") };
        assert!(guard.check(&fingerprint, exact).unwrap_err().to_string().ends_with("accepted for you: none"));
    }

    #[test]
    fn a_policy_with_a_word_that_there_is_not_is_refused() {
        for text in [r#"{"accept": {}}"#, r#"{"accepts": {"truncation": ["exakt"]}}"#, r#"{"answers_per_hour": -1}"#] {
            assert!(serde_json::from_str::<Policy>(text).is_err(), "{text}");
        }
    }
}
