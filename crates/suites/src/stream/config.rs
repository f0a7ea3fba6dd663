//! Every choice of suite `stream`, with its default.

use privet_paillier::KeySize;
use serde::{Deserialize, Serialize};

use super::Cipher;
use crate::Error;
use crate::config::{self, Weakness};

/// What client and server must choose alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Fields", into = "Fields")]
pub struct Config {
    /// What hides values from the server.
    pub cipher: Cipher,
    /// With Paillier: samples of a batch share plaintexts, and their order.
    pub packed: bool,
}

/// The choices by their names in JSON.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Fields {
    cipher: Option<String>,
    key_bits: Option<usize>,
    packed: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self { cipher: Cipher::Bfv, packed: false }
    }
}

impl config::Config for Config {
    const SUITE: &'static str = "stream";
    const WEAKNESS: Option<Weakness> = Some(Weakness {
        name: "revealed-values",
        meaning: "revealed values: the client sees all values before activations, up to their order",
    });

    fn all() -> Vec<Self> {
        let all = Cipher::ALL.into_iter().flat_map(|cipher| [false, true].map(|packed| Self { cipher, packed }));
        all.filter(|config| config.check().is_ok()).collect()
    }

    fn check(&self) -> Result<(), Error> {
        match self.packed && self.cipher == Cipher::Bfv {
            true => Err(Error::Misuse("samples are packed with Paillier alone: choose it, or leave out packed".into())),
            false => Ok(()),
        }
    }
}

impl Config {
    /// The suite with its choices, as results and jobs name it.
    pub fn label(&self) -> String {
        match self.cipher {
            Cipher::Bfv => "stream bfv".into(),
            Cipher::Paillier(size) => {
                format!("stream paillier {}{}", size.bits(), if self.packed { " packed" } else { "" })
            }
        }
    }
}

impl TryFrom<Fields> for Config {
    type Error = Error;

    fn try_from(Fields { cipher, key_bits, packed }: Fields) -> Result<Self, Error> {
        let default = KeySize::Bits2048.bits();
        let cipher = match (cipher.as_deref(), key_bits) {
            (None | Some("bfv"), None) => Some(Cipher::Bfv),
            (Some("paillier"), bits) => Cipher::paillier(bits.unwrap_or(default)),
            _ => None,
        };
        let expected = "the cipher is bfv, or paillier with keys of 2048 or 3072 bits";
        let config = Self { cipher: cipher.ok_or_else(|| Error::Misuse(expected.into()))?, packed };
        config::Config::check(&config).map(|()| config)
    }
}

impl From<Config> for Fields {
    fn from(Config { cipher, packed }: Config) -> Self {
        let key_bits = match cipher {
            Cipher::Paillier(size) => Some(size.bits()),
            Cipher::Bfv => None,
        };
        Self { cipher: Some(cipher.name().into()), key_bits, packed }
    }
}

#[cfg(test)]
mod tests {
    use config::Config as _;

    use super::*;

    #[test]
    fn a_config_comes_back_from_json_with_its_label() {
        let labels: Vec<String> = Config::all().iter().map(Config::label).collect();
        let paillier = ["2048", "2048 packed", "3072", "3072 packed"].map(|keys| format!("stream paillier {keys}"));
        assert_eq!(labels, [&paillier[..], &["stream bfv".to_owned()]].concat());
        for config in Config::all() {
            let json = serde_json::to_string(&config).unwrap();
            assert_eq!(serde_json::from_str::<Config>(&json).unwrap(), config);
        }
        assert_eq!(serde_json::from_str::<Config>("{}").unwrap(), Config::default());
    }

    #[test]
    fn what_does_not_go_together_is_refused() {
        for json in [
            r#"{"cipher": "rsa"}"#,
            r#"{"cipher": "bfv", "key_bits": 2048}"#,
            r#"{"cipher": "paillier", "key_bits": 1024}"#,
            r#"{"key_bits": 2048}"#,
            r#"{"packed": true}"#,
            r#"{"samples": 2}"#,
        ] {
            assert!(serde_json::from_str::<Config>(json).is_err(), "{json}");
        }
    }
}
