//! The `maskwright` command.

fn main() {}
