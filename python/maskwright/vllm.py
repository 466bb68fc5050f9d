"""Constraints for vLLM: a logits processor of its V1 engine.

Where this package is installed, vLLM loads the processor by itself (entry point `vllm.logits_processors`). A request
says its constraint in `extra_args`, as an object or as its JSON:

    SamplingParams(extra_args={"maskwright": {"json_schema": schema}}, max_tokens=256)

and over HTTP in `vllm_xargs`, where it must be JSON text. See `maskwright._spec.constraint_of` for the keys. Requests
without one aren't touched, and nothing is loaded for them.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import torch
from vllm.v1.sample.logits_processor import LogitsProcessor as Base
from vllm.v1.sample.logits_processor import MoveDirectionality

from maskwright._errors import MaskwrightError, RequestError, UnsupportedError
from maskwright._logits import apply_mask_
from maskwright._maskwright import Compiled, Compiler, Constraint, Matcher, TokenMask, Vocabulary, fill_masks
from maskwright._spec import constraint_of

if TYPE_CHECKING:
    from vllm.config import VllmConfig
    from vllm.sampling_params import SamplingParams
    from vllm.v1.sample.logits_processor import BatchUpdate

__all__ = ["LogitsProcessor"]

ARGUMENT = "maskwright"


class LogitsProcessor(Base):  # type: ignore[misc]
    """Holds each request that asks for it to its constraint."""

    @classmethod
    def validate_params(cls, sampling_params: SamplingParams) -> None:
        """Refuses a request whose constraint can't be honoured, before it is queued."""
        try:
            constraint = _constraint(sampling_params)
            if constraint is not None:
                constraint.check()
        except MaskwrightError as error:
            raise ValueError(str(error)) from error

    def __init__(self, vllm_config: VllmConfig, device: torch.device, is_pin_memory: bool) -> None:
        self._config = vllm_config
        self._pin = is_pin_memory
        self._rows: dict[int, _Row] = {}
        self._compiler: Compiler | None = None
        self._lock = threading.Lock()

    def is_argmax_invariant(self) -> bool:
        """A mask may forbid the likeliest token."""
        return False

    def update_state(self, batch_update: BatchUpdate | None) -> None:
        """Follows requests through the batch: removals first, then additions, then moves."""
        if batch_update is None:
            return
        rows = self._rows
        for index in batch_update.removed:
            rows.pop(index, None)
        for index, params, _, output_ids in batch_update.added:
            rows.pop(index, None)
            constraint = _constraint(params)
            if constraint is not None:
                rows[index] = _Row(self._compile(constraint), output_ids)
        for source, target, direction in batch_update.moved:
            moved, replaced = rows.pop(source, None), rows.pop(target, None)
            if moved is not None:
                rows[target] = moved
            if replaced is not None and direction == MoveDirectionality.SWAP:
                rows[source] = replaced

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        """Makes logits of tokens that may not come next minus infinity."""
        if not self._rows:
            return logits
        indices = sorted(self._rows)
        rows = [self._rows[index] for index in indices]
        words = max(row.words for row in rows)
        masks = torch.zeros((len(rows), words), dtype=torch.int32, pin_memory=self._pin)
        open_rows = [index for index, row in enumerate(rows) if row.follow()]
        fill_masks([rows[index].matcher for index in open_rows], masks, open_rows)
        for index, row in enumerate(rows):
            if row.has_ended:
                row.stop_mask.write(masks, index)
        if len(indices) == logits.shape[0]:
            return apply_mask_(logits, masks)
        at = torch.tensor(indices, device=logits.device)
        logits[at] = apply_mask_(logits[at], masks)
        return logits

    def _compile(self, constraint: Constraint) -> Compiled:
        with self._lock:
            if self._compiler is None:
                self._compiler = Compiler(_vocabulary(self._config))
        return self._compiler.compile(constraint)


class _Row:
    """A request under a constraint; `output_ids` is its own list, which grows."""

    def __init__(self, compiled: Compiled, output_ids: list[int]) -> None:
        self.matcher: Matcher = compiled.matcher()
        self.words = compiled.mask_words
        self.stop_mask: TokenMask = compiled.stop_mask
        self.has_ended = False
        self._output_ids = output_ids

    def follow(self) -> bool:
        """Takes note of new tokens; whether more are to come."""
        ids = self._output_ids
        if ids and ids[-1] < 0:
            raise UnsupportedError(
                "vLLM shows the constraint a token before it is known; start it with --no-async-scheduling"
            )
        taken = self.matcher.follow(ids)
        self.has_ended = self.matcher.has_ended()
        if taken < len(ids) and not self.has_ended:
            raise RequestError(f"token {taken} of the reply isn't allowed by its constraint: something undid the mask")
        return not self.has_ended


def _constraint(params: SamplingParams) -> Constraint | None:
    spec = (getattr(params, "extra_args", None) or {}).get(ARGUMENT)
    return None if spec is None else constraint_of(spec)


def _vocabulary(config: VllmConfig) -> Vocabulary:
    from vllm.tokenizers import cached_tokenizer_from_config

    model = config.model_config
    generation: dict[str, Any] = model.try_get_generation_config()
    stops = generation.get("eos_token_id")
    ids = [] if stops is None else [stops] if isinstance(stops, int) else list(stops)
    return Vocabulary.from_transformers(cached_tokenizer_from_config(model), stop_ids=ids)
