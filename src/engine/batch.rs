//! The masks of many sequences at once, on as many threads as there are cores to spare.
//!
//! Masks that are known are handed out on the spot. The others are found by lexer: sequences that share one would
//! only wait for each other on different threads.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Mutex, PoisonError},
};

use super::{error::MatchError, matcher::Matcher};
use crate::token::{TokenId, TokenMask};

/// Fewer masks to find than this aren't worth a second thread.
const WORTH_IT: usize = 4;

/// Puts the masks of `matchers` into `masks`, in their order; what was in there is dropped.
///
/// Each is what [`Matcher::mask`] gives, an error of one matcher included, which is of no concern to the others. Runs on
/// rayon's current pool of threads.
///
/// ```
/// use maskwright::{Compiler, Constraint, Limits, Vocabulary, engine::fill_masks};
/// let limits = Limits::default();
/// let compiler = Compiler::new(Vocabulary::single_bytes(), limits.clone())?;
/// let compiled = compiler.compile(&Constraint::Regex("[ab]{3}".into()).to_grammar(&limits)?)?;
/// let (mut one, mut two) = (compiled.matcher(), compiled.matcher());
/// two.commit(&[u32::from(b'a'); 3])?;
/// let mut masks = Vec::new();
/// fill_masks(&mut [&mut one, &mut two], &mut masks);
/// assert_eq!(masks[0].as_ref().map(|mask| mask.count()), Ok(2));
/// assert_eq!(masks[1].as_ref().map(|mask| mask.count()), Ok(1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn fill_masks(matchers: &mut [&mut Matcher], masks: &mut Vec<Result<TokenMask, MatchError>>) {
    masks.clear();
    let mut unknown = Vec::new();
    for (index, matcher) in matchers.iter_mut().enumerate() {
        let known = guarded(|| matcher.known_mask().transpose());
        masks.push(known.transpose().unwrap_or_else(|| {
            unknown.push(index);
            Err(MatchError::DeadEnd) // until it's found
        }));
    }
    if unknown.is_empty() {
        return;
    }
    let mut unknown = unknown.into_iter().peekable();
    let mut open: Vec<Open<'_>> = matchers
        .iter_mut()
        .zip(masks.iter_mut())
        .enumerate()
        .filter(|(index, _)| unknown.next_if_eq(index).is_some())
        .map(|(_, (matcher, mask))| Open { lexer: matcher.sit_down(), matcher, mask })
        .collect();
    if open.len() < WORTH_IT {
        open.iter_mut().for_each(Open::find);
        return;
    }
    open.sort_by_key(|open| open.lexer);
    let mut groups: Vec<&mut [Open<'_>]> = open.chunk_by_mut(|a, b| a.lexer == b.lexer).collect();
    share_out(&mut groups, |group| group.iter_mut().for_each(Open::find));
}

/// Commits a token to each of `matchers`, as [`Matcher::commit`] does, and puts what comes of it into `results`, in their
/// order; what was in there is dropped.
///
/// Each matcher is best committed to where its mask is found: so this is quicker than committing on one thread, and so are
/// the masks after it.
///
/// # Panics
///
/// There aren't as many `ids` as matchers.
pub fn commit_each(
    matchers: &mut [&mut Matcher],
    ids: &[TokenId],
    results: &mut Vec<Result<(), MatchError>>,
) {
    assert_eq!(matchers.len(), ids.len(), "one token for each matcher");
    results.clear();
    results.resize(matchers.len(), Ok(()));
    let mut all: Vec<(Option<usize>, &mut Matcher, TokenId, &mut Result<(), MatchError>)> = matchers
        .iter_mut()
        .zip(ids)
        .zip(results)
        .map(|((matcher, &id), result)| (matcher.sit_down(), &mut **matcher, id, result))
        .collect();
    all.sort_by_key(|one| one.0);
    let mut groups: Vec<&mut [_]> = all.chunk_by_mut(|a, b| a.0 == b.0).collect();
    share_out(&mut groups, |group| {
        for (_, matcher, id, result) in group.iter_mut() {
            **result = guarded(|| matcher.commit(&[*id]));
        }
    });
}

/// Does all of `work` on the threads of rayon's current pool. Each begins with a part of its own, the same one in step after
/// step, for what the last step has left in its core's caches; who has finished takes from the end of what others have left.
fn share_out<T: Send>(work: &mut [T], each: impl Fn(&mut T) + Sync) {
    let threads = rayon::current_num_threads().clamp(1, work.len().max(1));
    let size = work.len().div_ceil(threads).max(1);
    let parts: Vec<Mutex<&mut [T]>> = work.chunks_mut(size).map(Mutex::new).collect();
    let take = |part: usize, from_end: bool| {
        let mut left = parts[part].lock().unwrap_or_else(PoisonError::into_inner);
        let (next, rest) = match from_end {
            false => std::mem::take(&mut *left).split_first_mut()?,
            true => std::mem::take(&mut *left).split_last_mut()?,
        };
        *left = rest;
        Some(next)
    };
    let help = || {
        let own = rayon::current_thread_index().unwrap_or(0) % parts.len();
        while let Some(next) = take(own, false) {
            each(next);
        }
        for other in (1..parts.len()).map(|ahead| (own + ahead) % parts.len()) {
            while let Some(next) = take(other, true) {
                each(next);
            }
        }
    };
    rayon::scope(|scope| {
        (1..parts.len()).for_each(|_| scope.spawn(|_| help()));
        help();
    });
}

/// A mask to be found.
struct Open<'a> {
    lexer: Option<usize>,
    matcher: &'a mut Matcher,
    mask: &'a mut Result<TokenMask, MatchError>,
}

impl Open<'_> {
    fn find(&mut self) {
        *self.mask = guarded(|| self.matcher.mask());
    }
}

/// Looks at one matcher, whose panic is of no concern to the others either.
fn guarded<T>(look: impl FnOnce() -> Result<T, MatchError>) -> Result<T, MatchError> {
    catch_unwind(AssertUnwindSafe(look))
        .unwrap_or_else(|_| Err(MatchError::Internal("a mask could not be found".into())))
}
