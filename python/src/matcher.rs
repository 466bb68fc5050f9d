//! `Matcher`, `Canceller` and `TokenMask`: one sequence under a constraint.
//!
//! A matcher stands behind a lock of its own. Nobody waits for it while attached to the interpreter, and nobody needs
//! the interpreter while holding it, so that the two can't wait for each other.

use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use maskwright::{TokenId, engine};
use pyo3::{exceptions::PyValueError, prelude::*};

use crate::{
    buffer::Rows,
    error::{Failure, Result},
};

/// The state of one sequence.
#[pyclass(frozen, module = "maskwright")]
pub(crate) struct Matcher {
    inner: Mutex<engine::Matcher>,
    /// Words of a mask.
    words: usize,
}

/// Cancels a matcher from any thread, even in the middle of a mask.
#[pyclass(frozen, module = "maskwright")]
pub(crate) struct Canceller(engine::Canceller);

/// Which tokens may come next.
#[pyclass(frozen, eq, module = "maskwright")]
#[derive(PartialEq)]
pub(crate) struct TokenMask(maskwright::TokenMask);

/// One token, or several.
#[derive(FromPyObject)]
pub(crate) enum Ids {
    One(TokenId),
    Many(Vec<TokenId>),
}

impl Ids {
    fn as_slice(&self) -> &[TokenId] {
        match self {
            Self::One(id) => std::slice::from_ref(id),
            Self::Many(ids) => ids,
        }
    }
}

impl Matcher {
    pub(crate) fn new(inner: engine::Matcher) -> Self {
        let words = inner.constraint().vocabulary().size().div_ceil(32);
        Self { inner: Mutex::new(inner), words }
    }

    fn lock(&self) -> MutexGuard<'_, engine::Matcher> {
        // A matcher stays as it was where something fails in it.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something with the matcher, detached.
    fn with<T: Send>(&self, py: Python<'_>, step: impl FnOnce(&mut engine::Matcher) -> T + Send) -> T {
        py.detach(|| step(&mut self.lock()))
    }

    /// The mask where it takes no work and no waiting to know it.
    fn known_mask(&self) -> Option<Result<maskwright::TokenMask>> {
        let mut matcher = match self.inner.try_lock() {
            Ok(matcher) => matcher,
            Err(TryLockError::Poisoned(error)) => error.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        Some(matcher.known_mask()?.map_err(Failure::from))
    }
}

#[pymethods]
impl Matcher {
    /// The tokens that may come next; stop tokens are among them exactly where the text may end.
    fn mask(&self, py: Python<'_>) -> Result<TokenMask> {
        let mask = match self.known_mask() {
            Some(mask) => mask?,
            None => self.with(py, engine::Matcher::mask)?,
        };
        Ok(TokenMask(mask))
    }

    /// Writes the mask into a row of an array of int32: numpy's, or torch's on the host.
    #[pyo3(signature = (out, row=0))]
    fn fill_mask(&self, py: Python<'_>, out: &Bound<'_, PyAny>, row: usize) -> PyResult<()> {
        let rows = Rows::of_masks(out, self.words)?;
        rows.check(row)?;
        match self.known_mask() {
            Some(mask) => mask?.write_words(rows.words(row)),
            None => py.detach(|| -> Result<()> {
                self.lock().mask()?.write_words(rows.words(row));
                Ok(())
            })?,
        }
        Ok(())
    }

    /// Takes tokens, all of them or none.
    fn commit(&self, py: Python<'_>, ids: Ids) -> Result<()> {
        Ok(self.with(py, |matcher| matcher.commit(ids.as_slice()))?)
    }

    /// How many of the tokens could be committed, one after the other.
    fn accepts(&self, py: Python<'_>, ids: Ids) -> Result<usize> {
        Ok(self.with(py, |matcher| matcher.accepts(ids.as_slice()))?)
    }

    /// Makes these the tokens of the sequence, as far as they are allowed and up to the first that ends the text; how
    /// many that is. What they share with the tokens before stays, the rest is taken back.
    fn follow(&self, py: Python<'_>, ids: Vec<TokenId>) -> Result<usize> {
        Ok(self.with(py, |matcher| follow(matcher, &ids))?)
    }

    /// Takes back the last tokens.
    fn rollback(&self, py: Python<'_>, tokens: usize) -> Result<()> {
        Ok(self.with(py, |matcher| matcher.rollback(tokens))?)
    }

    /// The tokens that must come next, whatever the model says. They aren't committed.
    fn forced(&self, py: Python<'_>) -> Result<Vec<TokenId>> {
        Ok(self.with(py, engine::Matcher::forced)?)
    }

    /// Whether the text may end here.
    fn is_accepting(&self, py: Python<'_>) -> Result<bool> {
        Ok(self.with(py, engine::Matcher::is_accepting)?)
    }

    /// Whether the text must end here, or has ended.
    fn is_complete(&self, py: Python<'_>) -> bool {
        self.with(py, |matcher| matcher.is_complete())
    }

    /// Whether a token that ends the text was committed.
    fn has_ended(&self, py: Python<'_>) -> bool {
        self.with(py, |matcher| has_ended(matcher))
    }

    /// The tokens committed so far.
    #[getter]
    fn tokens(&self, py: Python<'_>) -> Vec<TokenId> {
        self.with(py, |matcher| matcher.tokens().to_vec())
    }

    /// A matcher in the same state, which goes its own way from here.
    fn fork(&self, py: Python<'_>) -> Self {
        Self { inner: Mutex::new(self.with(py, engine::Matcher::fork)), words: self.words }
    }

    /// A handle that cancels this matcher from any thread.
    fn canceller(&self, py: Python<'_>) -> Canceller {
        Canceller(self.with(py, engine::Matcher::canceller))
    }
}

fn has_ended(matcher: &engine::Matcher) -> bool {
    let stops = matcher.constraint().vocabulary().stop_tokens();
    matcher.tokens().last().is_some_and(|id| stops.contains(id))
}

fn follow(matcher: &mut engine::Matcher, ids: &[TokenId]) -> std::result::Result<usize, engine::MatchError> {
    let own = matcher.tokens();
    let shared = own.iter().zip(ids).take_while(|(own, given)| own == given).count();
    let surplus = own.len() - shared;
    matcher.rollback(surplus)?;
    let mut taken = shared;
    while taken < ids.len() && !has_ended(matcher) {
        match matcher.commit(&ids[taken..=taken]) {
            Ok(()) => taken += 1,
            Err(engine::MatchError::Forbidden { .. }) => break,
            Err(error) => return Err(error),
        }
    }
    Ok(taken)
}

/// Writes the masks of many matchers into the rows of an array of int32, several threads at work where that pays: the
/// first matcher's into the first row, or each into the row that `rows` names.
#[pyfunction]
#[pyo3(signature = (matchers, out, rows=None))]
pub(crate) fn fill_masks(
    py: Python<'_>,
    matchers: Vec<Bound<'_, Matcher>>,
    out: &Bound<'_, PyAny>,
    rows: Option<Vec<usize>>,
) -> PyResult<()> {
    let words = matchers.iter().map(|matcher| matcher.get().words).max().unwrap_or(0);
    let array = Rows::of_masks(out, words)?;
    let rows = rows.unwrap_or_else(|| (0..matchers.len()).collect());
    if rows.len() != matchers.len() {
        let (matchers, rows) = (matchers.len(), rows.len());
        return Err(PyValueError::new_err(format!("{matchers} matchers, but {rows} rows")));
    }
    rows.iter().try_for_each(|&row| array.check(row))?;
    let mut work: Vec<(&Matcher, usize)> = matchers.iter().map(Bound::get).zip(rows).collect();
    // Locks are taken in one order by everybody.
    work.sort_by_key(|(matcher, _)| std::ptr::from_ref(*matcher));
    if work.windows(2).any(|pair| std::ptr::eq(pair[0].0, pair[1].0)) {
        return Err(PyValueError::new_err("a matcher is given twice"));
    }
    py.detach(|| -> Result<()> {
        let mut locks: Vec<_> = work.iter().map(|(matcher, _)| matcher.lock()).collect();
        let mut open: Vec<&mut engine::Matcher> = locks.iter_mut().map(|lock| &mut **lock).collect();
        let mut masks = Vec::new();
        engine::fill_masks(&mut open, &mut masks);
        let mut failed = None;
        for (mask, (_, row)) in masks.into_iter().zip(&work) {
            match mask {
                Ok(mask) => mask.write_words(array.words(*row)),
                Err(error) => {
                    failed.get_or_insert_with(|| Failure::from(error).within(format!("row {row}")));
                }
            }
        }
        failed.map_or(Ok(()), Err)
    })?;
    Ok(())
}

#[pymethods]
impl Canceller {
    /// Makes every later call of the matcher fail with `CancelledError`.
    fn cancel(&self) {
        self.0.cancel();
    }

    /// Whether it was cancelled.
    fn is_cancelled(&self) -> bool {
        self.0.is_cancelled()
    }
}

impl TokenMask {
    pub(crate) fn new(mask: maskwright::TokenMask) -> Self {
        Self(mask)
    }
}

#[pymethods]
impl TokenMask {
    /// Whether a token may come next; false past the vocabulary.
    fn allows(&self, id: TokenId) -> bool {
        self.0.allows(id)
    }

    /// How many tokens may come next.
    fn count(&self) -> usize {
        self.0.count()
    }

    /// The one token that may come next, where there is exactly one.
    fn only(&self) -> Option<TokenId> {
        self.0.only()
    }

    /// The tokens that may come next.
    fn ids(&self) -> Vec<TokenId> {
        self.0.iter().collect()
    }

    /// Number of tokens of the vocabulary.
    #[getter]
    fn vocab(&self) -> usize {
        self.0.vocab()
    }

    /// Writes it into a row of an array of int32.
    #[pyo3(signature = (out, row=0))]
    fn write(&self, out: &Bound<'_, PyAny>, row: usize) -> PyResult<()> {
        let rows = Rows::of_masks(out, self.0.vocab().div_ceil(32))?;
        rows.check(row)?;
        self.0.write_words(rows.words(row));
        Ok(())
    }

    /// Makes logits of forbidden tokens, and those past the vocabulary, minus infinity: one row of float32.
    fn apply(&self, py: Python<'_>, logits: &Bound<'_, PyAny>) -> PyResult<()> {
        let rows = Rows::<f32>::of(logits, "the logits (float32)")?;
        py.detach(|| (0..rows.count).for_each(|row| self.0.apply(rows.row(row))));
        Ok(())
    }

    fn __contains__(&self, id: TokenId) -> bool {
        self.0.allows(id)
    }

    fn __repr__(&self) -> String {
        format!("TokenMask(count={}, vocab={})", self.0.count(), self.0.vocab())
    }
}
