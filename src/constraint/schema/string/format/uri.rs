//! URIs, IRIs and their templates, by the collected grammars of RFC 3986, 3987 and 6570.

use super::{Regular, grammar, net};

/// `ucschar`.
const UCSCHAR: &str = r"\u00a0-\ud7ff\uf900-\ufdcf\ufdf0-\uffef\u{10000}-\u{1fffd}\u{20000}-\u{2fffd}\u{30000}-\u{3fffd}\u{40000}-\u{4fffd}\u{50000}-\u{5fffd}\u{60000}-\u{6fffd}\u{70000}-\u{7fffd}\u{80000}-\u{8fffd}\u{90000}-\u{9fffd}\u{a0000}-\u{afffd}\u{b0000}-\u{bfffd}\u{c0000}-\u{cfffd}\u{d0000}-\u{dfffd}\u{e1000}-\u{efffd}";
/// `iprivate`.
const IPRIVATE: &str = r"\ue000-\uf8ff\u{f0000}-\u{ffffd}\u{100000}-\u{10fffd}";
const PERCENT: &str = r"%[\dA-Fa-f]{2}";

/// Which characters stand for themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Characters {
    /// Those of a URI.
    Ascii,
    /// Those of an IRI.
    Unicode,
}

pub(super) fn uri(characters: Characters) -> Regular {
    let parts = Parts::new(characters);
    let Parts { network, absolute, segment, some, tail, .. } = &parts;
    grammar(&format!(r"{SCHEME}:(?:{network}|{absolute}|{some}(?:\/{segment})*)?{tail}"))
}

pub(super) fn reference(characters: Characters) -> Regular {
    let parts = Parts::new(characters);
    let Parts { network, absolute, segment, some, without_colon, tail } = &parts;
    let full = format!(r"{SCHEME}:(?:{network}|{absolute}|{some}(?:\/{segment})*)?");
    let relative = format!(r"(?:{network}|{absolute}|{without_colon}(?:\/{segment})*)?");
    grammar(&format!("(?:{full}|{relative}){tail}"))
}

const SCHEME: &str = r"[A-Za-z][A-Za-z\d+\-.]*";

/// The grammar in pieces.
struct Parts {
    /// `//` authority and path.
    network: String,
    /// `path-absolute`.
    absolute: String,
    segment: String,
    /// `segment-nz`.
    some: String,
    /// `segment-nz-nc`.
    without_colon: String,
    /// Query and fragment.
    tail: String,
}

impl Parts {
    fn new(characters: Characters) -> Self {
        let (more, private) = match characters {
            Characters::Ascii => ("", ""),
            Characters::Unicode => (UCSCHAR, IPRIVATE),
        };
        let plain = format!(r"A-Za-z\d\-._~!$&'()*+,;={more}");
        let name = format!("(?:[{plain}]|{PERCENT})*");
        let user = format!("(?:[{plain}:]|{PERCENT})*");
        let future = r"[Vv][\dA-Fa-f]+\.[A-Za-z\d\-._~!$&'()*+,;=:]+";
        let literal = format!(r"\[(?:{}|{future})\]", net::ipv6_text());
        let segment = format!("(?:[{plain}:@]|{PERCENT})*");
        let some = format!("(?:[{plain}:@]|{PERCENT})+");
        Self {
            network: format!(r"\/\/(?:{user}@)?(?:{literal}|{name})(?::\d*)?(?:\/{segment})*"),
            absolute: format!(r"\/(?:{some}(?:\/{segment})*)?"),
            without_colon: format!("(?:[{plain}@]|{PERCENT})+"),
            tail: format!(
                r"(?:\?(?:[{plain}:@\/?{private}]|{PERCENT})*)?(?:#(?:[{plain}:@\/?]|{PERCENT})*)?"
            ),
            segment,
            some,
        }
    }
}

/// Templates; an apostrophe is a literal by erratum 6937 of RFC 6570.
pub(super) fn template() -> Regular {
    let literal = format!(r"[!#-$&-;=?-\[\]_a-z~{UCSCHAR}{IPRIVATE}]|{PERCENT}");
    let char = format!(r"(?:[A-Za-z\d_]|{PERCENT})");
    let variable = format!(r"{char}(?:\.?{char})*(?::[1-9]\d{{0,3}}|\*)?");
    grammar(&format!(r"(?:{literal}|\{{[+#.\/;?&]?{variable}(?:,{variable})*\}})*"))
}
