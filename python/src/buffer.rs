//! Writing into arrays of others: numpy's, or torch's on the host. The one file with `unsafe`.
//!
//! An array is lent by Python's buffer protocol, which keeps its memory in place until the buffer is released. Whoever
//! hands an array over mustn't use it on another thread until the call returns, as with any function of numpy's that
//! lets other threads run.
#![allow(unsafe_code)]

use pyo3::{
    buffer::{Element, PyBuffer},
    exceptions::{PyIndexError, PyTypeError, PyValueError},
    prelude::*,
};

/// Rows of an array: one where it has one dimension, otherwise the first of two.
pub(crate) struct Rows<T: Element> {
    buffer: PyBuffer<T>,
    /// Number of rows.
    pub(crate) count: usize,
    /// Elements of one.
    pub(crate) width: usize,
}

impl<T: Element> Rows<T> {
    /// Borrows a writable, contiguous array of one or two dimensions.
    pub(crate) fn of(array: &Bound<'_, PyAny>, what: &str) -> PyResult<Self> {
        let buffer = match PyBuffer::get(array) {
            Ok(buffer) => buffer,
            // A tensor of torch's isn't lent by itself, but numpy's view of it is.
            Err(error) => match array.call_method0("numpy") {
                Ok(view) => PyBuffer::get(&view)?,
                Err(reason) if array.hasattr("data_ptr")? => return Err(reason),
                Err(_) => return Err(PyTypeError::new_err(format!("{what}: {error}"))),
            },
        };
        let (count, width) = match *buffer.shape() {
            [width] => (1, width),
            [count, width] => (count, width),
            _ => return Err(PyValueError::new_err(format!("{what} must have one or two dimensions"))),
        };
        if buffer.readonly() || !buffer.is_c_contiguous() {
            return Err(PyValueError::new_err(format!("{what} must be writable and contiguous")));
        }
        Ok(Self { buffer, count, width })
    }

    /// Refuses an index past the rows.
    pub(crate) fn check(&self, row: usize) -> PyResult<()> {
        if row < self.count {
            return Ok(());
        }
        Err(PyIndexError::new_err(format!("row {row} of an array of {}", self.count)))
    }

    /// A row, which is there.
    #[allow(clippy::mut_from_ref)]
    pub(crate) fn row(&self, row: usize) -> &mut [T] {
        assert!(row < self.count, "rows are checked before");
        let start = self.buffer.buf_ptr().cast::<T>();
        // SAFETY: the buffer is contiguous and has `count * width` elements of `T`, which `PyBuffer::get` has checked,
        // alignment included; it is kept until `self` is dropped. Each caller of this crate takes a row once at a
        // time, and other users of the array are the caller's to keep away, as the module says.
        unsafe { std::slice::from_raw_parts_mut(start.add(row * self.width), self.width) }
    }
}

impl Rows<i32> {
    /// An array of masks, wide enough for `words` a row.
    pub(crate) fn of_masks(array: &Bound<'_, PyAny>, words: usize) -> PyResult<Self> {
        let rows = Self::of(array, "the array of masks (int32)")?;
        if rows.width < words {
            let width = rows.width;
            return Err(PyValueError::new_err(format!(
                "a row of {width} words can't hold a mask of {words}"
            )));
        }
        Ok(rows)
    }

    /// A row as unsigned words.
    #[allow(clippy::mut_from_ref)]
    pub(crate) fn words(&self, row: usize) -> &mut [u32] {
        let row = self.row(row);
        // SAFETY: `u32` has the layout of `i32`, and every value of one is one of the other.
        unsafe { std::slice::from_raw_parts_mut(row.as_mut_ptr().cast(), row.len()) }
    }
}

/// Makes logits (float32) minus infinity where the masks of their rows (int32, packed) don't allow, and past them.
#[pyfunction]
pub(crate) fn apply_rows(
    py: Python<'_>,
    logits: &Bound<'_, PyAny>,
    masks: &Bound<'_, PyAny>,
) -> PyResult<()> {
    let logits = Rows::<f32>::of(logits, "the logits (float32)")?;
    let masks = Rows::<i32>::of(masks, "the masks (int32)")?;
    if logits.count != masks.count {
        let (rows, given) = (logits.count, masks.count);
        return Err(PyValueError::new_err(format!("{rows} rows of logits, but {given} masks")));
    }
    py.detach(|| {
        for row in 0..logits.count {
            apply(logits.row(row), masks.words(row));
        }
    });
    Ok(())
}

fn apply(logits: &mut [f32], words: &[u32]) {
    let known = logits.len().min(words.len() * 32);
    let (inside, past) = logits.split_at_mut(known);
    past.fill(f32::NEG_INFINITY);
    for (part, &word) in inside.chunks_mut(32).zip(words) {
        match word {
            0 => part.fill(f32::NEG_INFINITY),
            u32::MAX => {}
            _ => {
                for (bit, logit) in part.iter_mut().enumerate() {
                    if word & (1 << bit) == 0 {
                        *logit = f32::NEG_INFINITY;
                    }
                }
            }
        }
    }
}
