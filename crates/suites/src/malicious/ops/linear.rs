//! Products of values behind masks with the server's weights, which a setup has authenticated.

use privet_fss::KeyBytes;
use privet_shark::{Layer, Party, Values};

use super::super::deal::Dealing;
use super::super::infer::State;
use super::super::planner::Planner;
use super::super::prepare::Preparing;
use super::{Protocol, Purpose, Step};
use crate::Error;
use crate::ops::{At, LinearMap};

impl Protocol for At<'_, dyn LinearMap + '_> {
    fn plan(&self, index: usize, planner: &mut Planner<'_>) -> u32 {
        let (input, output) = (self.node.operation.inputs[0], self.node.operation.output);
        planner.mask(input);
        let layer = self.operation.authenticated();
        planner.tensors.push((self.operation.weight().to_owned(), layer.weights()));
        planner.tensors.extend(self.operation.bias().map(|(bias, len)| (bias.to_owned(), len)));
        let bias = self.operation.bias().map(|(_, len)| (len, self.operation.bias_run()));
        planner.step(Purpose::Operation(index), vec![input, output], Product { input, output, layer, bias });
        planner.widths[input]
    }
}

struct Product {
    input: usize,
    output: usize,
    layer: Layer,
    /// Elements of the bias, and how many results that follow one another each is added to.
    bias: Option<(usize, usize)>,
}

impl Step for Product {
    fn key_bytes(&self) -> KeyBytes {
        self.layer.key_bytes()
    }

    fn prepared(&self) -> Option<usize> {
        Some(self.layer.outputs())
    }

    fn layer(&self) -> Option<&Layer> {
        Some(&self.layer)
    }

    fn deal_early(&self, dealing: &mut Dealing<'_>) -> Result<(), Error> {
        let hidden = dealing.hidden(self.layer.weights());
        self.layer.deal(&mut dealing.dealer, &hidden, &dealing.masks[&self.input])?;
        if let Some((len, _)) = self.bias {
            dealing.hidden(len);
        }
        Ok(())
    }

    fn prepare(&self, preparing: &mut Preparing<'_>, party: &mut Party<'_>) -> Result<Option<Values>, Error> {
        let weights = preparing.weights.next().expect("weights for each layer");
        if self.bias.is_some() {
            preparing.weights.next();
        }
        Ok(Some(self.layer.prepare(party, weights, &preparing.masks[&self.input])?))
    }

    fn run(&self, state: &mut State<'_>, _party: &mut Party<'_>) -> Result<(), Error> {
        let weights = state.weights.next().expect("weights for each layer");
        let prepared = state.pull(self.layer.outputs())?;
        let mut values = self.layer.finish(prepared, weights, state.masked(self.input).opened());
        if let Some((_, run)) = self.bias {
            let bias = state.weights.next().expect("a bias");
            values.add_runs(&bias.values(), run);
        }
        state.write(self.output, values);
        Ok(())
    }
}
