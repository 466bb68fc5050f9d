//! Internationalized host names: the regular core of IDNA 2008 (RFC 5890 to 5893).
//!
//! Narrower than the standard, never wider: no A-labels (`xn--`); a label beyond ASCII has at most [`LABEL`]
//! characters and its name at most [`NAME`], which keeps every encoded form within 63 and 253 bytes (Punycode takes
//! at most 2 + log10 of a delta digits, and the deltas of such a label sum to less than 65536 · 9); characters of the
//! basic plane by Unicode 14; marks that neither compose nor reorder, so that every label is in form C; of the
//! scripts from right to left, letters of Hebrew and Arabic only.

use super::{Regular, grammar, net, quote};

/// Characters of a label beyond ASCII.
const LABEL: usize = 8;
/// Characters of a name beyond ASCII.
const NAME: u64 = 37;
/// Letters and digits that RFC 5892 disallows, that compose with what precedes, or run neither way.
const DISALLOWED: &str = r"\u00aa-\u00ba\u0133\u0140\u0149\u017f\u01c6-\u01cc\u01f3\u03d0-\u03d6\u03f0-\u03f2\u03f5\u0587\u0958-\u095f\u09dc-\u09df\u0a33\u0a36\u0a59-\u0a5b\u0a5e\u0b5c-\u0b5d\u0e33\u0eb3\u0edc-\u0edd\u0f43\u0f4d\u0f52\u0f57\u0f5c\u0f69\u1100-\u11ff\u13f8-\u13fd\u1c80-\u1c88\u1e9a-\u1e9b\u1f71\u1f73\u1f75\u1f77\u1f79\u1f7b\u1f7d-\u1fa7\u1fb2-\u1fb4\u1fb7-\u1fc4\u1fc7\u1fd3\u1fe3\u1ff2-\u1ff4\u1ff7-\u2149\u309f\u30ff\u3131-\u318e\ua960-\ua97c\uab70-\uabbf\ud7b0-\ufa0d\ufa10\ufa12\ufa15-\ufa1e\ufa20\ufa22\ufa25-\ufa26\ufa2a-\uffdc";
/// Scripts from right to left.
const RIGHT_TO_LEFT: &str = r"\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff";
/// Viramas: after one, a zero-width joiner may stand.
const VIRAMA: &str = r"\u094d\u09cd\u0a4d\u0acd\u0b4d\u0bcd\u0c4d\u0ccd\u0d3b-\u0d3c\u0d4d\u0e3a\u0eba\u0f84\u1039-\u103a\u1714-\u1715\u1734\u17d2\u1a60\u1b44\u1baa-\u1bab\u1bf2-\u1bf3\u2d7f\ua806\ua82c\ua8c4\ua953\ua9c0\uaaf6\uabed";
/// Marks of combining class 0 that compose with nothing.
const MARK: &str = r"\u0900-\u0903\u093a-\u093b\u093e-\u094c\u094e-\u094f\u0955-\u0957\u0962-\u0963\u0981-\u0983\u09bf-\u09c4\u09c7-\u09c8\u09cb-\u09cc\u09e2-\u09e3\u0a01-\u0a03\u0a3e-\u0a42\u0a47-\u0a48\u0a4b-\u0a4c\u0a51\u0a70-\u0a71\u0a75\u0a81-\u0a83\u0abe-\u0ac5\u0ac7-\u0ac9\u0acb-\u0acc\u0ae2-\u0ae3\u0afa-\u0aff\u0b01-\u0b03\u0b3f-\u0b44\u0b47-\u0b48\u0b4b-\u0b4c\u0b55\u0b62-\u0b63\u0b82\u0bbf-\u0bc2\u0bc6-\u0bc8\u0bca-\u0bcc\u0c00-\u0c04\u0c3e-\u0c44\u0c46-\u0c48\u0c4a-\u0c4c\u0c62-\u0c63\u0c81-\u0c83\u0cbe-\u0cc1\u0cc3-\u0cc4\u0cc6-\u0cc8\u0cca-\u0ccc\u0ce2-\u0ce3\u0d00-\u0d03\u0d3f-\u0d44\u0d46-\u0d48\u0d4a-\u0d4c\u0d62-\u0d63\u0d81-\u0d83\u0dd0-\u0dd4\u0dd6\u0dd8-\u0dde\u0df2-\u0df3\u0e31\u0e34-\u0e37\u0e47\u0e4c-\u0e4e\u0eb1\u0eb4-\u0eb7\u0ebb-\u0ebc\u0ecc-\u0ecd\u0f3e-\u0f3f\u0f7e-\u0f7f\u0f8d-\u0f92\u0f94-\u0f97\u0f99-\u0f9c\u0f9e-\u0fa1\u0fa3-\u0fa6\u0fa8-\u0fab\u0fad-\u0fb8\u0fba-\u0fbc\u102b-\u102d\u102f-\u1036\u1038\u103b-\u103e\u1056-\u1059\u105e-\u1060\u1062-\u1064\u1067-\u106d\u1071-\u1074\u1082-\u108c\u108f\u109a-\u109d\u1712-\u1713\u1732-\u1733\u1752-\u1753\u1772-\u1773\u17b6-\u17d1\u17d3\u1885-\u1886\u1920-\u192b\u1930-\u1938\u1a19-\u1a1b\u1a55-\u1a5e\u1a61-\u1a74\u1b00-\u1b04\u1b36-\u1b43\u1b80-\u1b82\u1ba1-\u1ba9\u1bac-\u1bad\u1be7-\u1bf1\u1c24-\u1c36\u1ce1\u1cf7\ua802\ua80b\ua823-\ua827\ua880-\ua881\ua8b4-\ua8c3\ua8c5\ua8ff\ua926-\ua92a\ua947-\ua952\ua980-\ua983\ua9b4-\ua9bf\ua9e5\uaa29-\uaa36\uaa43\uaa4c-\uaa4d\uaa7b-\uaa7d\uaaeb-\uaaef\uaaf5\uabe3-\uabea\uabec";
/// Letters from right to left that RFC 5892 allows, with its exceptions.
const RTL: &str =
    r"\u05d0-\u05ea\u0620-\u063f\u0641-\u064a\u0671-\u0674\u0679-\u06d3\u06d5\u06ee\u06ef\u06fa-\u06ff";
/// Arabic letters that join on both sides.
const DUAL: &str = r"\u0626\u0628\u062a-\u062e\u0633-\u063a\u0641-\u0647\u0649\u064a";
/// Full stops between labels.
const DOT: &str = r"[.\u3002\uff0e\uff61]";

pub(super) fn hostname() -> Regular {
    // Of the basic plane, not from right to left, and not in the list.
    let letter = format!(
        r"(?:(?![{DISALLOWED}{RIGHT_TO_LEFT}\u{{10000}}-\u{{10ffff}}])[\p{{Ll}}\p{{Lo}}\p{{Nd}}]|[\u00df\u03c2\u0f0b\u3007\u06f0-\u06f9])"
    );
    let more = format!(r"(?:{letter}|[A-Z\-\u00b7\u0375\u30fb\u200c\u200d{VIRAMA}{MARK}])");
    // What must not stand at the start or at the end is taken out of the whole name below.
    let label = format!(r"(?:{letter}|[A-Z\u0375\u30fb]){more}{{0,{}}}", LABEL - 1);
    let ascii = net::LABEL;
    let left = format!(r"(?:{label}|{ascii})(?:{DOT}(?:{label}|{ascii}))*");
    // Where a label runs from right to left, no other may begin with a digit.
    let right = format!(
        r"[{RTL}](?:(?:[{RTL}\-\u05f3\u05f4\u200c\d\u06f0-\u06f9]{{0,{inner}}}[{RTL}\d\u06f0-\u06f9\u05f3\u05f4])?|[{RTL}\-\u05f3\u05f4\u200c\u0660-\u0669]{{0,{inner}}}[{RTL}\u0660-\u0669])",
        inner = LABEL - 2
    );
    let steady = format!(r"(?![\d\u06f0-\u06f9])(?:{label}|{ascii})");
    let both = format!(r"(?:{right}|{steady})(?:{DOT}(?:{right}|{steady}))*");
    Regular::or([
        Regular::and([
            grammar(&format!("{ascii}(?:{DOT}{ascii})*")),
            quote::length(1, Some(253)),
            net::no_a_label(),
        ]),
        Regular::and(
            [Regular::or([grammar(&left), grammar(&both)]), quote::length(1, Some(NAME)), net::no_a_label()]
                .into_iter()
                .chain(context().iter().map(|wrong| grammar(wrong).complement())),
        ),
    ])
}

/// Names with a character out of its context (RFC 5892, appendix A), or a hyphen where none may be.
fn context() -> [String; 9] {
    let any = "[^]*";
    let other = r"[^.\u3002\uff0e\uff61]";
    let japanese = r"[^.\u3002\uff0e\uff61\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Han}]";
    [
        // MIDDLE DOT stands between two small l.
        format!(r"(?:{any}[^l])?\u00b7{any}|{any}\u00b7(?:[^l]{any})?"),
        // KERAIA is followed by Greek.
        format!(r"{any}\u0375(?:[^\p{{Script=Greek}}]{any})?"),
        // GERESH and GERSHAYIM are preceded by Hebrew.
        format!(r"(?:{any}[^\p{{Script=Hebrew}}])?[\u05f3\u05f4]{any}"),
        // KATAKANA MIDDLE DOT needs a Japanese or Chinese character in its label.
        format!(r"(?:{any}{DOT})?{japanese}*\u30fb{japanese}*(?:{DOT}{any})?"),
        // ZERO WIDTH JOINER is preceded by a virama.
        format!(r"(?:{any}[^{VIRAMA}])?\u200d{any}"),
        // So is ZERO WIDTH NON-JOINER, or it stands between letters that join.
        format!(r"(?:{any}[^{VIRAMA}{DUAL}])?\u200c{any}|{any}[{DUAL}]\u200c(?:[^{DUAL}]{any})?"),
        // No hyphen at either end of a label.
        format!(r"(?:{any}{DOT})?-{any}|{any}-(?:{DOT}{any})?"),
        // Nor two of them in the third and fourth place of a label beyond ASCII.
        format!(r"(?:{any}{DOT})?{other}{{2}}--{any}"),
        // A label beyond ASCII has no capitals; one of ASCII is checked without them here.
        format!(r"{any}[A-Z]{any}"),
    ]
}
