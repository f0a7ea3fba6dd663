//! Links between two parties: calls, shapes, TLS, and what tampers with them.

mod conversation;
mod record;
mod shape;
mod support;
mod tamper;
mod tls;
