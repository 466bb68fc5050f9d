//! All integration tests, in one binary so that they link once.

mod chat;
mod fixtures;
mod hub;
mod sampler;
mod vocab;
