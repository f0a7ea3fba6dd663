//! A plan on plain shares as sessions know it, for suites `gmw` and `fss`.

use privet_channel::Channel;
use privet_linear::Keep;
use privet_ot::{Extension, Role};
use privet_prg::Seed;
use privet_program::Program;
use privet_ring::Modulus;

use super::material::unwritten;
use super::weights::{self, Loaded};
use super::{KeptClient, KeptServer, Plan, SessionKeys, SessionPublicKey, Stocked};
use crate::forecast::{Forecast, Memory};
use crate::security::Security;
use crate::session::{HiddenWeights, Served};
use crate::suite::{
    DealtSetup, Filling, Inference, Material, Prediction, Preparation, Prepared, ServerSide, SuitePlan,
};
use crate::{Error, MaterialId, Report};

impl SuitePlan for Plan {
    fn program(&self) -> &Program {
        Self::program(self)
    }

    fn label(&self) -> String {
        self.options().name()
    }

    fn is_dealt(&self) -> bool {
        Self::is_dealt(self)
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

    fn client_memory(&self, threads: usize) -> Memory {
        Self::client_memory(self, threads)
    }

    fn server_memory(&self, served: &Served, extension: Extension) -> Result<Memory, Error> {
        Ok(Loaded::of(served)?.memory(self, extension))
    }

    fn server_memory_keeping(&self, keep: Keep, threads: usize) -> Memory {
        self.server_memory(&self.workspaces_keeping(keep), threads)
    }

    fn material_bytes(&self) -> [u64; 2] {
        let forecast = self.forecast();
        [forecast.material_bytes_client, forecast.material_bytes_server]
    }

    fn dealt_bytes(&self) -> [u64; 2] {
        super::dealt_bytes(self)
    }

    fn extension(&self) -> Extension {
        Self::extension(self)
    }

    fn transfers(&self) -> bool {
        !Self::is_dealt(self)
    }

    fn hidden_layers(&self) -> Option<(Modulus, Vec<usize>)> {
        let lengths = || self.linear().iter().map(|layer| layer.plan.weights_len()).collect();
        self.is_dealt().then(|| (Modulus::new(self.program().ring_bits()), lengths()))
    }

    fn kept_bytes(&self) -> u64 {
        Self::kept_bytes(self)
    }

    fn kept_name(&self, secret: &Seed) -> MaterialId {
        KeptServer::new(self, secret).name().clone()
    }

    fn send_kept(
        &self,
        served: &Served,
        secret: &Seed,
        send: &mut dyn FnMut(&[u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        KeptServer::new(self, secret).send(self, served.weights(), send)
    }

    fn filling(&self) -> Option<Filling> {
        self.options().is_one_shot().then(|| Self::filling(self))
    }

    fn deal(&self, [client, server]: [&mut Channel; 2], _setup: Option<DealtSetup>) -> Result<(), Error> {
        super::deal(client, server, self)
    }

    fn prepare_client(&self, mut job: Preparation<'_>, hidden: Option<HiddenWeights>) -> Result<Prepared, Error> {
        let (material, report) = match hidden {
            Some(mut hidden) => {
                let dealer = job.take_dealer()?;
                super::prepare_client_dealt(dealer, self, &mut |at| hidden.layer(at), job.entry, job.observer)?
            }
            None => {
                let weights = job.weights.take();
                let kept = weights.map(|weights| KeptClient::open(self, weights)).transpose()?.flatten();
                super::prepare_client(job.channel, self, job.base, kept, job.entry, job.observer)?
            }
        };
        material.write(self, job.entry).map_err(unwritten)?;
        Ok(Prepared { head: Vec::new(), setup: None, report })
    }

    fn prepare_server(&self, mut job: Preparation<'_>, server: ServerSide<'_>) -> Result<Prepared, Error> {
        let (material, report) = match self.is_dealt() {
            true => {
                let mask = weights::mask(&server.store.weight_mask(&self.program().hash().to_string())?);
                super::prepare_server_dealt(job.take_dealer()?, self, &mask, job.entry, job.observer)?
            }
            false => {
                let loaded = Loaded::of(server.served)?;
                let base = (server.extension, job.base);
                let kept = match self.kept_bytes() {
                    0 => None,
                    _ => {
                        let (program, client) = (self.program().hash().to_string(), job.channel.peer_fingerprint());
                        let secret = server.store.kept_key(&program, &client)?;
                        Some(KeptServer::new(self, &secret))
                    }
                };
                super::prepare_server(job.channel, self, base, &loaded.model, kept, job.entry, job.observer)?
            }
        };
        material.write(self, job.entry).map_err(unwritten)?;
        Ok(Prepared { head: Vec::new(), setup: None, report })
    }

    fn infer_client(&self, job: Inference<'_>, inputs: &[Vec<i64>]) -> Result<Prediction, Error> {
        let Inference { channel, material, session, kept, observer, .. } = job;
        let stocked = match material {
            Material::Claimed { file, .. } => {
                let material = super::Material::read(file, self, Role::Client)?;
                if !self.options().is_one_shot() {
                    return super::infer_client(channel, self, material, inputs, kept, observer);
                }
                Stocked::Prepared(material.correlated)
            }
            Material::Unprepared(filling, base) => Stocked::Unprepared(filling, base),
        };
        super::infer_client_online(channel, self, session.of::<SessionKeys>(), stocked, inputs, kept, observer)
    }

    fn infer_server(&self, job: Inference<'_>, served: &Served) -> Result<Report, Error> {
        let Inference { channel, material, session, kept, observer, .. } = job;
        let loaded = Loaded::of(served)?;
        let stocked = match material {
            Material::Claimed { file, .. } => {
                let material = super::Material::read(file, self, Role::Server)?;
                if !self.options().is_one_shot() {
                    return super::infer_server(channel, self, &loaded.model, material, kept, observer);
                }
                Stocked::Prepared(material.correlated)
            }
            Material::Unprepared(filling, base) => Stocked::Unprepared(filling, base),
        };
        super::infer_server_online(
            channel,
            self,
            &loaded.model,
            session.of::<SessionPublicKey>(),
            stocked,
            kept,
            observer,
        )
    }
}
