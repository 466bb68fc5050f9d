"""Constraints for `transformers`: a logits processor for `generate`.

    vocabulary = maskwright.Vocabulary.from_transformers(tokenizer, generation_config=model.generation_config)
    compiled = maskwright.Compiler(vocabulary).json_schema(schema)
    processor = maskwright.transformers.LogitsProcessor(compiled)
    output = model.generate(**inputs, logits_processor=[processor], eos_token_id=vocabulary.stop_tokens)

`eos_token_id` must name the vocabulary's stop tokens, so that a row ends where its constraint says so.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import transformers

from maskwright._history import History
from maskwright._logits import apply_mask
from maskwright._maskwright import Compiled, fill_masks

__all__ = ["LogitsProcessor"]


class LogitsProcessor(transformers.LogitsProcessor):  # type: ignore[misc]
    """Holds each row of a batch to its constraint.

    `compiled` is for all prompts, or a list with one for each, where `None` leaves a prompt free. With beam search
    `num_beams` must be what `generate` is given: beams that were only kept to fill up their number may then leave the
    constraint, which can't win, and without it any token that isn't allowed raises `RequestError`.

    A processor serves one call of `generate`; the next has to have a prompt that isn't the beginning of what came
    before.
    """

    def __init__(self, compiled: Compiled | Sequence[Compiled | None], *, num_beams: int = 1) -> None:
        self._compiled = compiled
        self._num_beams = num_beams
        self._rows: list[History | None] = []

    def __call__(self, input_ids: torch.LongTensor, scores: torch.FloatTensor) -> torch.FloatTensor:
        """The scores of the tokens that may come next; minus infinity for all others."""
        count, width = scores.shape
        if len(self._rows) != count:
            self._rows = self._histories(count)
        known = [row.matcher for row in self._rows if row is not None]
        if not known:
            return scores
        for row, ids in zip(self._rows, input_ids.tolist()):
            if row is not None:
                row.show(ids)
        self._check()
        words = max((width + 31) // 32, self._mask_words)
        # Rows that are free keep all their tokens.
        masks = torch.full((count, words), -1, dtype=torch.int32)
        open_rows = [index for index, row in enumerate(self._rows) if row is not None and row.is_open]
        fill_masks([known_row.matcher for known_row in self._at(open_rows)], masks, open_rows)
        for index, row in enumerate(self._rows):
            if row is not None and not row.is_open:
                row.mask().write(masks, index)
        masked: torch.FloatTensor = apply_mask(scores, masks)
        return masked

    def _histories(self, count: int) -> list[History | None]:
        given = [self._compiled] if isinstance(self._compiled, Compiled) else list(self._compiled)
        if isinstance(self._compiled, Compiled):
            given = given * count
        elif not given or count % len(given) != 0:
            raise ValueError(f"{len(given)} constraints, but {count} rows")
        else:
            # Rows of one prompt stand together.
            given = [one for one in given for _ in range(count // len(given))]
        self._mask_words = max((one.mask_words for one in given if one is not None), default=0)
        return [None if one is None else History(one) for one in given]

    def _at(self, rows: list[int]) -> list[History]:
        return [row for row in (self._rows[index] for index in rows) if row is not None]

    def _check(self) -> None:
        beams = max(self._num_beams, 1)
        for start in range(0, len(self._rows), beams):
            rows = [row for row in self._rows[start : start + beams] if row is not None]
            if rows and not any(row.is_allowed for row in rows):
                rows[0].check()
