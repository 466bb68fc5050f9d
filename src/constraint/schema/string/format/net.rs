//! Hosts and addresses.

use super::{Regular, grammar, quote};

/// `dec-octet`.
const OCTET: &str = r"(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)";
/// A label of a host name: 1 to 63 letters, digits and inner hyphens.
pub(super) const LABEL: &str = r"[A-Za-z\d](?:[A-Za-z\d\-]{0,61}[A-Za-z\d])?";

pub(super) fn hostname() -> Regular {
    Regular::and([grammar(&format!(r"{LABEL}(?:\.{LABEL})*")), quote::length(1, Some(253)), no_a_label()])
}

/// Strings without a label that begins like an A-label of IDNA: whether it is one isn't regular.
pub(super) fn no_a_label() -> Regular {
    grammar(r"(?:[^]*[.\u3002\uff0e\uff61@])?[Xx][Nn]--[^]*").complement()
}

pub(super) fn ipv4() -> Regular {
    grammar(&ipv4_text())
}

pub(super) fn ipv6() -> Regular {
    grammar(&ipv6_text())
}

pub(super) fn ipv4_text() -> String {
    format!(r"{OCTET}(?:\.{OCTET}){{3}}")
}

/// `IPv6address` of RFC 3986, which is section 2.2 of RFC 4291.
pub(super) fn ipv6_text() -> String {
    let hex = r"[\dA-Fa-f]{1,4}";
    let last = format!("(?:{hex}:{hex}|{})", ipv4_text());
    let before = |count: usize| format!("(?:{hex}(?::{hex}){{0,{}}})?", count - 1);
    let forms = [
        format!("(?:{hex}:){{6}}{last}"),
        format!("::(?:{hex}:){{5}}{last}"),
        format!("{}::(?:{hex}:){{4}}{last}", before(1)),
        format!("{}::(?:{hex}:){{3}}{last}", before(2)),
        format!("{}::(?:{hex}:){{2}}{last}", before(3)),
        format!("{}::{hex}:{last}", before(4)),
        format!("{}::{last}", before(5)),
        format!("{}::{hex}", before(6)),
        format!("{}::", before(7)),
    ];
    format!("(?:{})", forms.join("|"))
}
