//! Linear layers a part at a time: which products with weights give some of the results.

/// How some results of a linear layer come about, without its bias.
pub(crate) enum Products {
    /// Each is the element in the same place times a weight of its own.
    Elementwise,
    /// They are among products of rows of weights with windows of inputs.
    Windows {
        /// The products, block behind block; in each `[outputs, windows]`.
        blocks: Vec<Block>,
        /// The place of each result among them.
        places: Vec<usize>,
    },
}

/// Products of each of some outputs' weights with each of some windows.
pub(crate) struct Block {
    /// The outputs: columns of a matrix, channels of a convolution.
    pub outputs: Vec<usize>,
    /// Inputs of a window.
    pub inner: usize,
    /// How many of them neighbouring windows read together: all, or the channels of a place of an image.
    pub run: usize,
    /// `[windows, inner]`: elements of the input, none where padding is read.
    pub windows: Vec<Option<usize>>,
}
