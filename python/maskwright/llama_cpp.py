"""Constraints for `llama-cpp-python`: a logits processor.

llama = llama_cpp.Llama("model.gguf")
compiled = maskwright.Compiler(maskwright.llama_cpp.vocabulary(llama)).json_schema(schema)
processors = llama_cpp.LogitsProcessorList([maskwright.llama_cpp.LogitsProcessor(compiled)])
llama("…", logits_processor=processors, max_tokens=None)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from maskwright._history import History
from maskwright._logits import apply_mask_
from maskwright._maskwright import Compiled, Vocabulary

if TYPE_CHECKING:
    import numpy
    import numpy.typing

__all__ = ["LogitsProcessor", "vocabulary"]


class LogitsProcessor:
    """Holds one sequence to a constraint. Make one for each reply."""

    def __init__(self, compiled: Compiled) -> None:
        self._history = History(compiled)

    def __call__(
        self, input_ids: numpy.typing.NDArray[numpy.intc], scores: numpy.typing.NDArray[numpy.single]
    ) -> numpy.typing.NDArray[numpy.single]:
        """The scores, minus infinity for tokens that may not come next."""
        history = self._history
        history.show(input_ids.tolist())
        history.check()
        return apply_mask_(scores, history.mask())


def vocabulary(llama: Any) -> Vocabulary:
    """The vocabulary of a `llama_cpp.Llama`, from the file that it was loaded from."""
    return Vocabulary.from_gguf(llama.model_path)
