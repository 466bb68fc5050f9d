//! The small units of GBNF text: blanks, names, numbers, characters and their escapes.
//!
//! A [`Cursor`] walks over the text by code points and knows the line and column it is at. It never looks at
//! what the units mean together; the parser does.

use super::error::{Found, GbnfError, GbnfErrorKind, Place};

/// Where the reading of a text has come to.
#[derive(Debug, Clone)]
pub(super) struct Cursor<'a> {
    rest: &'a str,
    place: Place,
}

impl<'a> Cursor<'a> {
    /// At the start of a text, behind a byte order mark if there is one.
    pub(super) fn new(text: &'a str) -> Self {
        Self { rest: text.strip_prefix('\u{FEFF}').unwrap_or(text), place: Place::START }
    }

    pub(super) fn place(&self) -> Place {
        self.place
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn peek_second(&self) -> Option<char> {
        self.rest.chars().nth(1)
    }

    pub(super) fn found(&self) -> Found {
        self.peek().into()
    }

    /// Steps over one code point.
    pub(super) fn bump(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.rest = &self.rest[c.len_utf8()..];
        // A CR before LF doesn't end a line; the LF does.
        if c == '\n' || (c == '\r' && self.peek() != Some('\n')) {
            self.place.line += 1;
            self.place.column = 1;
        } else {
            self.place.column += 1;
        }
        Some(c)
    }

    /// Steps over `text` if it stands here.
    pub(super) fn eat(&mut self, text: &str) -> bool {
        let here = self.rest.starts_with(text);
        if here {
            for _ in text.chars() {
                self.bump();
            }
        }
        here
    }

    /// Steps over blanks and comments, and newlines if they are only blanks here.
    pub(super) fn skip_blank(&mut self, newlines: bool) {
        loop {
            match self.peek() {
                Some(' ' | '\t') => {
                    self.bump();
                }
                Some('\n' | '\r') if newlines => {
                    self.bump();
                }
                Some('#') => {
                    while !matches!(self.peek(), None | Some('\n' | '\r')) {
                        self.bump();
                    }
                }
                _ => return,
            }
        }
    }

    /// The end of a line, or of the text.
    pub(super) fn eat_line_end(&mut self) -> bool {
        match self.peek() {
            None => true,
            Some('\n') => self.bump().is_some(),
            Some('\r') => {
                self.bump();
                self.eat("\n");
                true
            }
            Some(_) => false,
        }
    }

    /// A rule's name, or nothing.
    pub(super) fn name(&mut self) -> Option<&'a str> {
        let start = self.rest;
        while self.peek().is_some_and(starts_name) {
            self.bump();
        }
        let name = &start[..start.len() - self.rest.len()];
        (!name.is_empty()).then_some(name)
    }

    /// The digits of a number.
    pub(super) fn digits(&mut self) -> Result<&'a str, GbnfError> {
        let start = self.rest;
        while self.peek().is_some_and(|c| c.is_ascii_digit()) {
            self.bump();
        }
        let digits = &start[..start.len() - self.rest.len()];
        if digits.is_empty() {
            return Err(GbnfError::new(self.place, GbnfErrorKind::ExpectedInt(self.found())));
        }
        Ok(digits)
    }

    /// Whether a range goes on here: a dash makes one unless `]` follows.
    pub(super) fn at_range_dash(&self) -> bool {
        self.peek() == Some('-') && self.peek_second() != Some(']')
    }

    /// One character of a literal or class with its escape resolved, or nothing at the end of the text.
    pub(super) fn character(&mut self) -> Result<Option<char>, GbnfError> {
        let place = self.place;
        let error = |kind| Err(GbnfError::new(place, kind));
        match self.bump() {
            Some('\\') => {}
            other => return Ok(other),
        }
        let digits = match self.peek() {
            Some('x') => 2,
            Some('u') => 4,
            Some('U') => 8,
            Some(c) => {
                let meant = match c {
                    'n' => '\n',
                    't' => '\t',
                    'r' => '\r',
                    '\\' | '"' | '[' | ']' | '-' => c,
                    _ => return error(GbnfErrorKind::UnknownEscape(Found::Char(c))),
                };
                self.bump();
                return Ok(Some(meant));
            }
            None => return error(GbnfErrorKind::UnknownEscape(Found::End)),
        };
        self.bump();
        let mut value = 0u32;
        for _ in 0..digits {
            let Some(digit) = self.peek().and_then(|c| c.to_digit(16)) else {
                return error(GbnfErrorKind::BadHexEscape(digits));
            };
            self.bump();
            value = value << 4 | digit;
        }
        match char::from_u32(value) {
            Some(c) => Ok(Some(c)),
            None => error(GbnfErrorKind::InvalidCodepoint(value)),
        }
    }
}

/// Whether a name can start or go on with this character. llama.cpp knows no underscore in names; as nothing
/// else can stand where one does, it is read as part of the name.
pub(super) fn starts_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '-' || c == '_'
}
