//! Runs a program under a suite: prepare makes material, infer uses it once.
