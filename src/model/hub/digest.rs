//! SHA-256 of what is fetched, taken while it is copied.

use std::{
    fs::File,
    io::{self, Read, Write},
    path::Path,
};

use sha2::{Digest, Sha256};

/// Passes bytes on to a file and takes their SHA-256.
#[derive(Debug)]
pub(super) struct Hashing<W> {
    inner: W,
    hash: Sha256,
}

impl<W: Write> Hashing<W> {
    pub(super) fn new(inner: W) -> Self {
        Self { inner, hash: Sha256::new() }
    }

    /// The digest in hexadecimal digits.
    pub(super) fn finish(mut self) -> io::Result<String> {
        self.inner.flush()?;
        Ok(self.hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
    }
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.hash.update(&bytes[..written]);
        Ok(written)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// The SHA-256 of a file, in hexadecimal digits.
pub(super) fn digest_of(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut hashing = Hashing::new(io::sink());
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer)? {
            0 => return hashing.finish(),
            n => hashing.write_all(&buffer[..n])?,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_sha_256() {
        let cache = tempfile::tempdir().unwrap();
        let path = cache.path().join("abc");
        std::fs::write(&path, "abc").unwrap();
        // FIPS 180-4's own example.
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(digest_of(&path).unwrap(), expected);
    }
}
