//! Formats: the named languages of JSON Schema, drafts 4 to 2020-12, by the grammars of their standards.
//!
//! Each family has a file. Grammars are written as patterns of our own dialect ([`ecma`](super::ecma)), anchored.
//! A language is never wider than its standard. Where it is narrower, because what the standard asks isn't regular
//! or isn't agreed on, it is not `exact`: it may be asked for, but its complement says nothing.
//!
//! | format | standard | narrower than it |
//! |---|---|---|
//! | `date`, `time` | RFC 3339, 5.6; a leap second is 23:59:60 in UTC | |
//! | `date-time` | RFC 3339, 5.6 and 5.7 | a leap second ends any month of the year |
//! | `duration` | RFC 3339, appendix A | letters are capital |
//! | `email` | RFC 5321, 4.1.2, with its limits of length | no address literals but IPv4 and IPv6 |
//! | `idn-email` | RFC 6531 | as `email` and `idn-hostname`; bytes are counted coarsely |
//! | `hostname` | RFC 1123, 2.1 | no `xn--` labels, which aren't regular |
//! | `idn-hostname` | RFC 5890 to 5893 | see [`idn`] |
//! | `ipv4`, `ipv6` | RFC 2673, 3.2; RFC 4291, 2.2 | |
//! | `uri`, `uri-reference` | RFC 3986 | |
//! | `iri`, `iri-reference` | RFC 3987 | |
//! | `uri-template` | RFC 6570 | no operators that are reserved |
//! | `json-pointer` | RFC 6901 | |
//! | `relative-json-pointer` | the draft of that name | no index manipulation, which draft 7 hasn't |
//! | `uuid` | RFC 4122, 3 | |
//! | `regex` | ECMA-262 in Unicode mode | see [`misc`] |

mod idn;
mod mail;
mod misc;
mod net;
mod pointer;
mod time;
mod uri;

use super::{Regular, ecma, quote};

/// What is known of a format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) enum Format {
    /// A language of spelled strings, all of which have the format; if `exact`, no other string has it.
    Known { language: Regular, exact: bool },
    /// No format of the standard: an annotation.
    Unknown,
}

/// The language of a format.
pub(in super::super) fn language(name: &str) -> Format {
    let (language, exact) = match name {
        "date" => (time::date(), true),
        "time" => (time::time(), true),
        "date-time" => (time::date_time(), false),
        "duration" => (time::duration(), false),
        "email" => (mail::email(), false),
        "idn-email" => (mail::idn_email(), false),
        "hostname" => (net::hostname(), false),
        "idn-hostname" => (idn::hostname(), false),
        "ipv4" => (net::ipv4(), true),
        "ipv6" => (net::ipv6(), true),
        "uri" => (uri::uri(uri::Characters::Ascii), true),
        "uri-reference" => (uri::reference(uri::Characters::Ascii), true),
        "iri" => (uri::uri(uri::Characters::Unicode), true),
        "iri-reference" => (uri::reference(uri::Characters::Unicode), true),
        "uri-template" => (uri::template(), false),
        "json-pointer" => (pointer::json(), true),
        "relative-json-pointer" => (pointer::relative(), false),
        "uuid" => (misc::uuid(), true),
        "regex" => (misc::regex(), false),
        _ => return Format::Unknown,
    };
    Format::Known { language, exact }
}

/// The language of one of our own grammars, which is known to be one.
fn grammar(text: &str) -> Regular {
    let language = ecma::pattern(&format!("^(?:{text})$"));
    debug_assert!(language.is_ok(), "{text}: {language:?}");
    // Every grammar is built by a test; nothing is the narrowest of languages.
    language.unwrap_or(Regular::Nothing)
}

#[cfg(test)]
mod tests;
