//! How a tokenizer's files spell bytes: the byte-level alphabet, and byte fallback.
//!
//! Byte-level vocabularies (GPT-2 and its heirs) write each byte as one printable character; SentencePiece ones
//! write text as it is, a space as `▁`, and bytes that have no piece as `<0x0A>`.
//! This is not decoding of whole texts: a token's bytes stand for themselves, whatever comes before them.

/// The character SentencePiece writes for a space.
pub(super) const SPACE_MARK: char = '▁';

/// The bytes a byte-level character stands for a byte, if it does.
///
/// Printable Latin-1 characters stand for their own code; the other 68 bytes are numbered in rising order from
/// U+0100. (The table of the GPT-2 encoder.)
pub(super) fn byte_of(c: char) -> Option<u8> {
    let code = u32::from(c);
    match code {
        0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff => u8::try_from(code).ok(),
        0x100..=0x120 => u8::try_from(code - 0x100).ok(),
        0x121..=0x142 => u8::try_from(code - 0x121 + 0x7f).ok(),
        0x143 => Some(0xad),
        _ => None,
    }
}

/// The byte-level character of a byte.
pub(super) fn char_of(byte: u8) -> char {
    let code = u32::from(byte);
    let code = match byte {
        0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff => code,
        0x00..=0x20 => 0x100 + code,
        0x7f..=0xa0 => 0x121 + code - 0x7f,
        0xad => 0x143,
    };
    char::from_u32(code).expect("codes up to U+0143 are characters")
}

/// The bytes of a byte-level token; a text with other characters in it stands for itself.
pub(super) fn from_byte_level(text: &str) -> Vec<u8> {
    text.chars().map(byte_of).collect::<Option<Vec<u8>>>().unwrap_or_else(|| text.as_bytes().to_vec())
}

/// The byte of a byte-fallback token such as `<0x0A>`.
pub(super) fn from_fallback(text: &str) -> Option<u8> {
    let digits = text.strip_prefix("<0x")?.strip_suffix('>')?;
    let hex = digits.len() == 2 && digits.bytes().all(|b| b.is_ascii_digit() || (b'A'..=b'F').contains(&b));
    hex.then(|| u8::from_str_radix(digits, 16).ok())?
}

/// Whether the byte can stand in UTF-8 at all.
pub(super) fn in_utf8(byte: u8) -> bool {
    !matches!(byte, 0xc0 | 0xc1 | 0xf5..=0xff)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_has_its_own_character() {
        let chars: std::collections::HashSet<char> = (0..=255).map(char_of).collect();
        assert_eq!(chars.len(), 256);
        assert!((0..=255).all(|byte| byte_of(char_of(byte)) == Some(byte)));
    }

    #[test]
    fn characters_are_those_of_the_published_table() {
        for (byte, c) in
            [(b' ', 'Ġ'), (b'\n', 'Ċ'), (b'\t', 'ĉ'), (b'A', 'A'), (0x7f, 'ġ'), (0xad, 'Ń'), (0xff, 'ÿ')]
        {
            assert_eq!(char_of(byte), c);
        }
    }

    #[test]
    fn text_outside_the_alphabet_stands_for_itself() {
        assert_eq!(from_byte_level("Ġhi"), b" hi");
        assert_eq!(from_byte_level("<｜▁pad▁｜>"), "<｜▁pad▁｜>".as_bytes());
    }

    #[test]
    fn fallback_tokens_are_exactly_two_upper_hex_digits() {
        assert_eq!(from_fallback("<0x0A>"), Some(10));
        for other in ["<0x0a>", "<0xA>", "<0x0A", "<0x+1>", "0x0A", "<0x00A>", "<0x€>"] {
            assert_eq!(from_fallback(other), None, "{other}");
        }
    }
}
