//! The prompt for a model without a chat template: a base model, which continues text.
//!
//! Nothing in it means a special token, so it is encoded with `ParseSpecials::No`.

use super::message::Message;

/// The messages' texts, trimmed at neither end, joined by blank lines; empty ones are left out.
///
/// ```
/// use maskwright::chat::{Message, plain_prompt};
/// let prompt = plain_prompt(&[Message::system("Reply in JSON."), Message::user("Who was Ada?")]);
/// assert_eq!(prompt, "Reply in JSON.\n\nWho was Ada?");
/// ```
#[must_use]
pub fn plain_prompt(messages: &[Message]) -> String {
    let texts: Vec<&str> =
        messages.iter().map(|m| m.content.as_str()).filter(|text| !text.is_empty()).collect();
    texts.join("\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_system_message_leaves_no_blank_lines() {
        assert_eq!(plain_prompt(&[Message::system(""), Message::user(" a ")]), " a ");
        assert_eq!(plain_prompt(&[]), "");
    }
}
