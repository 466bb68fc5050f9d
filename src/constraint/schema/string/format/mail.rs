//! Mail addresses: `Mailbox` of RFC 5321, and what RFC 6531 adds to it.

use super::{Regular, grammar, idn, net, quote};

pub(super) fn email() -> Regular {
    let local = Regular::and([grammar(&local("")), quote::length(1, Some(64))]);
    Regular::concat([local, Regular::literal("@"), Regular::or([domain(), address()])])
}

pub(super) fn idn_email() -> Regular {
    // 64 bytes in UTF-8, by the longest of the characters.
    let local = [(64, ""), (32, r"\u0080-\u07ff"), (21, r"\u0080-\uffff"), (16, r"\u0080-\u{10ffff}")]
        .map(|(length, more)| Regular::and([grammar(&local(more)), quote::length(1, Some(length))]));
    let host = Regular::or([domain(), idn::hostname(), address()]);
    Regular::concat([Regular::or(local), Regular::literal("@"), host])
}

/// `Local-part`, with more characters as a part of a class.
fn local(more: &str) -> String {
    let atom = format!(r"[A-Za-z\d!#$%&'*+\-\/=?^_`{{|}}~{more}]+");
    format!(r#"{atom}(?:\.{atom})*|"(?:[ !#-\[\]-~{more}]|\\[ -~])*""#)
}

/// `Domain`: at most 255 bytes, labels of at most 63 by RFC 1035.
fn domain() -> Regular {
    let label = net::LABEL;
    Regular::and([
        grammar(&format!(r"{label}(?:\.{label})*")),
        quote::length(1, Some(255)),
        net::no_a_label(),
    ])
}

/// `address-literal`; no other tag than IPv6 is registered.
fn address() -> Regular {
    let hex = r"[\dA-Fa-f]{1,4}";
    let v4 = net::ipv4_text();
    let mut forms = vec![format!("(?:{hex}:){{7}}{hex}"), format!("(?:{hex}:){{6}}{v4}")];
    // Two colons stand for two groups at least.
    for before in 0..=6 {
        let left = if before == 0 { String::new() } else { format!("{hex}(?::{hex}){{{}}}", before - 1) };
        forms.push(match 6 - before {
            0 => format!("{left}::"),
            after => format!("{left}::(?:{hex}(?::{hex}){{0,{}}})?", after - 1),
        });
        if before <= 4 {
            forms.push(format!("{left}::(?:{hex}:){{0,{}}}{v4}", 4 - before));
        }
    }
    grammar(&format!(r"\[(?:{v4}|[Ii][Pp][Vv]6:(?:{}))\]", forms.join("|")))
}
