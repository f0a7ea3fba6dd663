//! The BFV cryptosystem with a power-of-two plaintext modulus.
