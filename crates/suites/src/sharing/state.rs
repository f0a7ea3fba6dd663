//! What a party holds while an inference runs.

use std::borrow::Cow;

use privet_program::Weights;
use privet_ring::Modulus;

use super::conversion::{EnterField, Extend, RoundOff};
use super::oneshot::{ClientSide, ServerSide};
use super::party::Party;
use super::triples::{self, Triple};
use super::{Model, Plan, Step, Triples, ops};
use crate::Error;
use crate::ops::Node;

/// Where a party's shares of linear layers come from: its material, or BFV online.
pub(super) enum Side<'a> {
    Client { masks: Vec<Vec<u64>>, shares: Vec<Vec<u64>> },
    Server { shares: Vec<Vec<u64>>, model: &'a Model },
    ClientOnline(ClientSide<'a>),
    ServerOnline(ServerSide<'a>),
}

impl Side<'_> {
    /// The weights, at the server.
    pub(super) fn weights(&self) -> Option<&Weights> {
        match self {
            Self::Server { model, .. } => Some(model.weights()),
            Self::ServerOnline(server) => Some(server.weights()),
            Self::Client { .. } | Self::ClientOnline(_) => None,
        }
    }
}

/// A party's shares of all values so far.
pub(super) struct State<'a> {
    pub plan: &'a Plan,
    pub side: Side<'a>,
    pub shares: Vec<Vec<u64>>,
    /// Current width of each value.
    widths: Vec<u32>,
    /// At the server: inputs of linear layers behind the client's masks.
    pub opened: Vec<Option<Vec<u64>>>,
    next_linear: usize,
    pub triples: Triples,
    /// Values that products read, less their masks.
    pub revealed: Vec<Option<Vec<u64>>>,
    next_triple: usize,
}

impl<'a> State<'a> {
    /// With a party's shares of the program's inputs and of the state that an inference begins with.
    pub(super) fn new(
        plan: &'a Plan,
        side: Side<'a>,
        triples: Triples,
        inputs: Vec<Vec<u64>>,
        state_shares: Vec<Vec<u64>>,
    ) -> Self {
        let program = plan.program();
        let mut shares = vec![Vec::new(); program.values().len()];
        for (state, share) in program.state().iter().zip(state_shares) {
            shares[state.input] = share;
        }
        for (input, share) in program.inputs().iter().zip(inputs) {
            shares[input.value] = share;
        }
        let widths = (0..shares.len()).map(|id| plan.width(id)).collect();
        let (opened, revealed) = (vec![None; plan.masks().len()], vec![None; plan.masked.len()]);
        Self { plan, side, shares, widths, opened, next_linear: 0, triples, revealed, next_triple: 0 }
    }

    /// This party's shares of what the inference leaves to the next, in the program's ring.
    pub(super) fn next_state(&self) -> Vec<Vec<u64>> {
        self.plan.program().state().iter().map(|state| self.shares[state.output].clone()).collect()
    }

    /// Frees a value that nothing reads any more.
    pub(super) fn forget(&mut self, value: usize) {
        self.shares[value] = Vec::new();
        if let Some(mask) = self.plan.mask_of(value) {
            self.opened[mask] = None;
        }
        if let Some(mask) = self.plan.masked.iter().position(|masked| masked.value == value) {
            self.revealed[mask] = None;
        }
    }

    /// Takes a step of the plan; `unread`: what nothing reads after it.
    pub(super) fn step(&mut self, step: &Step, unread: &[usize], party: &mut Party<'_>) -> Result<(), Error> {
        let wide = self.plan.program().ring_bits();
        match *step {
            Step::Extend { value, from } => {
                let extend = Extend::new(from, wide, self.plan.signs[value]).within(self.plan.bounds[value]);
                self.shares[value] = extend.run(party, &self.shares[value])?;
                self.widths[value] = wide;
            }
            Step::RoundOff { value } => {
                let round_off = RoundOff { from: self.widths[value], to: wide };
                self.shares[value] = round_off.run(party, &self.shares[value])?;
                self.widths[value] = wide;
            }
            Step::Open { value, mask } => self.opened[mask] = self.open(value, mask, party)?,
            Step::Operation(index) => {
                let node = Node::at(self.plan.program(), index);
                let (input, output) = (node.operation.inputs[0], node.operation.output);
                let is_moved = node.keeps_order() && unread.contains(&input);
                self.shares[output] = match is_moved && self.widths[input] == self.widths[output] {
                    true => std::mem::take(&mut self.shares[input]),
                    false => {
                        let protocol = ops::of(node).expect("a plan has operations with protocols alone");
                        protocol.run(self, party)?
                    }
                };
            }
        }
        Ok(())
    }

    fn open(&self, value: usize, mask: usize, party: &mut Party<'_>) -> Result<Option<Vec<u64>>, Error> {
        let masks = match &self.side {
            Side::Client { masks, .. } => Some(masks[mask].as_slice()),
            _ => None,
        };
        let share = &self.shares[value];
        Ok(match self.plan.field() {
            None => privet_gmw::open_to_server(party.channel, share, masks, self.plan.mask_ring())?,
            Some(field) => {
                let enter = EnterField { from: self.widths[value], field, sign: self.plan.signs[value] };
                let share = enter.run(party, share)?;
                privet_gmw::open_to_server_in_field(party.channel, &share, masks, field)?
            }
        })
    }

    /// Opens the values that a product reads first, all at once, each behind its mask.
    pub(super) fn reveal(&mut self, triple: &Triple, party: &mut Party<'_>) -> Result<(), Error> {
        if triple.opens.is_empty() {
            return Ok(());
        }
        let ring = triples::ring(self.plan);
        let hidden = |&mask: &usize| {
            let (share, at) = self.share(self.plan.masked[mask].value);
            assert_eq!(at, ring, "the planner extends what products read");
            ring.sub(share, &self.triples.mask(self.plan, mask))
        };
        let hidden = triple.opens.iter().map(hidden).collect::<Vec<_>>().concat();
        let opened = privet_gmw::open(party.channel, &hidden, ring)?;
        let mut rest = opened.as_slice();
        for &mask in &triple.opens {
            let (opened, tail) = rest.split_at(self.plan.masked[mask].len);
            self.revealed[mask] = Some(opened.to_vec());
            rest = tail;
        }
        Ok(())
    }

    /// The next product, which is `node`, and this party's part of its `C`: nobody gets it again.
    pub(super) fn next_triple(&mut self, node: Node<'_>) -> (&'a Triple, Vec<u64>) {
        let (position, triple) = (self.next_triple, &self.plan.triples[self.next_triple]);
        assert_eq!(self.plan.operation(triple.operation).output, node.operation.output, "products come in order");
        self.next_triple += 1;
        (triple, std::mem::take(&mut self.triples.shares[position]))
    }

    /// This party's share of a value, and its ring.
    pub(super) fn share(&self, value: usize) -> (&[u64], Modulus) {
        (&self.shares[value], Modulus::new(self.widths[value]))
    }

    /// That of the first value that an operation reads.
    pub(super) fn input(&self, node: Node<'_>) -> (&[u64], Modulus) {
        self.share(node.operation.inputs[0])
    }

    /// The ring of what an operation writes.
    pub(super) fn output_ring(&self, node: Node<'_>) -> Modulus {
        Modulus::new(self.plan.width(node.operation.output))
    }

    /// This party's share of a value in `ring`, which has guard bits if the value's ring has none: a multiple, so exact.
    pub(super) fn raised(&self, value: usize, ring: Modulus) -> Cow<'_, [u64]> {
        match ring.bits() - self.widths[value] {
            0 => Cow::Borrowed(&self.shares[value]),
            guard => Cow::Owned(self.shares[value].iter().map(|x| x << guard).collect()),
        }
    }

    /// The position of the next linear layer, which is `node`.
    pub(super) fn next_linear(&mut self, node: Node<'_>) -> usize {
        let (position, layer) = (self.next_linear, &self.plan.linear()[self.next_linear]);
        let operation = self.plan.operation(layer.operation);
        assert_eq!(operation.output, node.operation.output, "linear layers come in order");
        self.next_linear += 1;
        position
    }
}
