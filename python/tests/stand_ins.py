"""vLLM and SGLang in shape, for machines that can't run them: the classes that our glue derives from and is called by.

Written after vLLM 0.32 (`vllm.v1.sample.logits_processor`) and SGLang 0.5.23 (`sglang.srt.constrained`). Where the real
ones can be imported, tests use them.
"""

from __future__ import annotations

import abc
import dataclasses
import enum
import importlib
import sys
import types
from collections.abc import Sequence
from typing import Any


def real_or_stand_in(name: str, stand_in: types.ModuleType) -> tuple[Any, bool]:
    """The module of that name, and whether it is the real one."""
    try:
        return importlib.import_module(name), True
    except Exception:
        # A half-imported host would be in the way.
        root = name.split(".")[0]
        for loaded in [module for module in sys.modules if module == root or module.startswith(root + ".")]:
            del sys.modules[loaded]
    parts = name.split(".")
    for depth in range(1, len(parts)):
        package = types.ModuleType(".".join(parts[:depth]))
        package.__path__ = []
        sys.modules[package.__name__] = package
    sys.modules[name] = stand_in
    return stand_in, False


def vllm() -> types.ModuleType:
    """`vllm.v1.sample.logits_processor`."""

    class MoveDirectionality(enum.Enum):
        UNIDIRECTIONAL = enum.auto()
        SWAP = enum.auto()

    @dataclasses.dataclass(frozen=True)
    class BatchUpdate:
        batch_size: int
        removed: Sequence[int]
        added: Sequence[tuple[int, Any, list[int] | None, list[int]]]
        moved: Sequence[tuple[int, int, MoveDirectionality]]

    class LogitsProcessor(abc.ABC):
        @classmethod
        def validate_params(cls, sampling_params: Any) -> None:
            return None

        @abc.abstractmethod
        def __init__(self, vllm_config: Any, device: Any, is_pin_memory: bool) -> None: ...

        @abc.abstractmethod
        def apply(self, logits: Any) -> Any: ...

        @abc.abstractmethod
        def is_argmax_invariant(self) -> bool: ...

        @abc.abstractmethod
        def update_state(self, batch_update: BatchUpdate | None) -> None: ...

    module = types.ModuleType("vllm.v1.sample.logits_processor")
    module.__dict__.update(
        MoveDirectionality=MoveDirectionality, BatchUpdate=BatchUpdate, LogitsProcessor=LogitsProcessor
    )
    return module


def sglang() -> types.ModuleType:
    """`sglang.srt.constrained.base_grammar_backend`."""
    registry: dict[str, Any] = {}

    class BaseGrammarObject:
        def __init__(self) -> None:
            self._finished = False
            self.grammar_stats = None
            self.current_token = None

        @property
        def finished(self) -> bool:
            return self._finished

        @finished.setter
        def finished(self, finished: bool) -> None:
            self._finished = finished

    class InvalidGrammarObject(BaseGrammarObject):
        def __init__(self, error_message: str = "") -> None:
            super().__init__()
            self.error_message = error_message

    class BaseGrammarBackend:
        def __init__(self) -> None:
            self.cache: dict[Any, Any] = {}

    def register_grammar_backend(name: str, init: Any) -> None:
        registry[name] = init

    module = types.ModuleType("sglang.srt.constrained.base_grammar_backend")
    module.__dict__.update(
        GRAMMAR_BACKEND_REGISTRY=registry,
        BaseGrammarObject=BaseGrammarObject,
        InvalidGrammarObject=InvalidGrammarObject,
        BaseGrammarBackend=BaseGrammarBackend,
        register_grammar_backend=register_grammar_backend,
    )
    return module
