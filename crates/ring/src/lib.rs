//! Tensors over Z_2^l, packed bits, and the plaintext kernels on them.
