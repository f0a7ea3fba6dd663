//! Vectors of ciphertexts.

use rayon::prelude::*;
use zeroize::Zeroizing;

use crate::error::{Error, Misuse, PeerMisbehaved};
use crate::integer::{Integer, from_limbs, to_limbs};
use crate::keys::PublicKey;
use crate::lanes::{Lanes, Residues, load, store};
use crate::noise::Noise;
use crate::plaintext::Plaintext;

/// Ciphertexts under one public key, all of them invertible modulo `n^2`.
#[derive(Clone)]
pub struct Ciphertexts {
    key: PublicKey,
    /// In Montgomery's form, below `8 n^2`.
    residues: Residues,
}

impl Ciphertexts {
    pub(crate) fn new(key: &PublicKey, residues: Residues) -> Self {
        Self { key: key.clone(), residues }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.residues.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The key they are under.
    pub fn key(&self) -> &PublicKey {
        &self.key
    }

    pub(crate) fn residues(&self) -> &Residues {
        &self.residues
    }

    /// Some of them.
    ///
    /// # Panics
    /// If the range ends beyond them.
    #[must_use]
    pub fn slice(&self, range: std::ops::Range<usize>) -> Self {
        Self { key: self.key.clone(), residues: self.residues.slice(range) }
    }

    /// In the order of `indices`.
    ///
    /// # Errors
    /// [`Misuse::NoSuchInput`] for an index beyond them.
    pub fn select(&self, indices: &[usize]) -> Result<Self, Error> {
        let mut residues = Residues::zero(self.key.modulus().limbs(), indices.len());
        for (at, &index) in indices.iter().enumerate() {
            if index >= self.len() {
                return Err(Misuse::NoSuchInput { index, count: self.len() }.into());
            }
            residues.at_mut(at).copy_from_slice(self.residues.at(index));
        }
        Ok(Self { key: self.key.clone(), residues })
    }

    /// Puts others behind these.
    ///
    /// # Errors
    /// [`Misuse::KeysDiffer`].
    pub fn append(&mut self, other: Self) -> Result<(), Error> {
        self.same_key(&other.key)?;
        self.residues.append(other.residues);
        Ok(())
    }

    /// All of them, one after the other, little-endian, [`crate::KeySize::ciphertext_bytes`] each.
    ///
    /// A ciphertext that was computed from others tells their sender how, until it is re-randomised
    /// ([`Ciphertexts::randomize`]).
    pub fn to_bytes(&self) -> Vec<u8> {
        let words = 2 * self.key.size().words();
        let modulus = self.key.modulus();
        let plain = self.map(|lanes| modulus.leave(lanes));
        plain.iter().flat_map(|limbs| from_limbs(limbs, words).as_words().to_vec()).flat_map(u64::to_le_bytes).collect()
    }

    /// Reads `count` ciphertexts from a peer, and checks that each is below `n^2` and invertible: one inversion for
    /// all.
    ///
    /// # Errors
    /// [`PeerMisbehaved::WrongLength`], [`PeerMisbehaved::NotReduced`], [`PeerMisbehaved::NotInvertible`].
    pub fn from_bytes(key: &PublicKey, count: usize, bytes: &[u8]) -> Result<Self, Error> {
        let each = key.size().ciphertext_bytes();
        // Nothing is allocated by `count`, which the caller knows from the program.
        if !bytes.len().is_multiple_of(each) || bytes.len() / each != count {
            let expected = count.saturating_mul(each);
            return Err(PeerMisbehaved::WrongLength { what: "ciphertexts", expected, actual: bytes.len() }.into());
        }
        let modulus = key.modulus();
        let mut residues = Residues::zero(modulus.limbs(), count);
        for (index, bytes) in bytes.chunks_exact(each).enumerate() {
            let (words, _) = bytes.as_chunks();
            let value = Integer::from_words(words.iter().map(|&word| u64::from_le_bytes(word)));
            if value >= *key.n_squared() {
                return Err(PeerMisbehaved::NotReduced { index }.into());
            }
            residues.at_mut(index).copy_from_slice(&to_limbs(value.as_words(), modulus.limbs()));
        }
        let plain = Self { key: key.clone(), residues };
        let residues = plain.map(|lanes| modulus.enter(lanes));
        let ciphertexts = Self { key: key.clone(), residues };
        ciphertexts.check_invertible()?;
        Ok(ciphertexts)
    }

    /// Adds the plaintexts of `other` to those of these, one by one: one product each.
    ///
    /// # Errors
    /// [`Misuse::KeysDiffer`], [`Misuse::WrongLength`].
    pub fn add(&mut self, other: &Self) -> Result<(), Error> {
        self.same_key(&other.key)?;
        self.multiply_by(&other.residues, "ciphertexts to add")
    }

    /// Adds known numbers, one by one: two products each, and no noise.
    ///
    /// # Errors
    /// [`Misuse::WrongLength`], [`Misuse::PlaintextTooLarge`].
    pub fn add_plain(&mut self, plaintexts: &[Plaintext]) -> Result<(), Error> {
        let encoded = encode(&self.key, plaintexts)?;
        self.multiply_by(&encoded, "plaintexts to add")
    }

    /// Makes the ciphertexts independent of how they were computed: each is multiplied by fresh noise. Whoever returns
    /// results to the owner of the private key must do this last, because the owner also sees a ciphertext's noise, and
    /// that of a dot product is the product of the inputs' noise to the powers of the weights.
    ///
    /// # Errors
    /// [`Misuse::KeysDiffer`], [`Misuse::WrongLength`].
    pub fn randomize(&mut self, noise: Noise) -> Result<(), Error> {
        self.same_key(noise.key())?;
        self.multiply_by(noise.residues(), "noise")
    }

    /// Encrypts under a public key: two products each, and noise.
    ///
    /// # Errors
    /// [`Misuse::WrongLength`], [`Misuse::PlaintextTooLarge`].
    pub fn encrypt(plaintexts: &[Plaintext], noise: Noise) -> Result<Self, Error> {
        let key = noise.key().clone();
        let mut ciphertexts = Self { residues: encode(&key, plaintexts)?, key };
        ciphertexts.randomize(noise)?;
        Ok(ciphertexts)
    }

    fn multiply_by(&mut self, factors: &Residues, what: &'static str) -> Result<(), Error> {
        if self.len() != factors.len() {
            return Err(Misuse::WrongLength { what, expected: self.len(), actual: factors.len() }.into());
        }
        let modulus = self.key.modulus();
        let limbs = modulus.limbs();
        let factors: Vec<_> = factors.eights().collect();
        self.residues.eights_mut().zip(factors).par_bridge().for_each(|(numbers, factors)| {
            let mut product = load(limbs, numbers);
            modulus.multiply(&mut product, &load(limbs, factors));
            store(&product, numbers);
        });
        Ok(())
    }

    /// All numbers after an operation on their lanes.
    fn map(&self, operation: impl Fn(&mut Lanes) + Sync) -> Residues {
        let limbs = self.key.modulus().limbs();
        let mut out = Residues::zero(limbs, self.len());
        out.eights_mut().zip(self.residues.eights()).par_bridge().for_each(|(out, numbers)| {
            let mut lanes = load(limbs, numbers);
            operation(&mut lanes);
            store(&lanes, out);
        });
        out
    }

    fn same_key(&self, other: &PublicKey) -> Result<(), Error> {
        if self.key == *other { Ok(()) } else { Err(Misuse::KeysDiffer.into()) }
    }

    /// Whether the product of all is invertible modulo `n`; if not, names the first that is to blame.
    fn check_invertible(&self) -> Result<(), Error> {
        let limbs = self.key.modulus().limbs();
        if self.key.all_invertible(self.residues.eights().map(|numbers| load(limbs, numbers))) {
            return Ok(());
        }
        let index =
            self.residues.iter().position(|number| !self.key.all_invertible([load(limbs, number)])).unwrap_or(0);
        Err(PeerMisbehaved::NotInvertible { index }.into())
    }
}

impl std::fmt::Debug for Ciphertexts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ciphertexts of {} bits", self.len(), 2 * self.key.size().bits())
    }
}

/// `1 + m n` for each plaintext, in Montgomery's form.
fn encode(key: &PublicKey, plaintexts: &[Plaintext]) -> Result<Residues, Error> {
    let modulus = key.modulus();
    let limbs = modulus.limbs();
    let mut residues = Residues::zero(limbs, plaintexts.len());
    for (index, plaintext) in plaintexts.iter().enumerate() {
        let words = to_residue(key, plaintext).ok_or(Misuse::PlaintextTooLarge { index })?;
        residues.at_mut(index).copy_from_slice(&to_limbs(&words, limbs));
    }
    residues.eights_mut().par_bridge().for_each(|numbers| {
        let mut lanes = load(limbs, numbers);
        modulus.multiply(&mut lanes, key.step());
        modulus.add(&mut lanes, modulus.one());
        store(&lanes, numbers);
    });
    Ok(residues)
}

/// A signed number modulo `n`, unless it is beyond half of it.
fn to_residue(key: &PublicKey, plaintext: &Plaintext) -> Option<Zeroizing<Vec<u64>>> {
    let n = key.n().as_words();
    let sign = plaintext.sign();
    let fits = (n.len()..plaintext.len()).all(|i| plaintext.word(i) == sign);
    // `m + n` for a negative number, `m` otherwise.
    let mut words = Zeroizing::new(vec![0; n.len()]);
    let mut carry = 0;
    for (i, (word, n)) in words.iter_mut().zip(n).enumerate() {
        let sum = u128::from(plaintext.word(i)) + u128::from(n & sign) + carry;
        (*word, carry) = (sum as u64, sum >> 64);
    }
    // Twice the magnitude must be below `n`, that is `2 (n - residue) < n` or `2 residue < n`: the residue of a
    // negative number is in the upper half, and that of another in the lower one.
    let residue = Zeroizing::new(Integer::from_words(words.iter().copied()));
    let upper = *residue > key.n().shr(1);
    // A negative number of full width needs the carry to come out, or it was below `-n`.
    let wrapped = sign == 0 || carry == 1;
    (fits && wrapped && upper == (sign != 0) && *residue < *key.n()).then_some(words)
}
