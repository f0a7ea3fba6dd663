//! Linear layers whose weights the client keeps, encrypted under the server's key: which they are, and both sides of a preparation.
//!
//! The server's key grows from a secret of its store and the program's hash, so nothing of it is kept besides, and other weights have
//! another key. What the client keeps is the server's public key and, layer by layer, ciphertexts ([`KeptServer::send`]); it is a file of its store,
//! under a name that both derive from the key's seed.
//!
//! Threat model and argument: `docs/reference/protocols/linear.md`.

use std::collections::BTreeMap;

use privet_channel::Channel;
use privet_linear::kept::{self, Product, ServerKeys};
use privet_linear::{Error as LinearError, Layer, Misuse, PublicKey};
use privet_prg::{Prg, Seed};
use privet_program::Weights;
use sha2::{Digest, Sha256};

use super::Plan;
use super::encrypted::Lens;
use crate::session::KeptWeights;
use crate::{Error, MaterialId};

/// A layer of a [`kept::Plan`], which has a matrix for each layer that reads the same input behind the same mask.
#[derive(Debug, Clone)]
pub struct Kept {
    plan: kept::Plan,
    member: usize,
}

impl Kept {
    pub(super) fn lens(&self) -> Lens {
        let Product { rows, inner, columns } = self.plan.product();
        let columns = columns[self.member];
        Lens { weights: inner * columns, input: rows * inner, output: rows * columns }
    }

    /// The plan of all its layers, at the first of them.
    pub(super) fn whole(&self) -> Option<&kept::Plan> {
        (self.member == 0).then_some(&self.plan)
    }
}

/// For each layer its place in a plan for kept weights, if that is cheaper than `plans`, which have encrypted masks: set-up apart.
pub(super) fn choose(
    layers: &[Layer],
    masks: &[Option<usize>],
    plans: &[privet_linear::Plan],
    ring_bits: u32,
    guard_bits: u32,
) -> Vec<Option<Kept>> {
    let mut groups: BTreeMap<(usize, usize, usize), Vec<usize>> = BTreeMap::new();
    for (at, (layer, mask)) in layers.iter().zip(masks).enumerate() {
        if let (Layer::MatMul(matmul), Some(mask)) = (layer, mask) {
            groups.entry((*mask, matmul.rows, matmul.inner)).or_default().push(at);
        }
    }
    let product = |(&(_, rows, inner), members): (&(usize, usize, usize), &Vec<usize>)| {
        let columns = |&at: &usize| if let Layer::MatMul(matmul) = &layers[at] { matmul.columns } else { 0 };
        Product { rows, inner, columns: members.iter().map(columns).collect() }
    };
    let mut candidates: Vec<(Product, Vec<usize>)> =
        groups.iter().map(|group| (product(group), group.1.clone())).collect();
    let mut chosen = vec![None; layers.len()];
    // Under common parameters, which the deepest product decides, some may cost more, or have no room for their noise.
    while !candidates.is_empty() {
        let products: Vec<Product> = candidates.iter().map(|(product, _)| product.clone()).collect();
        let Ok(kept_plans) = kept::Plan::for_program(&products, ring_bits, guard_bits) else {
            let deepest = products.iter().map(|product| product.inner).max().unwrap_or(0);
            candidates.retain(|(product, _)| product.inner < deepest);
            continue;
        };
        let pays = |plan: &kept::Plan, members: &[usize]| {
            plan.price() < members.iter().map(|&at| plans[at].price()).sum::<u64>()
        };
        let paying: Vec<bool> =
            kept_plans.iter().zip(&candidates).map(|(plan, (_, members))| pays(plan, members)).collect();
        if paying.iter().all(|pays| *pays) {
            for (plan, (_, members)) in kept_plans.into_iter().zip(&candidates) {
                for (member, &at) in members.iter().enumerate() {
                    chosen[at] = Some(Kept { plan: plan.clone(), member });
                }
            }
            break;
        }
        let mut paying = paying.into_iter();
        candidates.retain(|_| paying.next().unwrap_or(false));
    }
    chosen
}

impl Plan {
    /// The plans for kept weights, each with the names of its layers' weights.
    fn kept(&self) -> Vec<(&kept::Plan, Vec<&str>)> {
        let mut plans: Vec<(&kept::Plan, Vec<&str>)> = Vec::new();
        for layer in self.prepared_linear() {
            let super::Encrypted::Kept(kept) = &layer.plan else { continue };
            match kept.whole() {
                Some(plan) => plans.push((plan, vec![&layer.weight])),
                // Members of a plan may lie among others.
                None => {
                    let of = plans.iter_mut().rfind(|(plan, names)| kept.member == names.len() && kept.plan.is(plan));
                    of.expect("a first member").1.push(&layer.weight);
                }
            }
        }
        plans
    }

    /// The parameters of kept weights, if there are any.
    pub(super) fn kept_parameters(&self) -> Option<&privet_linear::Parameters> {
        self.kept().first().map(|(plan, _)| plan.parameters())
    }

    /// Bytes that a client keeps: what the server sends it once.
    pub fn kept_bytes(&self) -> u64 {
        let key = self.kept_parameters().map_or(0, |parameters| parameters.public_key_bytes() as u64);
        key + self.kept().iter().map(|(plan, _)| plan.kept_bytes()).sum::<u64>()
    }

    /// Ciphertexts that a client keeps.
    pub(super) fn kept_ciphertexts(&self) -> u64 {
        self.kept().iter().map(|(plan, _)| plan.ciphertexts() as u64).sum()
    }
}

/// The client's side.
pub struct KeptClient {
    weights: KeptWeights,
    key: PublicKey,
    shares: BTreeMap<usize, Vec<u64>>,
}

impl KeptClient {
    /// Reads the server's public key. Fails with [`Error::Store`] if what is kept cannot be read;
    /// [`Error::PeerMisbehaved`] if it is no key.
    pub(super) fn open(plan: &Plan, mut weights: KeptWeights) -> Result<Option<Self>, Error> {
        let Some(parameters) = plan.kept_parameters() else { return Ok(None) };
        let mut bytes = vec![0; parameters.public_key_bytes()];
        weights.read(&mut bytes)?;
        match PublicKey::from_bytes(parameters, &bytes).map_err(LinearError::from) {
            Ok(key) => Ok(Some(Self { weights, key, shares: BTreeMap::new() })),
            Err(error) => {
                weights.reject()?;
                Err(error.into())
            }
        }
    }

    /// Multiplies the weights of the layer at this place among those under BFV, and of those that read the same, by `r`, and sends what the server opens.
    pub(super) fn multiply(
        &mut self,
        channel: &mut Channel,
        plan: &Plan,
        (at, kept): (usize, &Kept),
        r: &[u64],
        prg: &mut Prg,
    ) -> Result<(), Error> {
        let Some(whole) = kept.whole() else { return Ok(()) };
        let weights = &mut self.weights;
        let mut read = |out: &mut [u8]| weights.read(out);
        let shares = kept::multiply::<Error>(channel, whole, &self.key, &mut read, r, prg);
        if shares.as_ref().is_err_and(Error::is_the_peers_fault) {
            self.weights.reject()?;
        }
        let shares = shares?;
        self.shares.extend(members(plan, at, whole).zip(shares));
        Ok(())
    }

    /// The client's share of a layer that was multiplied.
    pub(super) fn take(&mut self, at: usize) -> Vec<u64> {
        self.shares.remove(&at).expect("the layer was multiplied")
    }
}

/// The places of a plan's layers among those under BFV, of which the first is at `at`.
fn members(plan: &Plan, at: usize, whole: &kept::Plan) -> impl Iterator<Item = usize> {
    let is_member =
        |layer: &super::plan::LinearLayer| matches!(&layer.plan, super::Encrypted::Kept(kept) if kept.plan.is(whole));
    let places = plan.encrypted_linear().enumerate().skip(at);
    places.filter(move |(_, layer)| is_member(layer)).map(|(place, _)| place)
}

/// Bytes that follow from a secret of the server and a plan, for one purpose: others for any other. The program's hash stands for its weights,
/// whose digest is in the public half.
fn derive(purpose: &[u8], plan: &Plan, secret: &Seed) -> [u8; 16] {
    let mut hash = Sha256::new_with_prefix(b"privet kept weights");
    hash.update(secret.as_bytes());
    let (program, suite) = (plan.program().hash().to_string(), plan.options().name());
    let layouts: Vec<String> = plan.kept().into_iter().map(|(plan, _)| plan.layout()).collect();
    let layouts = layouts.iter().map(String::as_bytes);
    for part in [purpose, program.as_bytes(), suite.as_bytes()].into_iter().chain(layouts) {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hash.finalize()[..16].try_into().expect("16 bytes")
}

/// The server's side.
pub struct KeptServer {
    name: MaterialId,
    keys: Option<ServerKeys>,
    shares: BTreeMap<usize, Vec<u64>>,
}

impl KeptServer {
    /// The key that grows from a secret of the server for a plan's weights.
    pub fn new(plan: &Plan, secret: &Seed) -> Self {
        let seed = Seed::from_bytes(derive(b"key", plan, secret));
        let name = MaterialId::new(&derive(b"name", plan, secret));
        let keys = plan.kept_parameters().map(|parameters| ServerKeys::from_seed(parameters, &seed));
        Self { name, keys, shares: BTreeMap::new() }
    }

    /// Tells these weights under this key from others, without telling anything of either.
    pub fn name(&self) -> &MaterialId {
        &self.name
    }

    /// Hands what the client keeps to `send`, in parts: [`Plan::kept_bytes`] in all, encrypted with fresh randomness.
    ///
    /// # Errors
    /// Those of `send`.
    pub fn send(
        &self,
        plan: &Plan,
        weights: &Weights,
        send: &mut dyn FnMut(&[u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let (Some(keys), mut prg) = (&self.keys, Prg::from_os()?) else { return Ok(()) };
        send(&keys.public_key(&mut prg))?;
        for (layer, names) in plan.kept() {
            let tensors: Vec<&[i64]> = names.into_iter().map(|name| weights.tensor(name)).collect();
            keys.encrypt(layer, &tensors, &mut prg, send)?;
        }
        Ok(())
    }

    /// The server's share of the layer at this place among those under BFV.
    pub(super) fn share(
        &mut self,
        channel: &mut Channel,
        plan: &Plan,
        (at, kept): (usize, &Kept),
    ) -> Result<Vec<u64>, Error> {
        let keys = self.keys.as_ref().ok_or(Error::from(LinearError::from(Misuse::PlansDiffer { what: "keys" })))?;
        if let Some(whole) = kept.whole() {
            let shares = keys.open(channel, whole)?;
            self.shares.extend(members(plan, at, whole).zip(shares));
        }
        Ok(self.shares.remove(&at).expect("the layer was opened"))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use privet_gmw::{Rounds, Truncation};
    use privet_program::Program;

    use super::*;
    use crate::sharing::{Encrypts, Options};

    fn plan(fixture: &str, truncation: Truncation) -> Plan {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(fixture);
        let program =
            Program::parse(&std::fs::read(folder.join("program.json")).expect("a fixture")).expect("a program");
        let options = Options { encrypts: Encrypts::Weights, ..Options::gmw(Rounds::Log, truncation) };
        Plan::new(program, options).expect("a plan")
    }

    /// Whoever has a client's file must not find its key by trying, and other weights, or those of another mode, must not come under it.
    #[test]
    fn a_key_is_another_for_another_secret_another_program_and_another_mode() {
        let (exact, one_bit) = (plan("choice", Truncation::Exact), plan("choice", Truncation::OneBit));
        let other_plan = plan("overflow", Truncation::Exact);
        let secret = |byte| Seed::from_bytes([byte; 16]);
        let keys = [
            derive(b"key", &exact, &secret(1)),
            derive(b"key", &exact, &secret(2)),
            derive(b"key", &one_bit, &secret(1)),
            derive(b"key", &other_plan, &secret(1)),
            derive(b"name", &exact, &secret(1)),
        ];
        for (at, one) in keys.iter().enumerate() {
            assert!(keys[..at].iter().all(|key| key != one), "{keys:?}");
        }
        assert_eq!(derive(b"key", &exact, &secret(1)), keys[0]);
    }
}
