//! What one run of a plan will take.

use std::collections::BTreeMap;

use privet_fss::Role;
use privet_shark::dealer::MASK_BYTES;

use super::{Plan, dealt_bytes};
use crate::forecast::{Forecast, LinearForecast, Memory};

/// Bytes of memory for a number in a step: both kinds of shares of the input, the output, a mask and what lies between.
const PER_NUMBER: u64 = 256;

/// Bytes of memory for a weight: as an integer, behind its mask, whole and as a code, and while these are made.
const PER_WEIGHT: u64 = 96;

/// What allocators and buffers add at least.
const SLACK: u64 = 8 << 20;

impl Plan {
    /// What one preparation and one inference will take.
    pub fn forecast(&self) -> Forecast {
        let linear = self.steps.iter().filter_map(|placed| {
            let (layer, (name, operator)) = (placed.step.layer()?, self.describe(placed));
            Some(LinearForecast {
                name: name.to_owned(),
                operator: operator.to_owned(),
                layout: format!("{} elements dealt, {} weights authenticated", layer.outputs(), layer.weights()),
                ..LinearForecast::default()
            })
        });
        let [dealer_client, dealer_server] = dealt_bytes(self);
        let online = self.traffic();
        let memory = self.memory().peak();
        let [material_bytes_client, material_bytes_server] = self.stored_bytes();
        Forecast {
            linear: linear.collect(),
            correlations: BTreeMap::from([("authenticated_weights", self.private_len())]),
            dealer_bytes_client: dealer_client,
            dealer_bytes_server: dealer_server,
            offline_rounds: 1,
            online_bytes_client: online.client_bytes,
            online_bytes_server: online.server_bytes,
            online_rounds: online.rounds,
            material_bytes_client,
            material_bytes_server,
            memory_bytes_client: memory,
            memory_bytes_server: memory,
            ..Forecast::default()
        }
    }

    /// Bytes of what is made offline, in a stored entry.
    pub(super) fn prepared_bytes(&self) -> u64 {
        (super::prepare::VALUE_BYTES * self.prepared_len()) as u64
    }

    /// Bytes of an entry in the stores of client and server.
    pub(crate) fn stored_bytes(&self) -> [u64; 2] {
        [Role::Client, Role::Server].map(|role| self.prepared_bytes() + self.body_bytes(role) + super::HEAD as u64)
    }

    /// What a party takes.
    pub fn memory(&self) -> Memory {
        let weights = PER_WEIGHT * self.private_len() as u64;
        let program = self.program();
        let largest = program.operations().iter().map(|operation| {
            let inputs = operation.inputs.iter().map(|&value| program.value(value).len()).sum::<usize>();
            (inputs + program.value(operation.output).len()) as u64
        });
        let online = weights + PER_NUMBER * largest.max().unwrap_or(0) * 2;
        let offline = crate::bodies::BUFFERS + (MASK_BYTES * self.private_len()) as u64;
        Memory {
            resting: weights / 8,
            loading: weights / 4,
            offline: offline + SLACK,
            online: online + online / 8 + SLACK,
        }
    }
}
