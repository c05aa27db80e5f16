//! The `backfit` binary.

fn main() {}
