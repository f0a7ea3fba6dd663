//! A plan on authenticated values as sessions know it.

use privet_channel::Channel;
use privet_fss::Role;
use privet_linear::Keep;
use privet_ot::Extension;
use privet_program::{Program, Weights};

use super::prepare::{self, DealtHalf};
use super::{Head, Material as RunMaterial, Opened, Plan};
use crate::forecast::{Forecast, Memory};
use crate::security::Security;
use crate::session::{HiddenWeights, Served};
use crate::store::{SetupEntry, Setups};
use crate::suite::{
    DealtSetup, Inference, Material, Prediction, Preparation, Prepared, ServerSide, SuiteConfig, SuitePlan,
};
use crate::{Error, Report};

impl SuitePlan for Plan {
    fn program(&self) -> &Program {
        Self::program(self)
    }

    fn label(&self) -> String {
        self.config().label()
    }

    fn is_dealt(&self) -> bool {
        true
    }

    fn widths(&self) -> Vec<u32> {
        (0..self.program().values().len()).map(|value| self.width(value)).collect()
    }

    fn forecast(&self) -> Forecast {
        Self::forecast(self)
    }

    fn security(&self) -> Security {
        Self::security(self)
    }

    fn client_memory(&self, _threads: usize) -> Memory {
        self.memory()
    }

    fn server_memory(&self, _served: &Served, _extension: Extension) -> Result<Memory, Error> {
        Ok(self.memory())
    }

    fn server_memory_keeping(&self, _keep: Keep, _threads: usize) -> Memory {
        self.memory()
    }

    fn material_bytes(&self) -> [u64; 2] {
        self.stored_bytes()
    }

    fn dealt_bytes(&self) -> [u64; 2] {
        super::dealt_bytes(self)
    }

    fn needs_setup(&self) -> bool {
        true
    }

    fn deal(&self, [client, server]: [&mut Channel; 2], setup: Option<DealtSetup>) -> Result<(), Error> {
        let DealtSetup { seeds, is_new } = setup.ok_or_else(|| Error::Misuse("this suite deals for a setup".into()))?;
        super::deal(client, server, self, &seeds, is_new)
    }

    fn prepare_client(&self, job: Preparation<'_>, _hidden: Option<HiddenWeights>) -> Result<Prepared, Error> {
        self.prepare(job, |_dealer, peer, setups, half| {
            let entry = match half.is_new {
                false => setups.entry(&half.setup),
                true => setups.add(&half.setup, |out| {
                    out.write_all(half.setup_seed()).map_err(privet_fss::Error::from)?;
                    prepare::take_weights(peer, self, out)
                })?,
            };
            prepare::open_weights(entry.open()?, self, None)
        })
    }

    fn prepare_server(&self, job: Preparation<'_>, server: ServerSide<'_>) -> Result<Prepared, Error> {
        let weights: &Weights = server.served.weights();
        self.prepare(job, |dealer, peer, setups, half| {
            if !half.is_new {
                return prepare::open_weights(setups.entry(&half.setup).open()?, self, Some(weights));
            }
            let entry = setups.add(&half.setup, |out| {
                out.write_all(half.setup_seed()).map_err(privet_fss::Error::from)?;
                prepare::take_codes(dealer, self, out)
            })?;
            prepare::hide_weights(peer, self, weights, entry.open()?)
        })
    }

    fn infer_client(&self, job: Inference<'_>, inputs: &[Vec<i64>]) -> Result<Prediction, Error> {
        let Inference { channel, material, setups, observer, .. } = job;
        let (turns, opened, material) = self.open(material, &setups, None)?;
        super::infer_client(channel, self, (&opened.weights, &turns), material, inputs, observer)
    }

    fn infer_server(&self, job: Inference<'_>, served: &Served) -> Result<Report, Error> {
        let Inference { channel, material, setups, observer, .. } = job;
        let (turns, opened, material) = self.open(material, &setups, Some(served.weights()))?;
        super::infer_server(channel, self, (&opened.weights, &turns), material, observer)
    }
}

impl Plan {
    /// Either party's preparation. `open`: opens the setup of the deal, given the links to the dealer and to the other party. For a
    /// new one the dealer sends the server codes, and the weights go to the client behind their masks.
    fn prepare(
        &self,
        mut job: Preparation<'_>,
        open: impl FnOnce(&mut Channel, &mut Channel, &Setups, &DealtHalf) -> Result<Opened, Error>,
    ) -> Result<Prepared, Error> {
        let dealer = job.take_dealer()?;
        let (half, recorder) = prepare::begin(dealer, &job.kept)?;
        let opened = open(dealer, job.channel, &job.setups, &half)?;
        drop(job.first_setup.take());
        let links = [dealer, job.channel];
        let report = prepare::prepare(links, self, (&half, recorder), &opened, job.entry, job.observer)?;
        Ok(Prepared { head: half.head(&opened), setup: Some(half.setup), report })
    }

    /// A run's material, the setup that it belongs to, and the turns in which the setup's runs check. `weights`: at the server.
    fn open(
        &self,
        material: Material,
        setups: &Setups,
        weights: Option<&Weights>,
    ) -> Result<(SetupEntry, Opened, RunMaterial), Error> {
        let Material::Claimed { id, mut file } = material else {
            return Err(Error::Misuse("this suite does not run without material".into()));
        };
        let role = if weights.is_some() { Role::Server } else { Role::Client };
        let head = Head::read(&mut file, self, role)?;
        let turns = setups.entry(&head.setup);
        let opened = prepare::open_weights(turns.open()?, self, weights)?;
        let material = RunMaterial::new(file, self, &head, &opened, id)?;
        Ok((turns, opened, material))
    }
}
