//! Where chat templates are found: in a `tokenizer_config.json`, under one name or several.

use serde_json::Value;

use super::error::TemplateError;

/// The templates of a model, as text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TemplateSources {
    /// The one for any conversation.
    pub chat: Option<String>,
    /// The one for conversations with tools, where there is one of its own (named `tool_use`).
    pub tool_use: Option<String>,
}

impl TemplateSources {
    /// Reads the bytes of a `tokenizer_config.json`: its `chat_template` is a text, or a list of `name` and `template`.
    ///
    /// A `chat_template.jinja` beside the file, where there is one, is to be preferred for [`Self::chat`].
    ///
    /// ```
    /// use maskwright::chat::TemplateSources;
    /// let config = br#"{"chat_template": [{"name": "default", "template": "a"}, {"name": "tool_use", "template": "b"}]}"#;
    /// let sources = TemplateSources::from_config(config)?;
    /// assert_eq!((sources.chat.as_deref(), sources.tool_use.as_deref()), (Some("a"), Some("b")));
    /// # Ok::<(), maskwright::chat::TemplateError>(())
    /// ```
    ///
    /// # Errors
    /// [`TemplateError::Syntax`] where the file isn't JSON, or `chat_template` is neither.
    pub fn from_config(json: &[u8]) -> Result<Self, TemplateError> {
        let malformed = |line: usize, reason: String| TemplateError::Syntax { line, reason };
        let config: Value = serde_json::from_slice(json)
            .map_err(|error| malformed(error.line(), format!("tokenizer_config.json: {error}")))?;
        match config.get("chat_template") {
            None | Some(Value::Null) => Ok(Self::default()),
            Some(Value::String(chat)) => Ok(Self { chat: Some(chat.clone()), tool_use: None }),
            Some(Value::Array(named)) => {
                let find = |name: &str| {
                    let entry = named.iter().find(|entry| entry["name"] == name)?;
                    entry["template"].as_str().map(str::to_owned)
                };
                Ok(Self { chat: find("default"), tool_use: find("tool_use") })
            }
            Some(_) => {
                Err(malformed(0, "tokenizer_config.json: chat_template is neither a text nor a list".into()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_the_field_is_read_and_others_are_errors() {
        let read = |text: &str| TemplateSources::from_config(text.as_bytes());
        assert_eq!(read(r#"{"chat_template": "x"}"#).unwrap().chat.as_deref(), Some("x"));
        assert_eq!(read("{}").unwrap(), TemplateSources::default());
        assert!(read("{").is_err() && read(r#"{"chat_template": 3}"#).is_err());
    }
}
