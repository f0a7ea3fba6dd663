//! What configs of suites are made of: choices with their values, and what a server may forbid of them.
//!
//! A suite has one type for its [`Config`]. From its fields follow its JSON, its label, and its [`Mode`]: the values that
//! change what is promised. Policies know no choice but those that some config's mode has.

use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::Error;

/// A way in which a value promises less than the default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Weakness {
    /// Its name in options and results.
    pub name: &'static str,
    /// What it means, for people who read a result.
    pub meaning: &'static str,
}

/// A choice with its values, named alike in Rust, JSON, messages and Python.
pub trait Choice: Copy + PartialEq + 'static {
    /// Its name.
    const NAME: &'static str;

    /// Every value with its name.
    const VALUES: &'static [(Self, &'static str)];

    /// In which way a value promises less, if it does.
    fn weakness(self) -> Option<Weakness> {
        None
    }

    /// The name of a value.
    fn name(self) -> &'static str {
        Self::VALUES.iter().find(|(value, _)| *value == self).map_or("", |(_, name)| name)
    }

    /// A value as modes hold it.
    fn value(self) -> Value {
        Value { choice: Self::NAME, name: self.name(), weakness: self.weakness() }
    }
}

/// A [`Choice`] as a field of a config: `#[serde(with = "named")]`.
pub(crate) mod named {
    use super::*;

    pub(crate) fn serialize<T: Choice, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(value.name())
    }

    pub(crate) fn deserialize<'de, T: Choice, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
        let text = String::deserialize(deserializer)?;
        let value = T::VALUES.iter().find(|(_, name)| *name == text).map(|(value, _)| *value);
        let possible = || T::VALUES.iter().map(|(_, name)| *name).collect::<Vec<_>>().join(", ");
        value.ok_or_else(|| de::Error::custom(format!("{} {text:?}: possible are {}", T::NAME, possible())))
    }
}

/// A value of a choice that a server may forbid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Value {
    /// Of which choice.
    pub choice: &'static str,
    /// Its name.
    pub name: &'static str,
    /// In which way it promises less, if it does.
    pub weakness: Option<Weakness>,
}

/// Everything of a config that a server may forbid: the suite, the other party's abilities, and the suite's own choices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mode(pub Vec<Value>);

impl Mode {
    /// In which ways it promises less than the default.
    pub fn weaknesses(&self) -> Vec<Weakness> {
        self.0.iter().filter_map(|value| value.weakness).collect()
    }
}

impl Serialize for Mode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        self.0.iter().try_for_each(|value| map.serialize_entry(value.choice, value.name))?;
        map.end()
    }
}

/// A suite's type of choices: what client and server must choose alike.
pub trait Config: Copy + Default + 'static {
    /// The suite's name.
    const SUITE: &'static str;

    /// What the other party may do.
    const SECURITY: Security = Security::SemiHonest;

    /// In which way the suite as such promises less than others, if it does.
    const WEAKNESS: Option<Weakness> = None;

    /// Every config.
    fn all() -> Vec<Self>;

    /// # Errors
    /// [`Error::Misuse`] if choices do not go together.
    fn check(&self) -> Result<(), Error> {
        Ok(())
    }

    /// The suite's own values that a server may forbid.
    fn values(&self) -> Vec<Value> {
        Vec::new()
    }

    /// What a policy may forbid.
    fn mode(&self) -> Mode {
        let suite = Value { choice: "suite", name: Self::SUITE, weakness: Self::WEAKNESS };
        Mode([vec![suite, Self::SECURITY.value()], self.values()].concat())
    }
}

/// Each config with each value of a choice; `set`: puts it in.
pub(crate) fn vary<C: Copy, T: Choice>(configs: Vec<C>, set: impl Fn(C, T) -> C) -> Vec<C> {
    let of = |config| T::VALUES.iter().map(move |(value, _)| (config, *value));
    configs.into_iter().flat_map(of).map(|(config, value)| set(config, value)).collect()
}

/// What the other party may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Security {
    /// It follows the protocol and studies what it sees.
    SemiHonest,
    /// It deviates as it likes.
    Malicious,
}

impl Choice for Security {
    const NAME: &'static str = "security";
    const VALUES: &'static [(Self, &'static str)] =
        &[(Self::SemiHonest, "semi-honest"), (Self::Malicious, "malicious")];
}

/// What becomes of the carry that a truncation drops.
impl Choice for privet_gmw::Truncation {
    const NAME: &'static str = "truncation";
    const VALUES: &'static [(Self, &'static str)] = &[(Self::Exact, "exact"), (Self::OneBit, "one-bit")];

    fn weakness(self) -> Option<Weakness> {
        (self == Self::OneBit).then_some(Weakness {
            name: "one-bit",
            meaning: "one-bit truncation: outputs vary with randomness that the client knows in part, and a client that \
                      repeats an input can learn weights",
        })
    }
}

/// Depth of comparisons.
impl Choice for privet_gmw::Rounds {
    const NAME: &'static str = "rounds";
    const VALUES: &'static [(Self, &'static str)] =
        &[(Self::Linear, "linear"), (Self::Log, "log"), (Self::Blocks, "blocks")];
}
