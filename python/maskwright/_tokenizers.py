"""Vocabularies from the tokenizers of others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from maskwright._errors import UnsupportedError
from maskwright._maskwright import Vocabulary


def from_transformers(tokenizer: Any, generation_config: Any, stop_ids: Sequence[int]) -> Vocabulary:
    """The vocabulary of a fast tokenizer of `transformers`, or of what wraps one as mlx-lm does.

    Stop tokens are the tokenizer's end of text, those of the model's generation config, and those given.
    """
    # mlx-lm's wrapper knows all ends of a turn, and hands other questions on to what it wraps.
    stops = [*stop_ids, *_ids(getattr(tokenizer, "eos_token_ids", None))]
    tokenizer = getattr(tokenizer, "_tokenizer", tokenizer) if hasattr(tokenizer, "detokenizer") else tokenizer
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None or not hasattr(backend, "to_str"):
        kind = type(tokenizer).__name__
        raise UnsupportedError(f"{kind} is no fast tokenizer: only those have a tokenizer.json to read")
    stops += _ids(getattr(tokenizer, "eos_token_id", None))
    stops += _ids(getattr(generation_config, "eos_token_id", None))
    template = getattr(tokenizer, "chat_template", None)
    return Vocabulary.from_tokenizer_json(
        backend.to_str(),
        stop_ids=list(dict.fromkeys(stops)),
        chat_template=template if isinstance(template, str) else None,
        bos_text=getattr(tokenizer, "bos_token", None),
    )


def _ids(value: Any) -> list[int]:
    if value is None:
        return []
    return [value] if isinstance(value, int) else [int(id) for id in value]
