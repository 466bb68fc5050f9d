//! A message's header. Reading it never fails: what isn't understood is left out.

/// What a header says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) channel: Option<String>,
    /// Who the message is to, without the namespace `functions.`; not the assistant itself.
    pub(super) recipient: Option<String>,
    /// Whether the recipient is one of the model's own tools, which have no namespace.
    pub(super) built_in: bool,
    /// What is left: the text of a message without `<|message|>`.
    pub(super) rest: String,
}

impl Header {
    /// Reads the text between `<|start|>` and `<|message|>`; `declared` knows the tools.
    pub(super) fn parse(text: &str, declared: &dyn Fn(&str) -> bool) -> Self {
        let mut header = Self::default();
        let mut rest = String::new();
        let mut parts = text.split("<|channel|>");
        rest.push_str(parts.next().unwrap_or_default());
        for part in parts {
            let part = part.trim_start();
            let end = part.find(|c: char| c.is_whitespace() || c == '<').unwrap_or(part.len());
            if end > 0 {
                header.channel = Some(part[..end].to_owned());
            }
            rest.push(' ');
            rest.push_str(&part[end..]);
        }
        let rest = rest.replace("<|start|>", " ").replace("<|constrain|>", " <|constrain|>");
        let mut words = Vec::new();
        for (index, word) in rest.split_whitespace().enumerate() {
            if let Some(recipient) = word.strip_prefix("to=") {
                let name = recipient.split('<').next().unwrap_or_default();
                if name != "assistant" && !name.is_empty() {
                    let (name, built_in) = match name.strip_prefix("functions.") {
                        Some(name) => (name, false),
                        None => (name, BUILT_IN.iter().any(|own| name.split('.').next() == Some(own))),
                    };
                    let glued = ["json", "code"]
                        .iter()
                        .find_map(|tail| name.strip_suffix(tail))
                        .filter(|n| declared(n));
                    let name = if declared(name) { name } else { glued.unwrap_or(name) };
                    header.recipient = Some(name.to_owned());
                    header.built_in = built_in;
                }
            } else if !(index == 0 && word == "assistant") {
                words.push(word);
            }
        }
        header.rest =
            words.into_iter().filter(|word| !word.starts_with("<|constrain|>")).collect::<Vec<_>>().join(" ");
        header
    }
}

/// Tools that the model knows by itself.
const BUILT_IN: [&str; 2] = ["browser", "python"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_order_of_a_header_is_read() {
        for text in [
            "<|channel|>commentary to=functions.add <|constrain|>json",
            "<|channel|>commentary to=functions.add<|constrain|>json",
            " to=functions.add<|channel|>commentary <|constrain|>json",
            "assistant to=functions.add<|channel|>commentary json",
            "assistant to=functions.add<|channel|> commentary code",
            "<|channel|>commentary to=functions.addjson",
            "<|channel|>commentary to=add",
            "<|channel|>commentary to=assistant<|channel|>commentary to=functions.add",
        ] {
            let header = Header::parse(text, &|name| name == "add");
            assert_eq!(header.recipient.as_deref(), Some("add"), "{text}");
            assert_eq!(header.channel.as_deref(), Some("commentary"), "{text}");
        }
    }

    #[test]
    fn odd_headers_are_read_as_far_as_they_go() {
        let parse = |text: &str| Header::parse(text, &|_| false);
        assert_eq!(
            parse("<|channel|>commentary to=assistant<|channel|>analysis").channel.unwrap(),
            "analysis"
        );
        assert_eq!(parse("<|channel|>commentary to=assistant<|channel|>final").recipient, None);
        assert!(parse("<|channel|>analysis to=browser.search code").built_in);
        assert_eq!(parse("<|channel|>final Hello there").rest, "Hello there");
        assert_eq!(parse(""), Header::default());
    }
}
