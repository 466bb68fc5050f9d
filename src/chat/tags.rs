//! `{% generation %}…{% endgeneration %}`: the tags by which transformers finds what the assistant said, for training.
//!
//! They change nothing in the rendered text but open a scope, so they are rewritten to `{% with %}…{% endwith %}`
//! before the template is parsed. Strings, comments and raw blocks stay as they are, and so do line numbers.

/// The template with those tags rewritten.
pub(super) fn rewrite_generation_tags(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    let mut raw = false;
    while let Some(at) = rest.find('{') {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let (copied, length) = if raw { in_raw(from, &mut raw) } else { in_template(from, &mut raw) };
        match copied {
            Some(rewritten) => out.push_str(&rewritten),
            None => out.push_str(&from[..length]),
        }
        rest = &from[length..];
    }
    out.push_str(rest);
    out
}

/// What stands at a brace of the template: its length, and what to write for it where that differs.
fn in_template(from: &str, raw: &mut bool) -> (Option<String>, usize) {
    match from.as_bytes().get(1) {
        Some(b'#') => (None, from.find("#}").map_or(from.len(), |end| end + 2)),
        Some(b'{') => (None, end_of_code(from, "}}")),
        Some(b'%') => {
            let length = end_of_code(from, "%}");
            let tag = &from[..length];
            let rewritten = match word(tag) {
                "generation" => Some(tag.replacen("generation", "with", 1)),
                "endgeneration" => Some(tag.replacen("endgeneration", "endwith", 1)),
                name => {
                    *raw = name == "raw";
                    None
                }
            };
            (rewritten, length)
        }
        _ => (None, 1),
    }
}

/// The same inside a raw block, where only its own end means anything.
fn in_raw(from: &str, raw: &mut bool) -> (Option<String>, usize) {
    if from.starts_with("{%")
        && let Some(end) = from.find("%}")
        && word(&from[..end + 2]) == "endraw"
    {
        *raw = false;
        return (None, end + 2);
    }
    (None, 1)
}

/// The name of a `{%- name … %}` tag that has nothing after its name, or its first word.
fn word(tag: &str) -> &str {
    let inner = tag.strip_prefix("{%").unwrap_or(tag);
    let inner = inner.strip_suffix("%}").unwrap_or(inner);
    inner.trim_matches(|c: char| c.is_whitespace() || c == '-' || c == '+')
}

/// Length of a `{{ … }}` or `{% … %}` with its end; the ends inside quotes don't count.
fn end_of_code(from: &str, end: &str) -> usize {
    let bytes = from.as_bytes();
    let mut quote = None;
    let mut i = 2;
    while i < bytes.len() {
        match (quote, bytes[i]) {
            (Some(_), b'\\') => i += 1,
            (Some(q), b) if b == q => quote = None,
            (None, b @ (b'"' | b'\'')) => quote = Some(b),
            (None, _) if bytes[i..].starts_with(end.as_bytes()) => return i + end.len(),
            _ => {}
        }
        i += 1;
    }
    from.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_tags_are_rewritten() {
        let cases = [
            ("{% generation %}a{% endgeneration %}", "{% with %}a{% endwith %}"),
            ("{%- generation -%}\n{%- endgeneration +%}", "{%- with -%}\n{%- endwith +%}"),
            ("{%generation%}{%endgeneration%}", "{%with%}{%endwith%}"),
            ("{{ '{% generation %}' }}", "{{ '{% generation %}' }}"),
            ("{{ '\\'}}{% generation %}' }}", "{{ '\\'}}{% generation %}' }}"),
            ("{# {% generation %} #}", "{# {% generation %} #}"),
            (
                "{% raw %}{% generation %}{% endraw %}{% generation %}",
                "{% raw %}{% generation %}{% endraw %}{% with %}",
            ),
            ("{% raw %}{% {% endraw %}{% generation %}", "{% raw %}{% {% endraw %}{% with %}"),
            ("{% set generation = 1 %}", "{% set generation = 1 %}"),
            ("generation {", "generation {"),
            ("{{ 'open", "{{ 'open"),
            ("{%", "{%"),
            ("{# open", "{# open"),
            ("{ü{", "{ü{"),
        ];
        for (source, expected) in cases {
            assert_eq!(rewrite_generation_tags(source), expected, "{source}");
        }
    }
}
