//! What every model must do, as checks to run on any of them.
//!
//! Each check feeds a model and returns what is wrong, in words. They aren't a test of a model's quality, only of its
//! bookkeeping: that logits follow from a sequence's tokens and from nothing else.

use super::{Model, ModelError, SequenceId, Session};
use crate::token::TokenId;

/// How closely rows of logits must agree that were computed in different ways.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Agreement {
    /// In every bit: for kernels that treat each row the same, however many there are.
    Exact,
    /// Each logit within this distance: for float weights.
    Within(f32),
    /// The same best token: for quantised kernels that depend on the number of rows.
    Best,
}

impl Agreement {
    fn check(self, what: &str, expected: &[f32], given: &[f32]) -> Result<(), String> {
        if expected.len() != given.len() {
            return Err(format!("{what}: {} logits, expected {}", given.len(), expected.len()));
        }
        if let Some(bad) = given.iter().position(|x| x.is_nan()) {
            return Err(format!("{what}: logit {bad} is not a number"));
        }
        let agrees = match self {
            Self::Exact => expected.iter().zip(given).all(|(a, b)| a.to_bits() == b.to_bits()),
            Self::Within(distance) => expected.iter().zip(given).all(|(a, b)| (a - b).abs() <= distance),
            Self::Best => best(expected) == best(given),
        };
        if agrees {
            return Ok(());
        }
        let worst = expected.iter().zip(given).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        let best = (best(expected), best(given));
        Err(format!("{what}: logits differ by up to {worst}, best tokens are {} and {}", best.0, best.1))
    }
}

fn best(row: &[f32]) -> usize {
    (0..row.len()).fold(0, |best, i| if row[i] > row[best] { i } else { best })
}

fn say(what: &str) -> impl Fn(ModelError) -> String + '_ {
    move |error| format!("{what}: {error}")
}

/// Feeds some sequences of a session; a row for each.
fn feed(
    session: &mut dyn Session,
    what: &str,
    work: &[(SequenceId, &[TokenId])],
) -> Result<Vec<Vec<f32>>, String> {
    let rows = session.feed(work).map_err(say(what))?;
    if rows.len() != work.len() {
        return Err(format!("{what}: {} rows for {} sequences", rows.len(), work.len()));
    }
    rows.iter().map(|row| Ok(row.to_host()?.into_owned())).collect()
}

/// The row after feeding all tokens to a fresh sequence at once.
fn fresh(model: &dyn Model, tokens: &[TokenId]) -> Result<Vec<f32>, String> {
    let mut decoder = model.open().map_err(say("opening a sequence"))?;
    let row = decoder.feed(tokens).map_err(say("feeding a fresh sequence"))?;
    Ok(row.to_host()?.into_owned())
}

/// All checks below. `tokens` are at least eight, within the model's context and width.
///
/// # Errors
/// The first thing that is wrong.
pub fn all(model: &dyn Model, tokens: &[TokenId], agreement: Agreement) -> Result<(), String> {
    width_is_as_declared(model, tokens)?;
    split_feeding_agrees_with_whole(model, tokens, agreement)?;
    sequences_do_not_disturb_each_other(model, tokens, agreement)?;
    steps_of_many_sequences_agree_with_separate_ones(model, tokens, agreement)?;
    truncated_sequence_is_like_a_fresh_one(model, tokens, agreement)?;
    forked_sequence_is_like_a_fresh_one(model, tokens, agreement)?;
    removed_sequence_leaves_others_alone(model, tokens, agreement)?;
    refused_step_changes_nothing(model, tokens, agreement)
}

/// Rows are as wide as the card says.
///
/// # Errors
/// Says how wide they are.
pub fn width_is_as_declared(model: &dyn Model, tokens: &[TokenId]) -> Result<(), String> {
    let (given, declared) = (fresh(model, tokens)?.len(), model.card().width);
    if given == declared {
        Ok(())
    } else {
        Err(format!("rows have {given} logits, the card says {declared}"))
    }
}

/// Feeding tokens in two parts, at every place, and one by one, is like feeding them at once.
///
/// # Errors
/// Names the division that differs.
pub fn split_feeding_agrees_with_whole(
    model: &dyn Model,
    tokens: &[TokenId],
    agreement: Agreement,
) -> Result<(), String> {
    let whole = fresh(model, tokens)?;
    for at in 1..tokens.len() {
        let mut decoder = model.open().map_err(say("opening a sequence"))?;
        decoder.feed(&tokens[..at]).map_err(say("feeding the first part"))?;
        let row =
            decoder.feed(&tokens[at..]).map_err(say("feeding the second part"))?.to_host()?.into_owned();
        agreement.check(&format!("divided after {at} of {} tokens", tokens.len()), &whole, &row)?;
        if decoder.len() != tokens.len() {
            return Err(format!("after {} tokens the length is {}", tokens.len(), decoder.len()));
        }
    }
    let mut decoder = model.open().map_err(say("opening a sequence"))?;
    let mut row = Vec::new();
    for token in tokens {
        row = decoder.feed(&[*token]).map_err(say("feeding one token"))?.to_host()?.into_owned();
    }
    agreement.check("one by one", &whole, &row)
}

/// Sequences fed by turns, in one session and in two, are as if each were alone.
///
/// # Errors
/// Names the sequence that was disturbed.
pub fn sequences_do_not_disturb_each_other(
    model: &dyn Model,
    tokens: &[TokenId],
    agreement: Agreement,
) -> Result<(), String> {
    let backwards: Vec<_> = tokens.iter().rev().copied().collect();
    let alone = [fresh(model, tokens)?, fresh(model, &backwards)?];
    let half = tokens.len() / 2;

    let mut session = model.session().map_err(say("opening a session"))?;
    let ids = [session.add().map_err(say("adding"))?, session.add().map_err(say("adding"))?];
    let mut other = model.session().map_err(say("opening a second session"))?;
    let far = other.add().map_err(say("adding"))?;
    let mut rows = Vec::new();
    for part in [0..half, half..tokens.len()] {
        rows.clear();
        rows.push(feed(&mut *session, "the first sequence", &[(ids[0], &tokens[part.clone()])])?.remove(0));
        rows.push(
            feed(&mut *session, "the second sequence", &[(ids[1], &backwards[part.clone()])])?.remove(0),
        );
        rows.push(feed(&mut *other, "another session", &[(far, &backwards[part])])?.remove(0));
    }
    agreement.check("the first of two sequences in a session", &alone[0], &rows[0])?;
    agreement.check("the second of two sequences in a session", &alone[1], &rows[1])?;
    agreement.check("a sequence in a second session", &alone[1], &rows[2])
}

/// One step that feeds several sequences different numbers of tokens at different lengths, in any order, is like
/// a step for each.
///
/// # Errors
/// Names the sequence whose row differs.
pub fn steps_of_many_sequences_agree_with_separate_ones(
    model: &dyn Model,
    tokens: &[TokenId],
    agreement: Agreement,
) -> Result<(), String> {
    let mut session = model.session().map_err(say("opening a session"))?;
    let starts = [0, 1, tokens.len() / 2, tokens.len() - 1];
    let mut ids = Vec::new();
    for start in starts {
        let id = session.add().map_err(say("adding"))?;
        if start > 0 {
            feed(&mut *session, "feeding the start", &[(id, &tokens[..start])])?;
        }
        ids.push(id);
    }
    let work: Vec<_> = ids.iter().zip(starts).map(|(&id, start)| (id, &tokens[start..])).rev().collect();
    let whole = fresh(model, tokens)?;
    for (row, start) in feed(&mut *session, "a step of four", &work)?.iter().zip(starts.iter().rev()) {
        agreement.check(&format!("in a step of four, the sequence of {start} tokens"), &whole, row)?;
    }
    if feed(&mut *session, "a step of none", &[])?.is_empty() {
        Ok(())
    } else {
        Err("a step of no sequences returned rows".into())
    }
}

/// A sequence cut at any place and fed anew is like one that was never longer; cutting past the end does nothing.
///
/// # Errors
/// Names the place.
pub fn truncated_sequence_is_like_a_fresh_one(
    model: &dyn Model,
    tokens: &[TokenId],
    agreement: Agreement,
) -> Result<(), String> {
    let whole = fresh(model, tokens)?;
    let backwards: Vec<_> = tokens.iter().rev().copied().collect();
    let mut decoder = model.open().map_err(say("opening a sequence"))?;
    for keep in 0..tokens.len() {
        decoder.truncate(0).map_err(say("cutting to nothing"))?;
        if keep > 0 {
            decoder.feed(&tokens[..keep]).map_err(say("feeding what is kept"))?;
        }
        decoder.feed(&backwards).map_err(say("feeding what is cut off"))?;
        decoder.truncate(keep).map_err(say("cutting"))?;
        decoder.truncate(keep + 1).map_err(say("cutting past the end"))?;
        if decoder.len() != keep {
            return Err(format!("cut to {keep} tokens, the length is {}", decoder.len()));
        }
        let row = decoder.feed(&tokens[keep..]).map_err(say("feeding the rest"))?.to_host()?.into_owned();
        agreement.check(&format!("cut to {keep} tokens and fed the rest"), &whole, &row)?;
    }
    Ok(())
}

/// A sequence forked from another at any length and fed anew is like one of its own; the other goes on as if nothing
/// had happened, and either may end before the other.
///
/// # Errors
/// Names the place, or says what became of the other sequence.
pub fn forked_sequence_is_like_a_fresh_one(
    model: &dyn Model,
    tokens: &[TokenId],
    agreement: Agreement,
) -> Result<(), String> {
    let whole = fresh(model, tokens)?;
    let turned = |keep: usize| -> Vec<TokenId> {
        tokens[..keep].iter().chain(tokens[keep..].iter().rev()).copied().collect()
    };
    for keep in 0..tokens.len() {
        let other = turned(keep);
        let mut session = model.session().map_err(say("opening a session"))?;
        let first = session.add().map_err(say("adding"))?;
        let long = if keep + 1 < tokens.len() { keep + 1 } else { keep };
        if long > 0 {
            feed(&mut *session, "feeding the first", &[(first, &tokens[..long])])?;
        }
        let fork = session.fork(first, keep).map_err(say("forking"))?;
        if (session.len(first), session.len(fork)) != (long, keep) || first == fork {
            return Err(format!("forked at {keep} of {long} tokens, the fork has {}", session.len(fork)));
        }
        let work: [(_, &[TokenId]); 2] = [(fork, &other[keep..]), (first, &tokens[long..])];
        let rows = feed(&mut *session, "feeding both", &work)?;
        agreement.check(&format!("forked at {keep} tokens"), &fresh(model, &other)?, &rows[0])?;
        agreement.check(&format!("the sequence that was forked at {keep} tokens"), &whole, &rows[1])?;

        let late = session.fork(first, usize::MAX).map_err(say("forking the whole"))?;
        session.remove(first);
        session.truncate(late, keep).map_err(say("cutting a fork"))?;
        let rows = feed(&mut *session, "feeding a fork of what is gone", &[(late, &tokens[keep..])])?;
        agreement.check("the fork of a removed sequence", &whole, &rows[0])?;
    }
    let mut session = model.session().map_err(say("opening a session"))?;
    match session.fork(SequenceId(usize::MAX), 0) {
        Err(ModelError::Misuse(_)) => Ok(()),
        other => Err(format!("a sequence that isn't there was forked: {other:?}")),
    }
}

/// Removing a sequence neither changes nor renames the others, and its id means nothing any more.
///
/// # Errors
/// Says what became of the others.
pub fn removed_sequence_leaves_others_alone(
    model: &dyn Model,
    tokens: &[TokenId],
    agreement: Agreement,
) -> Result<(), String> {
    let (start, rest) = tokens.split_at(tokens.len() / 2);
    let mut session = model.session().map_err(say("opening a session"))?;
    let gone = session.add().map_err(say("adding"))?;
    let kept = session.add().map_err(say("adding"))?;
    feed(&mut *session, "feeding two", &[(gone, tokens), (kept, start)])?;
    session.remove(gone);
    let late = session.add().map_err(say("adding after a removal"))?;
    let rows = feed(&mut *session, "feeding after a removal", &[(late, tokens), (kept, rest)])?;
    let whole = fresh(model, tokens)?;
    agreement.check("a sequence added after a removal", &whole, &rows[0])?;
    agreement.check("a sequence beside a removed one", &whole, &rows[1])?;
    let refused = session.feed(&[(gone, tokens)]).map(|rows| rows.len());
    match refused {
        Err(ModelError::Misuse(_)) if session.len(gone) == 0 => Ok(()),
        other => Err(format!("a removed sequence was fed: {other:?}")),
    }
}

/// A step that can't be done is refused with its own error and changes no sequence, not even one that could be fed.
///
/// # Errors
/// Names the step and what came of it.
pub fn refused_step_changes_nothing(
    model: &dyn Model,
    tokens: &[TokenId],
    agreement: Agreement,
) -> Result<(), String> {
    let card = model.card();
    let (start, rest) = tokens.split_at(tokens.len() / 2);
    let mut session = model.session().map_err(say("opening a session"))?;
    let ids = [session.add().map_err(say("adding"))?, session.add().map_err(say("adding"))?];
    feed(&mut *session, "feeding two", &[(ids[0], start), (ids[1], start)])?;

    let long = vec![tokens[0]; card.context - start.len() + 1];
    let past = [TokenId::try_from(card.width).map_err(|e| e.to_string())?];
    type Case<'a> = (&'a str, &'a [(SequenceId, &'a [TokenId])], fn(&ModelError) -> bool);
    let refused: [Case<'_>; 5] = [
        ("more tokens than the context takes", &[(ids[0], rest), (ids[1], &long)], |e| {
            matches!(e, ModelError::ContextFull { .. })
        }),
        ("a token past the model's last", &[(ids[0], rest), (ids[1], &past)], |e| {
            matches!(e, ModelError::TokenOutOfRange { .. })
        }),
        ("no tokens", &[(ids[0], rest), (ids[1], &[])], |e| matches!(e, ModelError::Misuse(_))),
        ("one sequence twice", &[(ids[0], rest), (ids[0], rest)], |e| matches!(e, ModelError::Misuse(_))),
        ("a sequence that isn't there", &[(ids[0], rest), (SequenceId(usize::MAX), rest)], |e| {
            matches!(e, ModelError::Misuse(_))
        }),
    ];
    for (what, work, right) in refused {
        match session.feed(work) {
            Err(error) if right(&error) => {}
            Err(error) => return Err(format!("{what}: the error is {error:?}")),
            Ok(_) => return Err(format!("{what}: no error")),
        }
        if ids.iter().any(|&id| session.len(id) != start.len()) {
            return Err(format!("{what}: refused, but a sequence grew"));
        }
    }
    let whole = fresh(model, tokens)?;
    for row in feed(&mut *session, "feeding after refusals", &[(ids[0], rest), (ids[1], rest)])? {
        agreement.check("after refused steps", &whole, &row)?;
    }
    Ok(())
}
