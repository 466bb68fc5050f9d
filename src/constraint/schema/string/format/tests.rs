//! Every format of the standard against the cases of its grammar, and against the official ones where they are.

use super::super::super::regular::Answer;
use super::super::spell;
use super::*;
use std::{collections::BTreeMap, fs, path::Path};

const FUEL: u64 = 10_000_000;

fn known(name: &str) -> Regular {
    match language(name) {
        Format::Known { language, .. } => language,
        Format::Unknown => panic!("{name} is known"),
    }
}
