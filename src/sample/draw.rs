//! The random stream.
//!
//! Token number *n* drawn at a temperature above 0 uses the *n*-th 64-bit word of the ChaCha8 key stream whose
//! key is the seed in little-endian order followed by 24 zero bytes, with nonce 0. That is spelled out here, and
//! pinned by a test, so that no new version of a random-number crate can change what a seed means.

use rand_chacha::{
    ChaCha8Rng,
    rand_core::{RngCore, SeedableRng},
};

use super::error::SampleError;

/// The stream of one sampler.
#[derive(Debug, Clone)]
pub(super) struct Stream {
    seed: u64,
    rng: ChaCha8Rng,
}

impl Stream {
    /// # Errors
    ///
    /// No seed was given and the operating system has none.
    pub(super) fn new(seed: Option<u64>) -> Result<Self, SampleError> {
        let seed = match seed {
            Some(seed) => seed,
            None => rand::TryRngCore::try_next_u64(&mut rand::rngs::OsRng)
                .map_err(|e| SampleError::NoSeed(e.to_string()))?,
        };
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        Ok(Self { seed, rng: ChaCha8Rng::from_seed(key) })
    }

    /// The seed in use.
    pub(super) fn seed(&self) -> u64 {
        self.seed
    }

    /// A whole number from 1 to `total`, which is above 0, all equally likely to within 2⁻⁶⁴. One draw.
    pub(super) fn next(&mut self, total: u64) -> u64 {
        let scaled = (u128::from(self.rng.next_u64()) * u128::from(total)) >> 64;
        u64::try_from(scaled).expect("a 128-bit product shifted by 64 has 64 bits") + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Key stream of ChaCha with 8 rounds, 256-bit key of zeros, nonce of zeros: test vector TC1 of
    /// draft-strombergson-chacha-test-vectors-01.
    #[test]
    fn seed_zero_is_the_published_key_stream() {
        let mut stream = Stream::new(Some(0)).unwrap();
        let first = u64::from_le_bytes([0x3e, 0x00, 0xef, 0x2f, 0x89, 0x5f, 0x40, 0xd6]);
        assert_eq!(
            stream.next(u64::MAX),
            u64::try_from((u128::from(first) * u128::from(u64::MAX)) >> 64).unwrap() + 1
        );
        let second = u64::from_le_bytes([0x7f, 0x5b, 0xb8, 0xe8, 0x1f, 0x09, 0xa5, 0xa1]);
        assert_eq!(stream.next(1 << 32), (second >> 32) + 1);
    }

    #[test]
    fn a_seed_from_the_system_can_be_given_back() {
        let mut first = Stream::new(None).unwrap();
        let mut again = Stream::new(Some(first.seed())).unwrap();
        assert!((0..10).all(|_| first.next(1 << 40) == again.next(1 << 40)));
    }
}
