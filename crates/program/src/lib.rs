//! The compiled program: pure data, versioned.
