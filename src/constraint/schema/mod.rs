//! JSON Schema, to the letter: our own compiler.
mod number;
mod regular;
mod string;
