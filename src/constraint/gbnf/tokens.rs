//! Token items: from a token's name to ids of one vocabulary.
//!
//! Lowering knows text only, so it leaves each token item as a rule without a definition. A vocabulary adds them:
//! `<text>` becomes an id, and `!<…>` every token but that and those that end a text or stand for nothing. The
//! engine follows only one token item for a token, so that items are made of parts that share no token.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::ast::{TokenItem, TokenName};
use super::error::{GbnfError, GbnfErrorKind, Place};

/// What a token is to a grammar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenRole {
    /// Bytes of ordinary text.
    Text,
    /// Something that no text stands for, such as `<think>`.
    Special,
    /// It ends a text or a turn.
    Stop,
    /// It stands for nothing: an unused id.
    Unused,
}

/// The tokens of a vocabulary, as far as token items need them.
pub trait TokenNames {
    /// Number of tokens: ids are `0..size()`.
    fn size(&self) -> u32;
    /// The token which alone has this text, angle brackets included.
    fn id(&self, text: &str) -> Option<u32>;
    /// What a token is.
    fn role(&self, id: u32) -> TokenRole;
}

/// A token item of a lowered grammar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenUse {
    /// The item as written.
    pub item: TokenItem,
    /// Where it stands first.
    pub place: Place,
    /// Whether text may stand, or go on, where the item may. Then it can't be a token of ordinary text: the engine
    /// would take every such token for the item.
    pub at_text: bool,
}

/// Whether some token may be taken by both items. Without a vocabulary an id may be any text's.
pub(super) fn may_meet(a: &TokenItem, b: &TokenItem) -> bool {
    let same = a.name == b.name;
    let apart = matches!(
        (&a.name, &b.name),
        (TokenName::Id(_), TokenName::Id(_)) | (TokenName::Text(_), TokenName::Text(_))
    ) && !same;
    match (a.negated, b.negated) {
        (true, true) => true,
        (false, false) => !apart,
        _ => !same,
    }
}

/// The definitions of rules `t0`, `t1`, … for token items.
pub(super) fn definitions(uses: &[TokenUse], names: &dyn TokenNames) -> Result<String, GbnfError> {
    let ids: Vec<u32> = uses.iter().map(|token| find(token, names)).collect::<Result<_, _>>()?;
    let named: BTreeSet<u32> = ids.iter().copied().filter(|&id| usable(names.role(id))).collect();
    let mut text = String::new();
    let rest = others(&named, names);
    for (number, (token, id)) in uses.iter().zip(&ids).enumerate() {
        let mut parts: Vec<String> = Vec::new();
        if token.item.negated {
            parts.extend(named.iter().filter(|other| *other != id).map(|other| format!("<[{other}]>")));
            parts.extend(rest.clone());
        } else {
            parts.push(format!("<[{id}]>"));
        }
        if parts.is_empty() {
            let kind = GbnfErrorKind::UnknownToken(token.item.to_string());
            return Err(GbnfError::new(token.place, kind));
        }
        // Writing to a string can't fail.
        let _ = writeln!(text, "t{number}: {}", parts.join(" | "));
    }
    Ok(text)
}

fn find(token: &TokenUse, names: &dyn TokenNames) -> Result<u32, GbnfError> {
    let error =
        |kind: fn(String) -> GbnfErrorKind| Err(GbnfError::new(token.place, kind(token.item.to_string())));
    let id = match &token.item.name {
        TokenName::Id(id) => (*id < names.size()).then_some(*id),
        TokenName::Text(text) => names.id(text),
    };
    let Some(id) = id else {
        return error(GbnfErrorKind::UnknownToken);
    };
    match names.role(id) {
        _ if token.item.negated => Ok(id),
        TokenRole::Stop => error(GbnfErrorKind::StopToken),
        TokenRole::Unused => error(GbnfErrorKind::UnknownToken),
        TokenRole::Text if token.at_text => error(GbnfErrorKind::TokenOverlap),
        TokenRole::Text | TokenRole::Special => Ok(id),
    }
}

fn usable(role: TokenRole) -> bool {
    matches!(role, TokenRole::Text | TokenRole::Special)
}

/// All usable tokens that no item names, as one item of the engine's grammar; nothing if there is none.
fn others(named: &BTreeSet<u32>, names: &dyn TokenNames) -> Option<String> {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for id in (0..names.size()).filter(|id| usable(names.role(*id)) && !named.contains(id)) {
        match ranges.last_mut() {
            Some(last) if last.1 + 1 == id => last.1 = id,
            _ => ranges.push((id, id)),
        }
    }
    let ranges: Vec<String> = ranges
        .iter()
        .map(|&(from, to)| if from == to { format!("{from}") } else { format!("{from}-{to}") })
        .collect();
    (!ranges.is_empty()).then(|| format!("<[{}]>", ranges.join(",")))
}
