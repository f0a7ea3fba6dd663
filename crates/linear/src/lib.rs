//! Convolutions and matrix products on BFV ciphertexts: tiling and packing.
