"""Masks on logits: numpy's and torch's arrays, on any device and of any floating type."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, TypeVar

from maskwright._maskwright import TokenMask, apply_rows

if TYPE_CHECKING:
    import torch

Array = TypeVar("Array")


def apply_mask_(logits: Array, mask: Any) -> Array:
    """Makes logits of forbidden tokens, and those past the vocabulary, minus infinity; in place.

    `logits` is one row or several; `mask` is a `TokenMask` for a single row, or packed rows of int32 as `fill_mask`
    writes them, as many as there are rows of logits.
    """
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(logits, torch.Tensor):
        _apply_to_tensor(torch, logits, mask)
    else:
        _apply_to_array(logits, mask)
    return logits


def apply_mask(logits: Array, mask: Any) -> Array:
    """The same on a copy."""
    copy: Array = logits.clone() if hasattr(logits, "clone") else logits.copy()  # type: ignore[attr-defined]
    return apply_mask_(copy, mask)


def _apply_to_array(logits: Any, mask: Any) -> None:
    import numpy

    if logits.dtype == numpy.float32 and logits.flags.c_contiguous:
        if isinstance(mask, TokenMask):
            mask.apply(logits)
        else:
            apply_rows(logits, mask)
        return
    if isinstance(mask, TokenMask):
        mask = _packed(mask, numpy)
    rows, words = numpy.atleast_2d(logits), numpy.atleast_2d(mask)
    if len(rows) != len(words):
        raise ValueError(f"{len(rows)} rows of logits, but {len(words)} masks")
    bits = numpy.unpackbits(numpy.ascontiguousarray(words).view(numpy.uint8), axis=1, bitorder="little")
    known = min(rows.shape[1], bits.shape[1])
    # `rows` is a view of `logits` in any case.
    rows[:, :known][bits[:, :known] == 0] = -numpy.inf
    rows[:, known:] = -numpy.inf


def _packed(mask: TokenMask, numpy: Any) -> Any:
    words = numpy.empty((mask.vocab + 31) // 32, dtype=numpy.int32)
    mask.write(words)
    return words


def _apply_to_tensor(torch: Any, logits: torch.Tensor, mask: Any) -> None:
    if isinstance(mask, TokenMask):
        packed = torch.empty((mask.vocab + 31) // 32, dtype=torch.int32)
        mask.write(packed)
        mask = packed
    plain = logits.device.type == "cpu" and logits.dtype == torch.float32 and logits.is_contiguous()
    if plain and mask.device.type == "cpu" and mask.is_contiguous():
        apply_rows(logits.detach(), mask)
        return
    rows = logits.unsqueeze(0) if logits.dim() == 1 else logits
    words = mask.unsqueeze(0) if mask.dim() == 1 else mask
    if rows.shape[0] != words.shape[0]:
        raise ValueError(f"{rows.shape[0]} rows of logits, but {words.shape[0]} masks")
    words = words.to(logits.device, non_blocking=True)
    bits = torch.arange(32, dtype=torch.int32, device=logits.device)
    # One word at a time becomes 32 columns.
    allowed = ((words.unsqueeze(-1) >> bits) & 1).flatten(1).bool()
    known = min(rows.shape[1], allowed.shape[1])
    rows[:, :known].masked_fill_(~allowed[:, :known], float("-inf"))
    rows[:, known:].fill_(float("-inf"))
