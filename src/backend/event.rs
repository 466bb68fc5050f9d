//! What a backend answers.

use crate::{
    generate::{Finish, TokenDetail},
    token::TokenId,
};

/// A part of a reply.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// Text.
    Text(String),
    /// A special token that isn't a stop token.
    Marker(TokenId),
    /// A token of the reply; for log-probabilities and counts.
    Token(TokenDetail),
    /// The end; always the last event, and there is always one unless an error came.
    Finished(Finish),
}

/// A whole reply: the fold of its events.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// Its text.
    pub text: String,
    /// Its tokens.
    pub tokens: Vec<TokenDetail>,
    /// How it ended.
    pub finish: Finish,
}

impl Reply {
    /// Folds events into a reply.
    ///
    /// # Errors
    ///
    /// The first error among the events; `ended` when they stop without [`Event::Finished`].
    pub fn collect<E>(events: impl IntoIterator<Item = Result<Event, E>>, ended: E) -> Result<Self, E> {
        let mut text = String::new();
        let mut tokens = Vec::new();
        for event in events {
            match event? {
                Event::Text(more) => text.push_str(&more),
                Event::Token(token) => tokens.push(token),
                Event::Marker(_) => {}
                Event::Finished(finish) => return Ok(Self { text, tokens, finish }),
            }
        }
        Err(ended)
    }
}
