//! The programs that a server offers.

use std::any::{Any, TypeId};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use privet_channel::Link;
use privet_program::{Program, Weights};

use crate::Error;
use crate::suite::{SuitePlan, SuiteRegistry};

/// A program that the server offers: its public half as clients get it, its weights, what suites keep of them, and a plan
/// for each config that a client has asked for.
pub struct Served {
    public: Vec<u8>,
    program: Program,
    weights: Arc<Weights>,
    caches: Mutex<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>,
    plans: Mutex<BTreeMap<String, Arc<dyn SuitePlan>>>,
}

impl Served {
    /// Reads both halves of a program.
    ///
    /// # Errors
    /// [`Error::Program`] if the halves are broken or do not belong together.
    pub fn new(public: Vec<u8>, weights: &[u8]) -> Result<Self, Error> {
        let program = Program::parse(&public)?;
        let weights = Weights::parse(weights, &program)?;
        Ok(Self::with_weights(public, program, weights))
    }

    /// As [`Served::new`] of halves that were read.
    pub fn with_weights(public: Vec<u8>, program: Program, weights: Weights) -> Self {
        let weights = Arc::new(weights);
        Self { public, program, weights, caches: Mutex::default(), plans: Mutex::default() }
    }

    /// The program.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// The public half as clients get it.
    pub(super) fn public(&self) -> &[u8] {
        &self.public
    }

    /// The weights as integers.
    pub fn weights(&self) -> &Arc<Weights> {
        &self.weights
    }

    /// What a suite keeps of the program, such as weights in another form; made when it is first asked for. Each suite has
    /// a type of its own for it.
    ///
    /// # Errors
    /// What `make` fails with.
    pub fn keep<T: Send + Sync + 'static>(&self, make: impl FnOnce() -> Result<T, Error>) -> Result<Arc<T>, Error> {
        let mut caches = lock(&self.caches);
        let cache = match caches.entry(TypeId::of::<T>()) {
            std::collections::hash_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::hash_map::Entry::Vacant(entry) => entry.insert(Arc::new(make()?)),
        };
        Ok(Arc::clone(cache).downcast().expect("what is kept under a type is of that type"))
    }

    /// The plan of a label, if there is such a suite; made when it is first asked for.
    pub(super) fn plan(&self, suites: &dyn SuiteRegistry, label: &str) -> Result<Option<Arc<dyn SuitePlan>>, Error> {
        let Some(config) = suites.config(label) else { return Ok(None) };
        let mut plans = lock(&self.plans);
        let plan = match plans.entry(label.to_owned()) {
            Entry::Occupied(entry) => entry.into_mut(),
            // What is made here is made for whatever link a client has: it names the OT extension with each request.
            Entry::Vacant(entry) => entry.insert(config.plan(self.program.clone(), Link::LAN)?.into()),
        };
        Ok(Some(Arc::clone(plan)))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The programs that a server offers, by hash.
#[derive(Clone, Default)]
pub struct Catalog {
    programs: BTreeMap<String, Arc<Served>>,
}

impl Catalog {
    /// Offers a program.
    pub fn add(&mut self, served: Served) {
        self.programs.insert(served.program().hash().to_string(), Arc::new(served));
    }

    /// Offers a program no more; whether it did.
    pub fn remove(&mut self, hash: &str) -> bool {
        self.programs.remove(hash).is_some()
    }

    pub(super) fn by_hash(&self, hash: &str) -> Option<Arc<Served>> {
        self.programs.get(hash).cloned()
    }

    /// The program of this hash, or the only one of this name.
    pub(super) fn by_name(&self, name: Option<&str>) -> Option<Arc<Served>> {
        if let Some(served) = name.and_then(|hash| self.by_hash(hash)) {
            return Some(served);
        }
        let mut matching =
            self.programs.values().filter(|served| name.is_none_or(|name| served.program().model() == name));
        matching.next().filter(|_| matching.next().is_none()).cloned()
    }

    pub(super) fn names(&self) -> String {
        let names: Vec<&str> = self.programs.values().map(|served| served.program().model()).collect();
        names.join(", ")
    }
}
