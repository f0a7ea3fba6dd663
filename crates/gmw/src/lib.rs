//! Two-party protocols on shares: and, compare, relu, truncate, pool, argmax.
