//! Bytes to text, when characters may be split between tokens.

/// Collects bytes and hands out whole characters.
///
/// Bytes that can't begin or continue a character become U+FFFD, as in [`String::from_utf8_lossy`]; whatever the
/// chunks, the text is the same.
///
/// ```
/// use maskwright::generate::Utf8Assembler;
/// let mut assembler = Utf8Assembler::default();
/// let euro = "€".as_bytes();
/// assert_eq!(assembler.push(&euro[..2]), "");
/// assert_eq!(assembler.push(&euro[2..]), "€");
/// assert_eq!(assembler.finish(), "");
/// ```
#[derive(Debug, Clone, Default)]
pub struct Utf8Assembler {
    /// The start of a character whose rest hasn't come; at most three bytes.
    held: Vec<u8>,
}

impl Utf8Assembler {
    /// Adds bytes; the text that is certain now.
    pub fn push(&mut self, bytes: &[u8]) -> String {
        self.held.extend_from_slice(bytes);
        let mut text = String::new();
        let mut rest = self.held.as_slice();
        loop {
            match std::str::from_utf8(rest) {
                Ok(valid) => {
                    text.push_str(valid);
                    rest = &[];
                    break;
                }
                Err(error) => {
                    let (valid, after) = rest.split_at(error.valid_up_to());
                    text.push_str(&String::from_utf8_lossy(valid));
                    rest = after;
                    // `None`: the bytes may still become a character.
                    let Some(bad) = error.error_len() else { break };
                    text.push(char::REPLACEMENT_CHARACTER);
                    rest = &rest[bad..];
                }
            }
        }
        self.held = rest.to_vec();
        text
    }

    /// Ends the text: what is held can't become a character any more.
    #[must_use]
    pub fn finish(&mut self) -> String {
        let held = std::mem::take(&mut self.held);
        String::from_utf8_lossy(&held).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assembled(bytes: &[u8], chunk: usize) -> String {
        let mut assembler = Utf8Assembler::default();
        let mut text: String = bytes.chunks(chunk).map(|chunk| assembler.push(chunk)).collect();
        text.push_str(&assembler.finish());
        text
    }

    #[test]
    fn any_chunking_gives_the_same_text() {
        let mut bytes = "a é € 😀 ẞ".as_bytes().to_vec();
        bytes.extend_from_slice(&[0xff, b'x', 0xe2, 0x82, b'y', 0xf0, 0x9f]);
        for chunk in 1..=bytes.len() {
            assert_eq!(assembled(&bytes, chunk), String::from_utf8_lossy(&bytes), "chunks of {chunk}");
        }
    }
}
