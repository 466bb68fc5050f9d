//! Many sequences at once, on as many threads as there are cores to spare.
//!
//! Masks that are known are handed out on the spot. The others are found by lexer: sequences that share one would
//! only wait for each other on different threads.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use super::{error::MatchError, matcher::Matcher};
use crate::token::{TokenId, TokenMask};

/// To wake other threads takes longer than to find a mask, most times: so many sequences are worth it at once, fewer when
/// they have taken some time, and few never.
const MANY: usize = 16;
const FEW: usize = 4;
const SOME_TIME: Duration = Duration::from_micros(20);

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
    let all = matchers.iter_mut().zip(masks.iter_mut()).enumerate();
    let open = all.filter(|(index, _)| unknown.next_if_eq(index).is_some());
    let seated = open.map(|(_, (matcher, mask))| (matcher.sit_down(), (matcher, mask)));
    by_lexer(seated.collect(), |(matcher, mask)| **mask = guarded(|| matcher.mask()));
}

/// Commits a token to each of `matchers`, as [`Matcher::commit`] does, and puts what comes of it into `results`, in their
/// order; what was in there is dropped.
///
/// Each is committed to on the thread that finds its mask in [`fill_masks`], so that masks after it are found faster than
/// where one thread has committed all. Runs on rayon's current pool of threads.
///
/// ```
/// use maskwright::{Compiler, Constraint, Limits, Vocabulary, engine::{MatchError, commit_each}};
/// let limits = Limits::default();
/// let compiler = Compiler::new(Vocabulary::single_bytes(), limits.clone())?;
/// let compiled = compiler.compile(&Constraint::Regex("[ab]{3}".into()).to_grammar(&limits)?)?;
/// let (mut one, mut two) = (compiled.matcher(), compiled.matcher());
/// let mut results = Vec::new();
/// commit_each(&mut [&mut one, &mut two], &[u32::from(b'a'), u32::from(b'c')], &mut results);
/// assert_eq!(results, [Ok(()), Err(MatchError::Forbidden { index: 0, id: u32::from(b'c') })]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Panics
///
/// There aren't as many `ids` as matchers.
pub fn commit_each(
    matchers: &mut [&mut Matcher],
    ids: &[TokenId],
    results: &mut Vec<Result<(), MatchError>>,
) {
    assert_eq!(matchers.len(), ids.len(), "a token for each matcher");
    results.clear();
    results.resize(matchers.len(), Ok(()));
    let all = matchers.iter_mut().zip(ids).zip(results);
    let seated = all.map(|((matcher, id), result)| (matcher.lexer(), (matcher, id, result)));
    by_lexer(seated.collect(), |(matcher, id, result)| **result = guarded(|| matcher.commit(&[**id])));
}

/// Does all of `work`, each piece of which goes with a lexer, on the threads of rayon's current pool.
fn by_lexer<T: Send>(mut work: Vec<(Option<usize>, T)>, each: impl Fn(&mut T) + Sync) {
    if work.len() < FEW {
        work.iter_mut().for_each(|(_, work)| each(work));
        return;
    }
    work.sort_by_key(|(lexer, _)| *lexer);
    let alone = if work.len() < MANY { SOME_TIME } else { Duration::ZERO };
    let mut groups: Vec<&mut [_]> = work.chunk_by_mut(|(a, _), (b, _)| a.is_some() && a == b).collect();
    share_out(&mut groups, alone, |group| group.iter_mut().for_each(|(_, work)| each(work)));
}

/// Each thread begins with a part of its own, the same one in step after step as long as the work is: so it finds much in
/// its core's caches. Who has finished takes from the end of what others have left. Others are only called when this one has
/// been at it for some time, `alone`.
fn share_out<T: Send>(work: &mut [T], alone: Duration, each: impl Fn(&mut T) + Sync) {
    if let [only] = work {
        each(only);
    }
    if work.len() < 2 {
        return;
    }
    let threads = rayon::current_num_threads().clamp(1, work.len());
    let size = work.len().div_ceil(threads);
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
    let next = || {
        let own = rayon::current_thread_index().unwrap_or(0) % parts.len();
        let of_others = || (1..parts.len()).find_map(|ahead| take((own + ahead) % parts.len(), true));
        take(own, false).or_else(of_others)
    };
    rayon::in_place_scope(|scope| {
        let began = Instant::now();
        let mut missing = 1..parts.len();
        loop {
            if !missing.is_empty() && began.elapsed() >= alone {
                missing.by_ref().for_each(|_| scope.spawn(|_| std::iter::from_fn(next).for_each(&each)));
            }
            let Some(next) = next() else { break };
            each(next);
        }
    });
}

/// Looks at one matcher, whose panic is of no concern to the others either.
fn guarded<T>(look: impl FnOnce() -> Result<T, MatchError>) -> Result<T, MatchError> {
    catch_unwind(AssertUnwindSafe(look))
        .unwrap_or_else(|_| Err(MatchError::Internal("a mask could not be found".into())))
}

#[cfg(test)]
mod tests {
    use std::{sync::atomic::AtomicUsize, sync::atomic::Ordering, thread::ThreadId};

    use super::*;

    fn shared_out(threads: usize, pieces: usize, alone: Duration) -> Vec<(usize, Option<ThreadId>)> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let mut work = vec![(0, None); pieces];
        pool.install(|| {
            share_out(&mut work, alone, |(times, by)| {
                *times += 1;
                *by = Some(std::thread::current().id());
            });
        });
        work
    }

    #[test]
    fn every_piece_is_done_once_however_many_threads_there_are() {
        for threads in 1..5 {
            for pieces in [0, 1, 2, 3, 7, 64] {
                let done = shared_out(threads, pieces, Duration::ZERO);
                assert!(done.iter().all(|(times, _)| *times == 1), "{pieces} pieces, {threads} threads");
            }
        }
    }

    #[test]
    fn nobody_else_is_called_for_what_takes_no_time() {
        let done = shared_out(4, 64, Duration::from_secs(3600));
        assert!(done.iter().all(|(_, by)| *by == done[0].1));
    }

    #[test]
    fn others_help_with_what_takes_long() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
        let (at_work, mut work) = (AtomicUsize::new(0), [(); 2]);
        pool.install(|| {
            share_out(&mut work, Duration::ZERO, |()| {
                at_work.fetch_add(1, Ordering::SeqCst);
                // Each waits for the other: on one thread this would never end.
                while at_work.load(Ordering::SeqCst) < 2 {
                    std::thread::yield_now();
                }
            });
        });
    }
}
