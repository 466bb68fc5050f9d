"""Constraints for `mlx-lm`: a logits processor for each sequence.

    model, tokenizer = mlx_lm.load("…")
    vocabulary = maskwright.Vocabulary.from_transformers(tokenizer)
    compiled = maskwright.Compiler(vocabulary).json_schema(schema)
    text = mlx_lm.generate(model, tokenizer, prompt, logits_processors=[maskwright.mlx.LogitsProcessor(compiled)])

It goes with speculation, which shows drafts and drops them, and with batches: `logits_processors(compiled, n)` is what
a batch of `n` takes.
"""

from __future__ import annotations

from collections.abc import Sequence

import mlx.core as mx
import numpy

from maskwright._history import History
from maskwright._maskwright import Compiled

__all__ = ["LogitsProcessor", "logits_processors"]


class LogitsProcessor:
    """Holds one sequence to a constraint."""

    def __init__(self, compiled: Compiled) -> None:
        self._history = History(compiled)
        self._words = numpy.empty(compiled.mask_words, dtype=numpy.int32)

    def __call__(self, tokens: mx.array, logits: mx.array) -> mx.array:
        """The logits of the tokens that may come next; minus infinity for all others."""
        history = self._history
        history.show(tokens.tolist())
        history.check()
        history.mask().write(self._words)
        width = logits.shape[-1]
        bits = numpy.unpackbits(self._words.view(numpy.uint8), bitorder="little")
        allowed = numpy.zeros(width, dtype=numpy.bool_)
        known = min(width, len(bits))
        allowed[:known] = bits[:known]
        return mx.where(mx.array(allowed), logits, mx.array(-numpy.inf, dtype=logits.dtype))


def logits_processors(compiled: Compiled | Sequence[Compiled], count: int) -> list[list[LogitsProcessor]]:
    """Processors for a batch of `count` sequences: one constraint for all, or one for each."""
    each = [compiled] * count if isinstance(compiled, Compiled) else list(compiled)
    if len(each) != count:
        raise ValueError(f"{len(each)} constraints, but {count} sequences")
    return [[LogitsProcessor(one)] for one in each]
