//! JSON as other people's APIs shape it: requests, as serde reads them. No meaning: that is given in `server`.
//!
//! Every field of an API that is known is listed, in one of three ways: with its type, where it is honoured; as
//! [`Ignored`], where it can't change the reply; as [`Refused`], where it could and isn't offered. A field that isn't
//! listed is an error, so that a misspelt one is never passed over.

pub(crate) mod anthropic;
pub(crate) mod ollama;
pub(crate) mod openai;

use serde::{Deserialize, Deserializer, de};

/// A field that is accepted and can't change the reply.
pub(crate) type Ignored = Option<de::IgnoredAny>;

/// A field that could change the reply in a way that isn't offered: `null` alone is accepted.
pub(crate) type Refused = Option<Never>;

/// What no JSON is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Never {}

impl<'de> Deserialize<'de> for Never {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        de::IgnoredAny::deserialize(deserializer)?;
        Err(de::Error::custom("isn't offered here; leave it out"))
    }
}

/// One value, or a list of them.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged, expecting = "a text or a list of texts")]
pub(crate) enum OneOrMany {
    /// One.
    One(String),
    /// A list.
    Many(Vec<String>),
}

impl OneOrMany {
    /// All of them.
    pub(crate) fn into_vec(self) -> Vec<String> {
        match self {
            Self::One(text) => vec![text],
            Self::Many(texts) => texts,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Sample {
        #[serde(default)]
        user: Ignored,
        #[serde(default)]
        audio: Refused,
    }

    #[test]
    fn a_refused_field_takes_null_alone_and_an_ignored_one_takes_anything() {
        let read = |text: &str| serde_json::from_str::<Sample>(text);
        let sample = read(r#"{"user": {"a": [1]}, "audio": null}"#).unwrap();
        assert!(sample.user.is_some() && sample.audio.is_none());
        assert!(read(r#"{"audio": {}}"#).unwrap_err().to_string().starts_with("isn't offered here"));
        assert!(read(r#"{"audoi": null}"#).unwrap_err().to_string().starts_with("unknown field `audoi`"));
    }
}
