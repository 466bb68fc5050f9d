//! What a user calls a model, as text and as one of three kinds. It touches no file and no network.

use std::path::PathBuf;

use super::catalogue::{CATALOGUE, Entry};
use crate::model::ModelError;

/// A model's name.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ModelName {
    /// A `.gguf` file on this machine.
    Path(PathBuf),
    /// A file of a repository on the Hugging Face hub: `hf:owner/repo` or `hf:owner/repo:file.gguf`.
    Hub {
        /// `owner/name`.
        repo: String,
        /// Path inside the repository; its only `.gguf` when absent.
        file: Option<String>,
    },
    /// An entry of the catalogue.
    Catalogue(&'static Entry),
}

impl ModelName {
    /// Reads a name. Whether there is such a file is seen when it is fetched.
    ///
    /// # Errors
    /// [`ModelError::NotFound`] with the known names and the one most like it.
    ///
    /// ```
    /// use maskwright::model::hub::ModelName;
    /// assert!(matches!(ModelName::parse("./model.gguf")?, ModelName::Path(_)));
    /// assert!(matches!(ModelName::parse("hf:owner/repo:q4.gguf")?, ModelName::Hub { .. }));
    /// let error = ModelName::parse("smolm2").unwrap_err().to_string();
    /// assert!(error.contains("did you mean \"smollm2\"?"));
    /// # Ok::<(), maskwright::model::ModelError>(())
    /// ```
    pub fn parse(name: &str) -> Result<Self, ModelError> {
        if let Some(hub) = name.strip_prefix("hf:") {
            return hub_name(hub).ok_or_else(|| {
                not_found(name, "the form is hf:owner/repo or hf:owner/repo:file.gguf".into())
            });
        }
        if let Some(entry) = Entry::find(name) {
            return Ok(Self::Catalogue(entry));
        }
        if is_gguf(name) || name.contains(['/', '\\']) {
            return Ok(Self::Path(name.into()));
        }
        let listed: Vec<&str> = CATALOGUE.iter().filter(|e| e.blocked.is_none()).map(|e| e.name).collect();
        let nearest = nearest(name).map(|near| format!("did you mean {near:?}? ")).unwrap_or_default();
        let tried = format!(
            "{nearest}known are {}; or give the path of a .gguf file, or hf:owner/repo[:file]",
            listed.join(", ")
        );
        Err(not_found(name, tried))
    }
}

impl std::fmt::Display for ModelName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Path(path) => path.display().fmt(f),
            Self::Hub { repo, file: None } => write!(f, "hf:{repo}"),
            Self::Hub { repo, file: Some(file) } => write!(f, "hf:{repo}:{file}"),
            Self::Catalogue(entry) => f.write_str(entry.name),
        }
    }
}

fn not_found(name: &str, tried: String) -> ModelError {
    ModelError::NotFound { name: name.to_owned(), tried }
}

pub(super) fn is_gguf(name: &str) -> bool {
    name.len() > 5 && name.get(name.len() - 5..).is_some_and(|end| end.eq_ignore_ascii_case(".gguf"))
}

fn hub_name(name: &str) -> Option<ModelName> {
    let (repo, file) = match name.split_once(':') {
        Some((repo, file)) => (repo, Some(file)),
        None => (name, None),
    };
    let (owner, model) = repo.split_once('/')?;
    let sound = |part: &str| {
        (1..=96).contains(&part.len())
            && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
            && part.bytes().any(|b| b != b'.')
    };
    if !sound(owner) || !sound(model) || !file.is_none_or(is_sound_file) {
        return None;
    }
    Some(ModelName::Hub { repo: repo.to_owned(), file: file.map(str::to_owned) })
}

/// A relative path to a `.gguf`, below the folder it starts from, of characters that need no escape in a URL.
pub(super) fn is_sound_file(file: &str) -> bool {
    is_gguf(file)
        && file.len() <= 400
        && file.split('/').all(|part| {
            !part.is_empty()
                && !part.starts_with('.')
                && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-+=@~(),".contains(&b))
        })
}

/// The known name with the fewest edits, if those are few.
fn nearest(name: &str) -> Option<&'static str> {
    let name = name.to_lowercase();
    if name.len() > 64 {
        return None;
    }
    let known = CATALOGUE.iter().filter(|entry| entry.blocked.is_none()).flat_map(Entry::names);
    known
        .map(|known| (strsim::damerau_levenshtein(&name, known), known))
        .min()
        .filter(|&(n, known)| n <= known.len() / 3)
        .map(|(_, k)| k)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::Fault;

    #[test]
    fn a_name_is_of_the_kind_its_form_says() {
        let hub =
            |repo: &str, file: Option<&str>| ModelName::Hub { repo: repo.into(), file: file.map(Into::into) };
        let cases = [
            ("a.gguf", ModelName::Path("a.gguf".into())),
            ("A.GGUF", ModelName::Path("A.GGUF".into())),
            ("./smollm2", ModelName::Path("./smollm2".into())),
            ("C:\\models\\a.gguf", ModelName::Path("C:\\models\\a.gguf".into())),
            ("hf:a/b", hub("a/b", None)),
            ("hf:a/b.c-d_e:q/x.gguf", hub("a/b.c-d_e", Some("q/x.gguf"))),
            ("smollm2", ModelName::Catalogue(&CATALOGUE[0])),
            ("smollm2-135m-instruct", ModelName::Catalogue(&CATALOGUE[0])),
        ];
        for (text, name) in cases {
            assert_eq!(ModelName::parse(text).unwrap(), name, "{text}");
        }
    }

    #[test]
    fn a_hub_name_cant_leave_its_folder_or_its_url() {
        let bad = [
            "hf:",
            "hf:a",
            "hf:a/",
            "hf:/b",
            "hf:a/b/c",
            "hf:../b",
            "hf:a/..",
            "hf:a/b:",
            "hf:a/b:x.bin",
            "hf:a/b:../x.gguf",
            "hf:a/b:/x.gguf",
            "hf:a/b:x/../y.gguf",
            "hf:a/b:x//y.gguf",
            "hf:a b/c",
            "hf:a/b?c",
            "hf:a/b:x.gguf?y=.gguf",
            "hf:a/b:x\\y.gguf",
            "hf:a/b:.x.gguf",
            "hf:ä/b",
            "hf:a/b:x:y.gguf",
        ];
        for name in bad {
            let error = ModelName::parse(name).unwrap_err();
            assert!(error.to_string().contains("hf:owner/repo"), "{name}: {error}");
            assert_eq!(error.fault(), Fault::NotFound);
        }
    }

    #[test]
    fn an_unknown_name_lists_the_known_and_the_nearest() {
        let error = ModelName::parse("Smollm3").unwrap_err().to_string();
        assert!(error.contains("did you mean \"smollm2\"?"), "{error}");
        let error = ModelName::parse("wholly-different").unwrap_err().to_string();
        assert!(!error.contains("did you mean") && error.contains("known are smollm2;"), "{error}");
        assert!(!error.contains('\n'));
        for name in ["", "gguf", ".gguf", &"x".repeat(10_000)] {
            assert!(ModelName::parse(name).is_err());
        }
    }
}
