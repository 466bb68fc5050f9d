//! One step: a forward pass for many replies, the masks found meanwhile, and the tokens drawn.

use std::time::{Duration, Instant};

use rayon::prelude::*;

use super::reply::{End, Reply, guarded};
use crate::{
    backend::error::BackendError,
    engine::{MatchError, Matcher, fill_masks},
    generate::GenerateError,
    logits::Logits,
    model::{ModelError, SequenceId, Session},
    token::{TokenId, TokenMask},
};

/// What is fed to one reply.
pub(super) struct Part<'a> {
    pub(super) reply: &'a mut Reply,
    pub(super) sequence: SequenceId,
    /// How many of its pending tokens. A token is drawn when these are all.
    pub(super) count: usize,
}

/// What came of a step.
pub(super) struct Outcome {
    /// Tokens fed.
    pub(super) fed: usize,
    /// Time of the forward pass.
    pub(super) pass: Duration,
    /// Time of the masks, where there were any.
    pub(super) masks: Option<Duration>,
    /// Which parts' replies end, and why.
    pub(super) ends: Vec<(usize, End)>,
}

/// Whether a token is drawn after what a reply is fed, and from what.
enum Draw {
    No,
    Free,
    Masked,
}

/// Runs a step.
///
/// # Errors
///
/// The forward pass failed, for all.
pub(super) fn run(session: &mut dyn Session, parts: &mut [Part<'_>]) -> Result<Outcome, BackendError> {
    let mut work = Vec::new();
    let mut matchers = Vec::new();
    let mut draws = Vec::new();
    for part in parts.iter_mut() {
        let (pending, matcher) = part.reply.draft.parts();
        work.push((part.sequence, &pending[..part.count]));
        let matcher = matcher.filter(|_| part.count == pending.len());
        draws.push(match &matcher {
            _ if part.count < pending.len() => Draw::No,
            None => Draw::Free,
            Some(_) => Draw::Masked,
        });
        matchers.extend(matcher);
    }
    let ((rows, pass), masks) = if matchers.is_empty() {
        (feed(session, &work), None)
    } else {
        let mut found = None;
        let fed = rayon::in_place_scope(|scope| {
            scope.spawn(|_| found = Some(find(&mut matchers)));
            feed(session, &work)
        });
        (fed, found)
    };
    let rows = rows?;
    if rows.len() != work.len() {
        let reason = format!("the model returned {} rows of logits for {} sequences", rows.len(), work.len());
        return Err(ModelError::Device(reason).into());
    }

    let (masks, mask_time) = masks.unzip();
    let mut masks = masks.unwrap_or_default().into_iter();
    let draws = draws.into_iter().map(|draw| match draw {
        Draw::No => None,
        Draw::Free => Some(Ok(None)),
        Draw::Masked => Some(masks.next().unwrap_or(Err(MatchError::DeadEnd)).map(Some)),
    });
    let mut turns: Vec<_> = parts.iter_mut().zip(&rows).zip(draws).collect();
    let turn = |((part, row), draw): &mut ((&mut Part<'_>, &Logits<'_>), Option<Result<_, _>>)| {
        part.reply.draft.read(part.count, pass);
        let mask: Option<TokenMask> = match draw.take()? {
            Ok(mask) => mask,
            Err(error) => return Some(failed(error)),
        };
        part.reply.draw(row, mask.as_ref()).err()
    };
    // Replies know nothing of each other.
    let ends: Vec<Option<End>> = if turns.len() == 1 {
        turns.iter_mut().map(turn).collect()
    } else {
        turns.par_iter_mut().map(turn).collect()
    };
    Ok(Outcome {
        fed: parts.iter().map(|part| part.count).sum(),
        pass,
        masks: mask_time,
        ends: ends.into_iter().enumerate().filter_map(|(index, end)| Some((index, end?))).collect(),
    })
}

type Timed<T> = (T, Duration);

fn feed<'s>(
    session: &'s mut dyn Session,
    work: &[(SequenceId, &[TokenId])],
) -> Timed<Result<Vec<Logits<'s>>, BackendError>> {
    let start = Instant::now();
    let rows = guarded("the model", || session.feed(work));
    (rows, start.elapsed())
}

fn find(matchers: &mut [&mut Matcher]) -> Timed<Vec<Result<TokenMask, MatchError>>> {
    let (start, mut masks) = (Instant::now(), Vec::new());
    fill_masks(matchers, &mut masks);
    (masks, start.elapsed())
}

fn failed(error: MatchError) -> End {
    match error {
        // Only a reader that leaves cancels.
        MatchError::Cancelled => End::Gone,
        error => End::Failed(GenerateError::from(error).into()),
    }
}
