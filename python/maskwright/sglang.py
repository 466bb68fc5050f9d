"""Constraints for SGLang: a grammar backend of its own.

Where this package is installed, SGLang's processes call `register` by themselves (entry point `sglang.srt.plugins`),
and the server is started with `--grammar-backend maskwright`. Requests name constraints as for any other backend:
`json_schema`, `regex`, `structural_tag`, and `ebnf`, which is read as GBNF.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from sglang.srt.constrained.base_grammar_backend import (
    BaseGrammarBackend,
    BaseGrammarObject,
    InvalidGrammarObject,
    register_grammar_backend,
)

from maskwright._errors import MaskwrightError
from maskwright._logits import apply_mask_
from maskwright._maskwright import Compiled, Compiler, Constraint, Vocabulary, fill_masks

__all__ = ["Backend", "Grammar", "register"]

# What a request for any JSON object has instead of a schema.
ANY_OBJECT = "$$ANY$$"


class Grammar(BaseGrammarObject):  # type: ignore[misc]
    """One request under a constraint."""

    def __init__(self, compiled: Compiled) -> None:
        super().__init__()
        self.compiled = compiled
        self.matcher = compiled.matcher()

    def accept_token(self, token: int) -> None:
        """Takes a token; what comes after the end isn't looked at."""
        if not self.is_terminated():
            self.matcher.commit(token)

    def rollback(self, k: int) -> None:
        """Takes back the last tokens."""
        if k > 0:
            self.matcher.rollback(k)

    def is_terminated(self) -> bool:
        """Whether a token that ends the text has come."""
        return self.matcher.has_ended()

    @property
    def finished(self) -> bool:
        """Whether the request is done, by its constraint or for another reason."""
        return self._finished or self.is_terminated()

    @finished.setter
    def finished(self, finished: bool) -> None:
        self._finished = finished

    def allocate_vocab_mask(self, vocab_size: int, batch_size: int, device: Any) -> torch.Tensor:
        """Masks for a batch, which allow everything."""
        words = max((vocab_size + 31) // 32, self.compiled.mask_words)
        return torch.full((batch_size, words), -1, dtype=torch.int32, pin_memory=torch.cuda.is_available())

    def fill_vocab_mask(self, vocab_mask: torch.Tensor, idx: int) -> None:
        """Writes a row of the masks."""
        if self.is_terminated():
            self.compiled.stop_mask.write(vocab_mask, idx)
        else:
            self.matcher.fill_mask(vocab_mask, idx)

    @staticmethod
    def fill_vocab_mask_batched(entries: Iterable[Any], vocab_mask: torch.Tensor) -> None:
        """Writes many rows, on several threads."""
        together: list[tuple[Grammar, int]] = []
        for entry in entries:
            if isinstance(entry.grammar, Grammar) and not entry.grammar.is_terminated():
                together.append((entry.grammar, entry.row))
            else:
                entry.grammar.fill_vocab_mask(vocab_mask, entry.row)
        fill_masks([grammar.matcher for grammar, _ in together], vocab_mask, [row for _, row in together])

    @staticmethod
    def reset_vocab_mask(vocab_mask: torch.Tensor) -> None:
        """Makes masks allow everything."""
        vocab_mask.fill_(-1)

    @staticmethod
    def move_vocab_mask(vocab_mask: torch.Tensor, device: Any) -> torch.Tensor:
        """The masks on a device."""
        return vocab_mask.to(device, non_blocking=True)

    @staticmethod
    def apply_vocab_mask(logits: torch.Tensor, vocab_mask: torch.Tensor) -> None:
        """Makes logits of forbidden tokens minus infinity."""
        apply_mask_(logits, vocab_mask)

    def copy(self) -> Grammar:
        """A new request under the same constraint."""
        return Grammar(self.compiled)

    def try_jump_forward(self, tokenizer: Any) -> tuple[list[int], str] | None:
        """The tokens that must come next."""
        forced = self.matcher.forced()
        return (forced, "") if forced else None

    def jump_forward_str_state(self, helper: tuple[list[int], str]) -> tuple[str, int]:
        """There is no text to add: tokens were given."""
        return "", -1

    def jump_and_retokenize(self, old_output_ids: list[int], new_output_ids: list[int], next_state: int) -> None:
        """Takes the tokens of the reply as they are after a jump."""
        self.matcher.follow(new_output_ids)


class Backend(BaseGrammarBackend):  # type: ignore[misc]
    """Compiles constraints for a model."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__()
        self._compiler = Compiler(vocabulary)

    def dispatch_json(self, key_string: str) -> BaseGrammarObject:
        """JSON under a schema."""
        if key_string == ANY_OBJECT:
            return self._grammar(lambda: Constraint.json_object())
        return self._grammar(lambda: Constraint.json_schema(key_string))

    def dispatch_regex(self, key_string: str) -> BaseGrammarObject:
        """Text that matches an expression."""
        return self._grammar(lambda: Constraint.regex(key_string))

    def dispatch_ebnf(self, key_string: str) -> BaseGrammarObject:
        """Text of a GBNF grammar."""
        return self._grammar(lambda: Constraint.gbnf(key_string))

    def dispatch_structural_tag(self, key_string: str) -> BaseGrammarObject:
        """Free text with tags."""
        return self._grammar(lambda: Constraint.structural_tag(key_string))

    def _grammar(self, constraint: Any) -> BaseGrammarObject:
        try:
            return Grammar(self._compiler.compile(constraint()))
        except MaskwrightError as error:
            return InvalidGrammarObject(str(error))


def register(name: str = "maskwright") -> None:
    """Makes the backend known to SGLang under a name."""

    def make(server_args: Any, tokenizer: Any, vocab_size: int, eos_token_ids: set[int] | None) -> Backend:
        return Backend(Vocabulary.from_transformers(tokenizer, stop_ids=sorted(eos_token_ids or ())))

    register_grammar_backend(name, make)
    try:
        from sglang.srt.server_args import GRAMMAR_BACKEND_CHOICES
    except ImportError:
        return
    # The names that the command line takes.
    if name not in GRAMMAR_BACKEND_CHOICES:
        GRAMMAR_BACKEND_CHOICES.append(name)
