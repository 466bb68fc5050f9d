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

use std::sync::OnceLock;

use super::{Regular, ecma, quote};

/// What is known of a format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) enum Format {
    /// A language of spelled strings, all of which have the format; if `exact`, no other string has it.
    Known { language: Regular, exact: bool },
    /// No format of the standard: an annotation.
    Unknown,
}

/// A format of the standard.
struct Known {
    name: &'static str,
    build: fn() -> Regular,
    exact: bool,
    /// Built when first asked for, and then kept: the large ones take milliseconds.
    language: OnceLock<Regular>,
}

const fn known(name: &'static str, build: fn() -> Regular, exact: bool) -> Known {
    Known { name, build, exact, language: OnceLock::new() }
}

static KNOWN: [Known; 19] = [
    known("date", time::date, true),
    known("time", time::time, true),
    known("date-time", time::date_time, false),
    known("duration", time::duration, false),
    known("email", mail::email, false),
    known("idn-email", mail::idn_email, false),
    known("hostname", net::hostname, false),
    known("idn-hostname", idn::hostname, false),
    known("ipv4", net::ipv4, true),
    known("ipv6", net::ipv6, true),
    known("uri", || uri::uri(uri::Characters::Ascii), true),
    known("uri-reference", || uri::reference(uri::Characters::Ascii), true),
    known("iri", || uri::uri(uri::Characters::Unicode), true),
    known("iri-reference", || uri::reference(uri::Characters::Unicode), true),
    known("uri-template", uri::template, false),
    known("json-pointer", pointer::json, true),
    known("relative-json-pointer", pointer::relative, false),
    known("uuid", misc::uuid, true),
    known("regex", misc::regex, false),
];

/// The language of a format.
pub(in super::super) fn language(name: &str) -> Format {
    match KNOWN.iter().find(|known| known.name == name) {
        Some(Known { build, exact, language, .. }) => {
            Format::Known { language: language.get_or_init(build).clone(), exact: *exact }
        }
        None => Format::Unknown,
    }
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
