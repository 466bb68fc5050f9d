from typing import Any

import numpy
import pytest

from maskwright import Compiler, apply_mask, apply_mask_

COLUMNS = 300


def expected(rows: list[list[int]], columns: int = COLUMNS) -> Any:
    kept = numpy.zeros((len(rows), columns), dtype=bool)
    for row, ids in enumerate(rows):
        kept[row, ids] = True
    return kept


@pytest.fixture
def masks(bytes_compiler: Compiler) -> tuple[Any, Any]:
    """Packed rows, and which columns they keep."""
    packed = numpy.empty((2, 9), dtype=numpy.int32)
    texts = ["[ab]", "[^a]"]
    kept = []
    for row, text in enumerate(texts):
        mask = bytes_compiler.regex(text).matcher().mask()
        mask.write(packed, row)
        kept.append(mask.ids())
    return packed, expected(kept)


@pytest.mark.parametrize("dtype", [numpy.float32, numpy.float16, numpy.float64])
def test_rows_of_arrays(masks: tuple[Any, Any], dtype: Any) -> None:
    packed, kept = masks
    logits = numpy.linspace(-3, 3, 2 * COLUMNS, dtype=dtype).reshape(2, COLUMNS)
    masked = apply_mask(logits, packed)
    assert numpy.isfinite(logits).all()
    assert (numpy.isfinite(masked) == kept).all()
    assert (masked[kept] == logits[kept]).all()
    strided = numpy.asfortranarray(logits)
    assert apply_mask_(strided, packed) is strided
    assert (strided == masked).all()


@pytest.mark.parametrize("columns", [40, 257, 288, 300])
@pytest.mark.parametrize("dtype", [numpy.float32, numpy.float16])
def test_one_row_of_any_width(bytes_compiler: Compiler, columns: int, dtype: Any) -> None:
    mask = bytes_compiler.regex("[!a]").matcher().mask()
    logits = apply_mask_(numpy.ones(columns, dtype=dtype), mask)
    kept = [id for id in (33, 97) if id < columns]
    assert (numpy.isfinite(logits) == expected([kept], columns)[0]).all()


@pytest.mark.parametrize("dtype", [numpy.float32, numpy.float64])
def test_rows_must_be_as_many(masks: tuple[Any, Any], dtype: Any) -> None:
    with pytest.raises(ValueError, match="3 rows of logits, but 2 masks"):
        apply_mask_(numpy.zeros((3, COLUMNS), dtype=dtype), masks[0])


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64"])
def test_tensors(masks: tuple[Any, Any], bytes_compiler: Compiler, dtype: str) -> None:
    torch = pytest.importorskip("torch")
    packed, kept = torch.from_numpy(masks[0]), torch.from_numpy(masks[1])
    logits = torch.linspace(-3, 3, 2 * COLUMNS).reshape(2, COLUMNS).to(getattr(torch, dtype))
    masked = apply_mask(logits, packed)
    assert logits.isfinite().all()
    assert (masked.isfinite() == kept).all()
    assert (masked[kept] == logits[kept]).all()
    # A view that isn't contiguous.
    wide = torch.zeros((2, 2 * COLUMNS), dtype=logits.dtype)
    view = wide[:, ::2]
    apply_mask_(view, packed)
    assert (view.isfinite() == kept).all()
    assert wide[:, 1::2].isfinite().all()
    row = logits[0].clone()
    apply_mask_(row, bytes_compiler.regex("[ab]").matcher().mask())
    assert (row.isfinite() == kept[0]).all()


def test_a_matcher_fills_tensors(bytes_compiler: Compiler) -> None:
    torch = pytest.importorskip("torch")
    matcher = bytes_compiler.regex("[ab]").matcher()
    out = torch.zeros((2, 9), dtype=torch.int32)
    matcher.fill_mask(out, 1)
    assert out[1, 3].item() == 6
    assert out.count_nonzero().item() == 1
    with pytest.raises((TypeError, RuntimeError)):
        matcher.fill_mask(torch.zeros((2, 9), dtype=torch.int32, device="meta"))
