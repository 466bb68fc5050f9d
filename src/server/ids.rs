//! Ids of replies.

use rand::{Rng, distr::Alphanumeric};

/// `prefix` and 24 letters and digits.
pub(super) fn fresh(prefix: &str) -> String {
    let letters = rand::rng().sample_iter(Alphanumeric).take(24).map(char::from);
    format!("{prefix}{}", letters.collect::<String>())
}
