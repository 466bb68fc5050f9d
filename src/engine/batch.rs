//! The masks of many sequences at once, on as many threads as there are cores to spare.
//!
//! Masks that are known are handed out on the spot. The others are found by lexer: sequences that share one would
//! only wait for each other on different threads.

use std::panic::{AssertUnwindSafe, catch_unwind};

use rayon::prelude::*;

use super::{error::MatchError, matcher::Matcher};
use crate::token::TokenMask;

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
    groups.par_iter_mut().for_each(|group| group.iter_mut().for_each(Open::find));
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
