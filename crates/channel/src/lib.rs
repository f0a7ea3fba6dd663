//! The link between two parties: framed messages over TLS or memory, counted.
