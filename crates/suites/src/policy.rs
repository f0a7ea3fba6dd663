//! What a server accepts: which modes, from whom, and how many answers in an hour.
//!
//! A [`Mode`] is every choice of a client that changes what is promised; suites' configs give theirs. A [`Policy`] lists
//! the accepted values of each choice, for everybody or for a client by name, and is the same type wherever a server is
//! configured: a file, the arguments of a process, the control plane of a service. The choices are those of the suites that
//! there are ([`registry::values`]); by default it accepts what has no weakness.
//!
//! A [`Guard`] holds clients to a policy. It is asked before anything is made or spent for a request.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::SystemTime;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::allowance::{Allowance, HOUR};
use crate::config::{Choice, Mode, Value};
use crate::registry;
pub use crate::session::{Admission, Caller, Refused};
use crate::sharing::Maker;
use crate::{Error, StoreError};

/// The accepted values of each choice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accepts(Vec<Value>);

impl Default for Accepts {
    /// Nothing that has a [`Weakness`](crate::config::Weakness): suite `fss` needs a dealer to be accepted besides.
    fn default() -> Self {
        Self(registry::values().iter().filter(|value| value.weakness.is_none()).copied().collect())
    }
}

impl Accepts {
    /// Accepts the weakness of this name, too.
    ///
    /// # Errors
    /// [`Error::Misuse`] if there is no such weakness.
    pub fn allow(&mut self, weakness: &str) -> Result<(), Error> {
        let is_weak = |value: &&Value| value.weakness.is_some_and(|weak_point| weak_point.name == weakness);
        if registry::values().iter().find(is_weak).is_none() {
            return Err(Error::Misuse(format!("there is no weakness {weakness:?} that a server could accept")));
        }
        let is_accepted = |value: &&Value| self.0.contains(value) || is_weak(value);
        self.0 = registry::values().iter().filter(is_accepted).copied().collect();
        Ok(())
    }

    /// The names of what is accepted of a choice.
    fn of(&self, choice: &str) -> Vec<&'static str> {
        self.0.iter().filter(|value| value.choice == choice).map(|value| value.name).collect()
    }

    /// Whether all values are accepted; otherwise the first that is not, and what is instead.
    fn check(&self, values: &[Value]) -> Result<(), Refused> {
        let Some(Value { choice, name, .. }) = values.iter().find(|value| !self.0.contains(value)) else {
            return Ok(());
        };
        let accepted = self.of(choice);
        let instead = if accepted.is_empty() { "none".to_owned() } else { accepted.join(", ") };
        let message = format!("this server's policy does not accept {choice} {name}: accepted for you: {instead}");
        Err(Refused::Outside(message))
    }
}

impl Serialize for Accepts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(registry::choices().map(|choice| (choice, self.of(choice))))
    }
}

impl<'de> Deserialize<'de> for Accepts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut accepts = Self::default();
        for (choice, names) in BTreeMap::<String, Vec<String>>::deserialize(deserializer)? {
            if registry::choices().all(|other| other != choice) {
                let possible = registry::choices().collect::<Vec<_>>().join(", ");
                return Err(de::Error::custom(format!("there is no choice {choice:?}: possible are {possible}")));
            }
            let named = names.iter().map(|name| registry::value(&choice, name).map_err(de::Error::custom));
            let named = named.collect::<Result<Vec<_>, _>>()?;
            let is_accepted =
                |value: &&Value| if value.choice == choice { named.contains(value) } else { accepts.0.contains(value) };
            accepts.0 = registry::values().iter().filter(is_accepted).copied().collect();
        }
        Ok(accepts)
    }
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
    #[serde(deserialize_with = "by_name")]
    pub clients: BTreeMap<String, Rule>,
}

/// The rules of clients, under the names that clients are known by: programs also write a certificate's SHA-256 in capitals and
/// with colons. A rule that does not reach its client would not hold it to anything.
fn by_name<'de, D: Deserializer<'de>>(document: D) -> Result<BTreeMap<String, Rule>, D::Error> {
    let mut rules = BTreeMap::new();
    for (name, rule) in BTreeMap::<String, Rule>::deserialize(document)? {
        let name = as_fingerprint(&name).unwrap_or(name);
        if rules.insert(name.clone(), rule).is_some() {
            return Err(de::Error::custom(format!("it has two rules for client {name}")));
        }
    }
    Ok(rules)
}

/// The SHA-256 of a certificate that a text is, in plain hexadecimal.
fn as_fingerprint(text: &str) -> Option<String> {
    let plain = text.replace(':', "").to_lowercase();
    (plain.len() == 64 && plain.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some(plain)
}

impl Policy {
    /// Everything that there is, without limits.
    pub fn unrestricted() -> Self {
        Self { accepts: Accepts(registry::values().to_vec()), ..Self::default() }
    }

    /// Whether any client's answers are counted.
    fn counts(&self) -> bool {
        self.answers_per_hour.is_some() || self.clients.values().any(|rule| rule.answers_per_hour.is_some())
    }

    /// The rule for a client, and under which name its answers are counted.
    fn rule<'a>(&'a self, client: &'a Caller) -> Option<(&'a Accepts, Option<u32>, &'a str)> {
        // A name that reads as a fingerprint would get the rule, and use up the answers, of another client.
        let name = client.name.as_deref().filter(|name| as_fingerprint(name).is_none());
        let matching = [Some(client.fingerprint.as_str()), name]
            .into_iter()
            .flatten()
            .filter_map(|name| self.clients.get(name).map(|rule| (rule, name)))
            .next();
        match matching {
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
    pub fn new(policy: Policy, folder: impl Into<PathBuf>) -> Result<Self, StoreError> {
        let allowance = policy.counts().then(|| Allowance::open(folder)).transpose()?;
        Ok(Self { policy, allowance })
    }

    /// Whether a client may ask in this mode.
    ///
    /// # Errors
    /// [`Refused::Outside`] with what is accepted instead.
    pub fn check(&self, client: &Caller, mode: &Mode) -> Result<(), Refused> {
        self.rule(client)?.0.check(&mode.0)
    }

    fn rule<'a>(&'a self, client: &'a Caller) -> Result<(&'a Accepts, Option<u32>, &'a str), Refused> {
        let text = "this server's policy serves clients that it names alone: ask its operator for a place in it";
        self.policy.rule(client).ok_or_else(|| Refused::Outside(text.into()))
    }
}

impl Admission for Guard {
    fn admit(&self, client: &Caller) -> Result<(), Refused> {
        self.rule(client).map(drop)
    }

    fn check_suite(&self, client: &Caller, label: &str) -> Result<(), Refused> {
        let config = registry::parse(label).ok_or_else(|| Refused::Outside(format!("there is no suite {label:?}")))?;
        self.check(client, &config.mode())
    }

    fn check_dealer(&self, client: &Caller) -> Result<(), Refused> {
        self.rule(client)?.0.check(&[Maker::Dealer.value()])
    }

    fn count(&self, client: &Caller, answers: u32) -> Result<(), Refused> {
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

    #[test]
    fn the_default_accepts_what_has_no_weakness_and_nothing_else() {
        let (default, lifted) = (guard("{}"), Guard::new(Policy::unrestricted(), "unused").unwrap());
        let mut counts = [0, 0];
        for mode in registry::modes() {
            let text = serde_json::to_string(&mode).unwrap();
            let accepted = default.check(&caller("a"), &mode).is_ok();
            assert_eq!(accepted, mode.weaknesses().is_empty(), "{text}");
            let weaker = ["one-bit", "dealer", "weights", "stream", "light"];
            assert_eq!(accepted, weaker.iter().all(|weaker| !text.contains(weaker)), "{text}");
            assert_eq!(registry::mode(&text).unwrap(), mode);
            lifted.check(&caller("a"), &mode).unwrap();
            counts[usize::from(accepted)] += 1;
        }
        assert!(counts.iter().all(|&count| count > 0), "{counts:?}");
    }

    #[test]
    fn each_weakness_is_allowed_by_itself() {
        let exact_dealt = registry::parse("gmw log exact dealt").unwrap().mode();
        let one_bit = registry::parse("gmw log one-bit").unwrap().mode();
        let mut policy = Policy::default();
        policy.accepts.allow("dealer").unwrap();
        assert!(policy.accepts.allow("two-bit").is_err());
        let guard = Guard::new(policy, "unused").unwrap();
        guard.check(&caller("a"), &exact_dealt).unwrap();
        let refusal = guard.check(&caller("a"), &one_bit).unwrap_err().to_string();
        assert_eq!(refusal, "this server's policy does not accept truncation one-bit: accepted for you: exact");
    }

    #[test]
    fn clients_have_rules_by_fingerprint_before_name() {
        let text = r#"{"named_only": true, "clients": {
            "ann": {"accepts": {"truncation": ["exact", "one-bit"]}}, "FP": {"accepts": {"suite": []}}, "bob": {}}}"#;
        let guard = guard(&text.replace("FP", &"cd".repeat(32)));
        let one_bit = registry::parse("gmw log one-bit").unwrap().mode();
        let exact = registry::parse("gmw log exact").unwrap().mode();
        guard.check(&caller("ann"), &one_bit).unwrap();
        guard.check(&caller("bob"), &exact).unwrap();
        assert!(guard.check(&caller("bob"), &one_bit).is_err());
        assert!(guard.admit(&caller("eve")).is_err());
        let fingerprint = Caller { fingerprint: "cd".repeat(32), ..caller("ann") };
        assert!(guard.check(&fingerprint, &exact).unwrap_err().to_string().ends_with("accepted for you: none"));
    }

    #[test]
    fn a_rule_reaches_its_client_however_the_fingerprint_is_written() {
        let (plain, colons) = ("cd".repeat(32), ["CD"; 32].join(":"));
        let guard = guard(&format!(r#"{{"named_only": true, "clients": {{"{colons}": {{}}}}}}"#));
        guard.admit(&Caller { fingerprint: plain.clone(), name: None }).unwrap();
        assert!(guard.admit(&Caller { fingerprint: "ce".repeat(32), name: None }).is_err());
        let twice = format!(r#"{{"clients": {{"{colons}": {{}}, "{plain}": {{}}}}}}"#);
        let refused = serde_json::from_str::<Policy>(&twice).unwrap_err().to_string();
        assert!(refused.contains(&format!("two rules for client {plain}")), "{refused}");
    }

    #[test]
    fn who_is_called_like_the_fingerprint_of_another_does_not_get_its_rule() {
        let other = "cd".repeat(32);
        let one_bit = registry::parse("gmw log one-bit").unwrap().mode();
        let rules = |name: &str| {
            let rule = r#"{"accepts": {"truncation": ["exact", "one-bit"]}}"#;
            guard(&format!(r#"{{"named_only": true, "clients": {{"{name}": {rule}}}}}"#))
        };
        for name in [&other, &other.to_uppercase(), &["CD"; 32].join(":")] {
            assert!(rules(name).check(&caller(&other), &one_bit).is_err(), "{name}");
            assert!(rules(name).admit(&caller(name)).is_err(), "{name}");
        }
        // The controls: whose fingerprint it is, and a name that is none.
        rules(&other).check(&Caller { fingerprint: other.clone(), name: None }, &one_bit).unwrap();
        rules(&other[1..]).check(&caller(&other[1..]), &one_bit).unwrap();
    }

    #[test]
    fn a_policy_with_a_word_that_there_is_not_is_refused() {
        for text in [
            r#"{"accept": {}}"#,
            r#"{"accepts": {"truncation": ["exakt"]}}"#,
            r#"{"accepts": {"trunk": []}}"#,
            r#"{"answers_per_hour": -1}"#,
        ] {
            assert!(serde_json::from_str::<Policy>(text).is_err(), "{text}");
        }
    }
}
