"""A matcher in step with a host that shows all tokens so far, its prompt among them."""

from __future__ import annotations

from collections.abc import Sequence

from maskwright._errors import RequestError
from maskwright._maskwright import Compiled, Matcher, TokenMask


class History:
    """Keeps a matcher in step with the tokens a host shows.

    The first tokens shown are the prompt. When later ones are fewer, or others, what isn't there any more is taken
    back: hosts that speculate show drafts and drop them. Tokens after one that ended the text aren't looked at, for
    hosts often take a step too many.
    """

    def __init__(self, compiled: Compiled) -> None:
        self.matcher: Matcher = compiled.matcher()
        self._stop_mask = compiled.stop_mask
        self._prompt: list[int] | None = None
        # Whether tokens of the reply are left that count.
        self.is_open = True
        # Whether the tokens are as the constraint has it.
        self.is_allowed = True

    def show(self, ids: Sequence[int]) -> None:
        """Takes note of the tokens so far."""
        prompt = self._prompt
        if prompt is None or list(ids[: len(prompt)]) != prompt:
            self._prompt = prompt = list(ids)
        reply = ids[len(prompt) :]
        taken = self.matcher.follow(reply)
        ended = self.matcher.has_ended()
        self.is_allowed = ended or taken == len(reply)
        self.is_open = self.is_allowed and not ended

    def check(self) -> None:
        """Raises `RequestError` where a token isn't allowed: something chose it without regard to the mask."""
        if not self.is_allowed:
            at = len(self.matcher.tokens)
            raise RequestError(
                f"token {at} of the reply isn't allowed by the constraint: another processor undid the mask, or this "
                "one was used for a second reply (make one for each)"
            )

    def mask(self) -> TokenMask:
        """What may come next; where nothing more counts, a token that ends the text."""
        return self.matcher.mask() if self.is_open else self._stop_mask
