//! Python literals read from a reply, as the JSON they mean. Never an evaluator: what isn't a literal is broken.

use super::{
    json::{Stop, hex, json_text},
    reader::Reader,
};

/// Levels of nesting; past it a literal counts as broken.
const DEPTH: usize = 200;

/// Reads one literal: a string in either quotes, a number, `True`, `false`, `None`, `null`, a list, a tuple or a
/// mapping with strings for keys. Its JSON text.
pub(in crate::chat) async fn read_literal(reader: &mut Reader) -> Result<String, Stop> {
    let mut out = String::new();
    let mut open: Vec<char> = Vec::new();
    loop {
        match peek(reader).await? {
            quote @ ('"' | '\'') => out.push_str(&json_text(&string(reader, quote).await?)),
            bracket @ ('[' | '(' | '{') => {
                if open.len() >= DEPTH {
                    return Err(Stop::Broken);
                }
                reader.skip(1);
                let (begin, close) = match bracket {
                    '[' => ('[', ']'),
                    '(' => ('[', ')'),
                    _ => ('{', '}'),
                };
                out.push(begin);
                open.push(close);
                reader.space().await;
                if peek(reader).await? != close {
                    if close == '}' {
                        key(reader, &mut out).await?;
                    }
                    continue;
                }
            }
            c if c == '-' || c.is_ascii_digit() => out.push_str(&number(reader).await?),
            c if c.is_ascii_alphabetic() => out.push_str(word(reader).await?),
            _ => return Err(Stop::Broken),
        }
        loop {
            let Some(&close) = open.last() else { return Ok(out) };
            reader.space().await;
            let c = peek(reader).await?;
            reader.skip(1);
            if c == ',' {
                reader.space().await;
                // A comma may end a list.
                if peek(reader).await? == close {
                    continue;
                }
                out.push_str(", ");
                if close == '}' {
                    key(reader, &mut out).await?;
                }
                break;
            }
            if c != close {
                return Err(Stop::Broken);
            }
            open.pop();
            out.push(if close == '}' { '}' } else { ']' });
        }
    }
}

async fn peek(reader: &Reader) -> Result<char, Stop> {
    match reader.peek_char().await {
        Some(c) => Ok(c),
        None if reader.is_end().await => Err(Stop::Ended),
        None => Err(Stop::Broken),
    }
}

async fn key(reader: &mut Reader, out: &mut String) -> Result<(), Stop> {
    let quote = peek(reader).await?;
    if !matches!(quote, '"' | '\'') {
        return Err(Stop::Broken);
    }
    out.push_str(&json_text(&string(reader, quote).await?));
    reader.space().await;
    if peek(reader).await? != ':' {
        return Err(Stop::Broken);
    }
    reader.skip(1);
    reader.space().await;
    out.push_str(": ");
    Ok(())
}

async fn string(reader: &mut Reader, quote: char) -> Result<String, Stop> {
    reader.skip(1);
    let mut text = String::new();
    loop {
        let c = peek(reader).await?;
        reader.skip(1);
        match c {
            _ if c == quote => return Ok(text),
            '\\' => {
                let escape = peek(reader).await?;
                reader.skip(1);
                let c = match escape {
                    'n' => '\n',
                    'r' => '\r',
                    't' => '\t',
                    'b' => '\u{8}',
                    'f' => '\u{c}',
                    // The slash as in JSON, which this kind of string also is.
                    '\\' | '"' | '\'' | '/' => escape,
                    'x' => character(hex(reader, 2).await?),
                    'u' => {
                        let first = hex(reader, 4).await?;
                        if (0xD800..0xDC00).contains(&first) && reader.take_text("\\u").await {
                            let second = hex(reader, 4).await?;
                            if !(0xDC00..0xE000).contains(&second) {
                                return Err(Stop::Broken);
                            }
                            character(0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00))
                        } else {
                            character(first)
                        }
                    }
                    // As Python does with what it doesn't know.
                    _ => {
                        text.push('\\');
                        escape
                    }
                };
                text.push(c);
            }
            _ => text.push(c),
        }
    }
}

fn character(code: u32) -> char {
    char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// A number, in JSON's spelling.
async fn number(reader: &mut Reader) -> Result<String, Stop> {
    let from = reader.at();
    while reader
        .peek_char()
        .await
        .is_some_and(|c| c.is_ascii_digit() || matches!(c, '-' | '+' | '.' | 'e' | 'E'))
    {
        reader.skip(1);
    }
    if reader.is_end().await {
        return Err(Stop::Ended);
    }
    let mut text = reader.since(from);
    if text.ends_with('.') {
        text.push('0');
    }
    let text = text.replace(".e", ".0e").replace("-.", "-0.");
    serde_json::from_str::<serde_json::Number>(&text).map(|_| text).map_err(|_| Stop::Broken)
}

async fn word(reader: &mut Reader) -> Result<&'static str, Stop> {
    let from = reader.at();
    while reader.peek_char().await.is_some_and(|c| c.is_ascii_alphabetic()) {
        reader.skip(1);
    }
    let word = match reader.since(from).as_str() {
        "True" | "true" => "true",
        "False" | "false" => "false",
        "None" | "null" => "null",
        _ => return Err(if reader.is_end().await { Stop::Ended } else { Stop::Broken }),
    };
    Ok(word)
}
