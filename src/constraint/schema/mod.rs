//! JSON Schema, to the letter: our own compiler.
mod regular;
mod string;
