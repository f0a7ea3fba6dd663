//! Blocks, AES-based pseudorandom generator and hash, bit transpose.
