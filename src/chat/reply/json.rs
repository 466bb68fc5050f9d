//! JSON read from a reply: where a value ends is decided by the value itself, never by a search for what follows it.

use serde_json::Value;

use super::reader::Reader;

/// Levels of nesting; past it a value counts as broken.
const DEPTH: usize = 200;

/// Why a value couldn't be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::chat) enum Stop {
    /// The reply ended inside it.
    Ended,
    /// It isn't one.
    Broken,
}

/// The kinds of value, by their first characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::chat) enum Json {
    Object,
    Array,
    String,
    Other,
}

impl Json {
    /// The kind of value that begins with `c`.
    pub(in crate::chat) fn begins(c: char) -> Option<Self> {
        Some(match c {
            '{' => Self::Object,
            '[' => Self::Array,
            '"' => Self::String,
            '-' | '0'..='9' | 't' | 'f' | 'n' => Self::Other,
            _ => return None,
        })
    }
}

/// Reads one value; `each` sees its characters as they come.
pub(in crate::chat) async fn read_json(
    reader: &mut Reader,
    mut each: impl FnMut(char) + Send,
) -> Result<(), Stop> {
    // Open brackets. Strings, numbers and words are read whole.
    let mut open: Vec<char> = Vec::new();
    loop {
        // A value begins here.
        let c = next(reader, &mut each).await?;
        match c {
            '{' | '[' => {
                if open.len() >= DEPTH {
                    return Err(Stop::Broken);
                }
                space(reader, &mut each).await;
                let close = if c == '{' { '}' } else { ']' };
                if peek(reader).await? == close {
                    next(reader, &mut each).await?;
                } else {
                    open.push(close);
                    if c == '{' {
                        key(reader, &mut each).await?;
                    }
                    continue;
                }
            }
            '"' => string(reader, &mut each).await?,
            't' => word(reader, "rue", &mut each).await?,
            'f' => word(reader, "alse", &mut each).await?,
            'n' => word(reader, "ull", &mut each).await?,
            '-' | '0'..='9' => number(reader, c, &mut each).await?,
            _ => return Err(Stop::Broken),
        }
        // A value ended here.
        loop {
            let Some(&close) = open.last() else { return Ok(()) };
            space(reader, &mut each).await;
            let c = next(reader, &mut each).await?;
            if c == close {
                open.pop();
            } else if c == ',' {
                space(reader, &mut each).await;
                if close == '}' {
                    key(reader, &mut each).await?;
                }
                break;
            } else {
                return Err(Stop::Broken);
            }
        }
    }
}

/// Reads a string; its text.
pub(in crate::chat) async fn read_string(reader: &mut Reader) -> Result<String, Stop> {
    let from = reader.at();
    if next(reader, &mut |_| {}).await? != '"' {
        return Err(Stop::Broken);
    }
    string(reader, &mut |_| {}).await?;
    serde_json::from_str(&reader.since(from)).map_err(|_| Stop::Broken)
}

/// What an escape inside a string stands for; the reader stands after its backslash. A lone surrogate is U+FFFD.
pub(in crate::chat) async fn unescape(reader: &mut Reader) -> Result<char, Stop> {
    Ok(match next(reader, &mut |_| {}).await? {
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        'b' => '\u{8}',
        'f' => '\u{c}',
        c @ ('"' | '\\' | '/') => c,
        'u' => {
            let first = hex(reader, 4).await?;
            let mut code = first;
            if (0xD800..0xDC00).contains(&first) && reader.take_text("\\u").await {
                let second = hex(reader, 4).await?;
                code = if (0xDC00..0xE000).contains(&second) {
                    0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00)
                } else {
                    0xFFFD
                };
            }
            char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
        }
        _ => return Err(Stop::Broken),
    })
}

/// So many hexadecimal digits.
pub(in crate::chat) async fn hex(reader: &mut Reader, digits: usize) -> Result<u32, Stop> {
    let mut value = 0;
    for _ in 0..digits {
        let digit = next(reader, &mut |_| {}).await?.to_digit(16).ok_or(Stop::Broken)?;
        value = value * 16 + digit;
    }
    Ok(value)
}

/// A text as a JSON string.
pub(in crate::chat) fn json_text(text: &str) -> String {
    Value::from(text).to_string()
}

async fn peek(reader: &Reader) -> Result<char, Stop> {
    match reader.peek_char().await {
        Some(c) => Ok(c),
        None if reader.is_end().await => Err(Stop::Ended),
        None => Err(Stop::Broken),
    }
}

async fn next(reader: &mut Reader, each: &mut (impl FnMut(char) + Send)) -> Result<char, Stop> {
    let c = peek(reader).await?;
    reader.skip(1);
    each(c);
    Ok(c)
}

async fn space(reader: &mut Reader, each: &mut (impl FnMut(char) + Send)) {
    while let Some(c @ (' ' | '\t' | '\r' | '\n')) = reader.peek_char().await {
        reader.skip(1);
        each(c);
    }
}

async fn key(reader: &mut Reader, each: &mut (impl FnMut(char) + Send)) -> Result<(), Stop> {
    if next(reader, each).await? != '"' {
        return Err(Stop::Broken);
    }
    string(reader, each).await?;
    space(reader, each).await;
    if next(reader, each).await? != ':' {
        return Err(Stop::Broken);
    }
    space(reader, each).await;
    Ok(())
}

async fn string(reader: &mut Reader, each: &mut (impl FnMut(char) + Send)) -> Result<(), Stop> {
    loop {
        match next(reader, each).await? {
            '"' => return Ok(()),
            '\\' => match next(reader, each).await? {
                'u' => {
                    for _ in 0..4 {
                        if !next(reader, each).await?.is_ascii_hexdigit() {
                            return Err(Stop::Broken);
                        }
                    }
                }
                '"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't' => {}
                _ => return Err(Stop::Broken),
            },
            c if c < ' ' => return Err(Stop::Broken),
            _ => {}
        }
    }
}

async fn word(reader: &mut Reader, rest: &str, each: &mut (impl FnMut(char) + Send)) -> Result<(), Stop> {
    for expected in rest.chars() {
        if next(reader, each).await? != expected {
            return Err(Stop::Broken);
        }
    }
    Ok(())
}

/// The rest of a number. One that the reply ends in is whole: nobody can tell.
async fn number(reader: &mut Reader, first: char, each: &mut (impl FnMut(char) + Send)) -> Result<(), Stop> {
    let mut first = first;
    if first == '-' {
        first = next(reader, each).await?;
    }
    if !first.is_ascii_digit() {
        return Err(Stop::Broken);
    }
    if first != '0' {
        digits(reader, each).await;
    }
    if reader.peek_char().await == Some('.') {
        next(reader, each).await?;
        if digits(reader, each).await == 0 {
            return Err(if reader.is_end().await { Stop::Ended } else { Stop::Broken });
        }
    }
    if matches!(reader.peek_char().await, Some('e' | 'E')) {
        next(reader, each).await?;
        if matches!(reader.peek_char().await, Some('+' | '-')) {
            next(reader, each).await?;
        }
        if digits(reader, each).await == 0 {
            return Err(if reader.is_end().await { Stop::Ended } else { Stop::Broken });
        }
    }
    Ok(())
}

async fn digits(reader: &mut Reader, each: &mut (impl FnMut(char) + Send)) -> usize {
    let mut count = 0;
    while let Some(c) = reader.peek_char().await.filter(char::is_ascii_digit) {
        reader.skip(1);
        each(c);
        count += 1;
    }
    count
}
