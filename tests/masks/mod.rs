//! Masks bit for bit: the engine's quick ways beside llguidance's own, which a verifying compiler runs in step.
//!
//! The whole dev split of MaskBench takes minutes: `MASKWRIGHT_MASKBENCH=1` runs every schema, a larger number every
//! n-th; by default a sample.

mod keeping;
mod lockstep;
mod maskbench;
