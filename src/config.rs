//! What the environment and the settings file say. The only file that reads the environment; everything below is given
//! values. Flags are stronger than the environment, and that is stronger than the file.

use std::{env, ffi::OsString, path::PathBuf};

use crate::{engine::CompilerOptions, model::hub::FetchOptions};

/// Settings of a user's machine.
#[derive(Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Config {
    /// Folder of the cache: `MASKWRIGHT_CACHE`, else `maskwright` in the platform's folder of caches. Absent where
    /// neither is known, which happens without a home folder.
    pub cache: Option<PathBuf>,
    /// Whether the network is left alone: `MASKWRIGHT_OFFLINE`, else `HF_HUB_OFFLINE`. Default false.
    pub offline: bool,
    /// Address of the Hugging Face hub: `HF_ENDPOINT`. Default: its own.
    pub hub_endpoint: Option<String>,
    /// Token for the hub: `HF_TOKEN`. Never printed.
    pub hub_token: Option<String>,
    /// Whether every mask is compared with llguidance's own, so that a difference is an error: `MASKWRIGHT_VERIFY_MASKS`.
    /// Slow. Default false.
    pub verify_masks: bool,
    /// The settings file: `MASKWRIGHT_CONFIG`. Default: `maskwright.toml` in the working folder, where there is one.
    pub file: Option<PathBuf>,
    /// The key that callers of a server must show: `MASKWRIGHT_API_KEY`. Never printed.
    pub api_key: Option<String>,
    /// The address a server is bound to: `MASKWRIGHT_HOST`.
    pub host: Option<String>,
    /// Its port, as it was written: `MASKWRIGHT_PORT`.
    pub port: Option<String>,
    /// What a server logs: `MASKWRIGHT_LOG`, in the words of `tracing`: a level, or levels of modules.
    pub log: Option<String>,
}

/// Whose conventions hold for the folder of caches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Platform {
    Linux,
    Mac,
    Windows,
}

impl Platform {
    fn current() -> Self {
        if cfg!(windows) {
            Self::Windows
        } else if cfg!(target_vendor = "apple") {
            Self::Mac
        } else {
            Self::Linux
        }
    }
}

impl Config {
    /// Reads the environment of this process. Variables that are empty count as absent.
    ///
    /// ```
    /// let config = maskwright::Config::from_env();
    /// let options = config.fetch_options(true);
    /// assert_eq!(options.offline, config.offline);
    /// ```
    #[must_use]
    pub fn from_env() -> Self {
        Self::read(|name| env::var_os(name), Platform::current())
    }

    /// What tells one build of this program from another: size and time of its file, where they can be read.
    #[cfg(feature = "bench")]
    pub(crate) fn build() -> Option<(u64, std::time::SystemTime)> {
        let file = env::current_exe().and_then(std::fs::metadata).ok()?;
        Some((file.len(), file.modified().ok()?))
    }

    /// How models are fetched, with or without a progress bar.
    #[must_use]
    pub fn fetch_options(&self, progress: bool) -> FetchOptions {
        FetchOptions {
            cache: self.cache.clone(),
            offline: self.offline,
            progress,
            hub_endpoint: self.hub_endpoint.clone(),
            hub_token: self.hub_token.clone(),
        }
    }

    /// How grammars are compiled.
    #[must_use]
    pub fn compiler_options(&self) -> CompilerOptions {
        CompilerOptions { verify_masks: self.verify_masks }
    }

    fn read(variable: impl Fn(&str) -> Option<OsString>, platform: Platform) -> Self {
        let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
        let text = |name: &str| variable(name).and_then(|value| value.into_string().ok());
        let switch = |name: &str| text(name).map(|value| is_on(&value));
        let folder = |name: &str| variable(name).map(PathBuf::from);
        let home = || folder("HOME");
        let caches = match platform {
            // The XDG Base Directory Specification ignores relative paths here.
            Platform::Linux => folder("XDG_CACHE_HOME")
                .filter(|path| path.is_absolute())
                .or_else(|| home().map(|home| home.join(".cache"))),
            Platform::Mac => home().map(|home| home.join("Library").join("Caches")),
            Platform::Windows => folder("LOCALAPPDATA"),
        };
        Self {
            cache: folder("MASKWRIGHT_CACHE").or_else(|| caches.map(|caches| caches.join("maskwright"))),
            offline: switch("MASKWRIGHT_OFFLINE").or_else(|| switch("HF_HUB_OFFLINE")).unwrap_or(false),
            hub_endpoint: text("HF_ENDPOINT"),
            hub_token: text("HF_TOKEN")
                .map(|token| token.trim().to_owned())
                .filter(|token| !token.is_empty()),
            verify_masks: switch("MASKWRIGHT_VERIFY_MASKS").unwrap_or(false),
            file: folder("MASKWRIGHT_CONFIG"),
            api_key: text("MASKWRIGHT_API_KEY"),
            host: text("MASKWRIGHT_HOST"),
            port: text("MASKWRIGHT_PORT"),
            log: text("MASKWRIGHT_LOG"),
        }
    }
}

/// The settings file, `maskwright.toml`. Everything in it is optional, and an unknown word in it is an error.
#[cfg(feature = "server")]
#[derive(Clone, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Settings {
    /// `[serve]`.
    pub serve: ServeSettings,
}

/// How `maskwright serve` serves. Each has a flag of the same name.
#[cfg(feature = "server")]
#[derive(Clone, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub struct ServeSettings {
    /// Models, as on the command line.
    pub models: Vec<String>,
    /// The address to bind to.
    pub host: Option<String>,
    /// The port.
    pub port: Option<u16>,
    /// The key that callers must show.
    pub api_key: Option<String>,
    /// Names by which the server may be called, beside those of this machine.
    pub allow_host: Vec<String>,
    /// Origins whose pages may call it.
    pub allow_origin: Vec<String>,
    /// Replies that are generated at a time.
    pub sequences: Option<usize>,
    /// Requests that wait beside those.
    pub queue: Option<usize>,
    /// Longest reply where a request says nothing, in tokens.
    pub max_tokens: Option<usize>,
    /// Longest time to compile a grammar, in seconds.
    pub compile_seconds: Option<u64>,
    /// Longest time for a request, in seconds.
    pub request_seconds: Option<u64>,
    /// Largest body of a request, in bytes.
    pub body_bytes: Option<usize>,
}

#[cfg(feature = "server")]
impl Settings {
    /// Reads a settings file.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// let path = folder.path().join("maskwright.toml");
    /// std::fs::write(&path, "[serve]\nport = 9000\n")?;
    /// assert_eq!(maskwright::Settings::read(&path)?.serve.port, Some(9000));
    /// std::fs::write(&path, "[serve]\nprot = 9000\n")?;
    /// assert!(maskwright::Settings::read(&path).unwrap_err().contains("unknown field `prot`"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// One line: the file, and where in it what is wrong.
    pub fn read(path: &std::path::Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        toml::from_str(&text).map_err(|error| {
            let before = &text[..error.span().map_or(0, |span| span.start.min(text.len()))];
            let line = before.matches('\n').count() + 1;
            format!("{}:{line}: {}", path.display(), error.message())
        })
    }
}

#[cfg(feature = "server")]
impl std::fmt::Debug for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Settings").field("serve", &self.serve).finish()
    }
}

#[cfg(feature = "server")]
impl std::fmt::Debug for ServeSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServeSettings")
            .field("models", &self.models)
            .field("host", &self.host)
            .field("port", &self.port)
            .field("api_key", &self.api_key.as_ref().map(|_| "…"))
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Config {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Config")
            .field("cache", &self.cache)
            .field("offline", &self.offline)
            .field("hub_endpoint", &self.hub_endpoint)
            .field("hub_token", &self.hub_token.as_ref().map(|_| "…"))
            .field("verify_masks", &self.verify_masks)
            .field("file", &self.file)
            .field("api_key", &self.api_key.as_ref().map(|_| "…"))
            .field("host", &self.host)
            .field("port", &self.port)
            .field("log", &self.log)
            .finish()
    }
}

/// Whatever doesn't clearly say "off" says "on": a misspelt wish for no network is still one.
fn is_on(value: &str) -> bool {
    !matches!(value.trim().to_ascii_lowercase().as_str(), "" | "0" | "false" | "no" | "off")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(platform: Platform, variables: &[(&str, &str)]) -> Config {
        Config::read(
            |name| variables.iter().find(|(n, _)| *n == name).map(|(_, value)| value.into()),
            platform,
        )
    }

    #[test]
    fn the_cache_is_where_the_platform_keeps_caches() {
        use Platform::{Linux, Mac, Windows};
        const HOME: (&str, &str) = ("HOME", "/home/ada");
        type Variables = &'static [(&'static str, &'static str)];
        let cases: &[(Platform, Variables, Option<&str>)] = &[
            (Linux, &[HOME], Some("/home/ada/.cache/maskwright")),
            (Linux, &[HOME, ("XDG_CACHE_HOME", "/var/x")], Some("/var/x/maskwright")),
            (Linux, &[HOME, ("XDG_CACHE_HOME", "x")], Some("/home/ada/.cache/maskwright")),
            (Linux, &[HOME, ("XDG_CACHE_HOME", "")], Some("/home/ada/.cache/maskwright")),
            (Linux, &[HOME, ("MASKWRIGHT_CACHE", "/m")], Some("/m")),
            (Linux, &[("HOME", "")], None),
            (Linux, &[], None),
            (Linux, &[("MASKWRIGHT_CACHE", "m")], Some("m")),
            (Mac, &[HOME, ("XDG_CACHE_HOME", "/var/x")], Some("/home/ada/Library/Caches/maskwright")),
            (Mac, &[], None),
            (Windows, &[HOME, ("LOCALAPPDATA", "/l")], Some("/l/maskwright")),
            (Windows, &[HOME], None),
        ];
        for (platform, variables, cache) in cases {
            let found = config(*platform, variables).cache;
            assert_eq!(found, cache.map(PathBuf::from), "{platform:?} {variables:?}");
        }
    }

    #[test]
    fn our_own_switch_is_stronger_than_the_hubs() {
        let cases: &[(&[(&str, &str)], bool)] = &[
            (&[], false),
            (&[("MASKWRIGHT_OFFLINE", "1")], true),
            (&[("HF_HUB_OFFLINE", "TRUE")], true),
            (&[("HF_HUB_OFFLINE", "1"), ("MASKWRIGHT_OFFLINE", "off")], false),
            (&[("HF_HUB_OFFLINE", "1"), ("MASKWRIGHT_OFFLINE", "")], true),
            (&[("MASKWRIGHT_OFFLINE", "ture")], true),
            (&[("HF_HUB_OFFLINE", "0")], false),
        ];
        for (variables, offline) in cases {
            assert_eq!(config(Platform::Linux, variables).offline, *offline, "{variables:?}");
        }
    }

    #[test]
    fn masks_are_verified_where_the_environment_says_so() {
        assert!(!config(Platform::Linux, &[]).compiler_options().verify_masks);
        let on = config(Platform::Linux, &[("MASKWRIGHT_VERIFY_MASKS", "1")]);
        assert!(on.compiler_options().verify_masks);
    }

    #[test]
    fn a_token_is_taken_but_never_printed() {
        let config =
            config(Platform::Linux, &[("HF_TOKEN", " hf_secret\n"), ("HF_ENDPOINT", "http://mirror")]);
        assert_eq!(config.hub_token.as_deref(), Some("hf_secret"));
        assert_eq!(config.hub_endpoint.as_deref(), Some("http://mirror"));
        assert!(!format!("{config:?}").contains("secret"));
    }
}
