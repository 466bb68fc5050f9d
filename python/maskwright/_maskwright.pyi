from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from typing import Any, Literal, TypeAlias, final, overload

__all__ = [
    "LLM",
    "Canceller",
    "ChatFormat",
    "Compiled",
    "Compiler",
    "Constraint",
    "Delta",
    "Event",
    "Matcher",
    "Reply",
    "ReplyParser",
    "Stream",
    "TokenMask",
    "ToolCall",
    "Vocabulary",
    "apply_rows",
    "fill_masks",
    "main",
]

_Whitespace: TypeAlias = Literal["compact", "spaced", "flexible"] | int
_Order: TypeAlias = Literal["schema", "any"]
_Numbers: TypeAlias = Literal["plain", "any"]
_Unknown: TypeAlias = Literal["refuse-misspelt", "warn", "refuse"]
_Schema: TypeAlias = str | Mapping[str, Any] | bool | type | Any
_Tools: TypeAlias = str | Sequence[Mapping[str, Any]]
_Choice: TypeAlias = str | Mapping[str, Any]
_Messages: TypeAlias = Sequence[Mapping[str, Any]]

@final
class Vocabulary:
    @staticmethod
    def from_tokenizer_json(
        json: str | bytes,
        *,
        generation_config: str | bytes | None = None,
        tokenizer_config: str | bytes | None = None,
        stop_ids: Sequence[int] = ...,
        stop_texts: Sequence[str] = ...,
        chat_template: str | None = None,
        bos_text: str | None = None,
    ) -> Vocabulary: ...
    @staticmethod
    def from_gguf(path: str | PathLike[str]) -> Vocabulary: ...
    @staticmethod
    def from_transformers(
        tokenizer: Any, *, generation_config: Any = None, stop_ids: Sequence[int] = ...
    ) -> Vocabulary: ...
    @staticmethod
    def from_tiktoken(
        ranks: Sequence[tuple[bytes, int]],
        pattern: str,
        special_tokens: Sequence[tuple[str, int]],
        *,
        stop_texts: Sequence[str] = ...,
        chat_template: str | None = None,
    ) -> Vocabulary: ...
    @staticmethod
    def single_bytes() -> Vocabulary: ...
    @property
    def size(self) -> int: ...
    @property
    def stop_tokens(self) -> list[int]: ...
    @property
    def bos_token(self) -> int | None: ...
    @property
    def is_canonical(self) -> bool: ...
    @property
    def fingerprint(self) -> bytes: ...
    def encode(self, text: str, *, specials: bool = False) -> list[int]: ...
    def decode(self, ids: Sequence[int]) -> bytes: ...
    def token(self, id: int) -> bytes: ...
    def special(self, text: str) -> int | None: ...
    def is_special(self, id: int) -> bool: ...

@final
class Constraint:
    @staticmethod
    def json_schema(
        schema: _Schema,
        *,
        whitespace: _Whitespace = ...,
        order: _Order = "schema",
        numbers: _Numbers = "plain",
        unknown: _Unknown = "refuse-misspelt",
        string_cap: int | None = None,
        array_cap: int | None = None,
        documents: Mapping[str, _Schema] | None = None,
    ) -> Constraint: ...
    @staticmethod
    def json_object(*, whitespace: _Whitespace = ...) -> Constraint: ...
    @staticmethod
    def regex(pattern: str) -> Constraint: ...
    @staticmethod
    def choice(choices: Sequence[str]) -> Constraint: ...
    @staticmethod
    def gbnf(grammar: str) -> Constraint: ...
    @staticmethod
    def lark(grammar: str) -> Constraint: ...
    @staticmethod
    def structural_tag(tag: str | Mapping[str, Any], *, whitespace: _Whitespace = ...) -> Constraint: ...
    @property
    def kind(self) -> str: ...
    def check(self) -> list[str]: ...

@final
class Compiler:
    def __new__(cls, vocabulary: Vocabulary, *, limits: Mapping[str, int] | None = None) -> Compiler: ...
    def compile(self, constraint: Constraint) -> Compiled: ...
    def json_schema(
        self,
        schema: _Schema,
        *,
        whitespace: _Whitespace = ...,
        order: _Order = "schema",
        numbers: _Numbers = "plain",
        unknown: _Unknown = "refuse-misspelt",
        string_cap: int | None = None,
        array_cap: int | None = None,
        documents: Mapping[str, _Schema] | None = None,
    ) -> Compiled: ...
    def json_object(self, *, whitespace: _Whitespace = ...) -> Compiled: ...
    def regex(self, pattern: str) -> Compiled: ...
    def choice(self, choices: Sequence[str]) -> Compiled: ...
    def gbnf(self, grammar: str) -> Compiled: ...
    def lark(self, grammar: str) -> Compiled: ...
    def structural_tag(self, tag: str | Mapping[str, Any], *, whitespace: _Whitespace = ...) -> Compiled: ...
    def tools(
        self,
        tools: _Tools,
        choice: _Choice,
        format: ChatFormat | str,
        *,
        answer: Constraint | None = None,
        prompt: str = ...,
        parallel: bool = True,
        think: bool = True,
        think_budget: int | None = None,
    ) -> Compiled: ...
    @property
    def vocabulary(self) -> Vocabulary: ...
    @property
    def cached(self) -> tuple[int, int]: ...

@final
class Compiled:
    def matcher(self) -> Matcher: ...
    @property
    def warnings(self) -> list[str]: ...
    @property
    def vocabulary(self) -> Vocabulary: ...
    @property
    def stop_mask(self) -> TokenMask: ...
    @property
    def mask_words(self) -> int: ...
    @property
    def nbytes(self) -> int: ...

@final
class Matcher:
    def mask(self) -> TokenMask: ...
    def fill_mask(self, out: Any, row: int = 0) -> None: ...
    def commit(self, ids: int | Sequence[int]) -> None: ...
    def accepts(self, ids: int | Sequence[int]) -> int: ...
    def follow(self, ids: Sequence[int]) -> int: ...
    def rollback(self, tokens: int) -> None: ...
    def forced(self) -> list[int]: ...
    def is_accepting(self) -> bool: ...
    def is_complete(self) -> bool: ...
    def has_ended(self) -> bool: ...
    @property
    def tokens(self) -> list[int]: ...
    def fork(self) -> Matcher: ...
    def canceller(self) -> Canceller: ...

@final
class Canceller:
    def cancel(self) -> None: ...
    def is_cancelled(self) -> bool: ...

@final
class TokenMask:
    def allows(self, id: int) -> bool: ...
    def count(self) -> int: ...
    def only(self) -> int | None: ...
    def ids(self) -> list[int]: ...
    @property
    def vocab(self) -> int: ...
    def write(self, out: Any, row: int = 0) -> None: ...
    def apply(self, logits: Any) -> None: ...
    def __contains__(self, id: int, /) -> bool: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...

def fill_masks(matchers: Sequence[Matcher], out: Any, rows: Sequence[int] | None = None) -> None: ...
def apply_rows(logits: Any, masks: Any) -> None: ...
def main(arguments: Sequence[str]) -> int: ...

@final
class ChatFormat:
    @staticmethod
    def named(name: str, vocabulary: Vocabulary | None = None) -> ChatFormat: ...
    @staticmethod
    def detect(chat_template: str, vocabulary: Vocabulary | None = None) -> ChatFormat: ...
    @staticmethod
    def names() -> list[str]: ...
    @property
    def name(self) -> str: ...

@final
class ReplyParser:
    def __new__(
        cls,
        format: ChatFormat | str,
        tools: _Tools | None = None,
        *,
        prompt: str = ...,
        constrained: bool = False,
        calls_before: int = 0,
    ) -> ReplyParser: ...
    def push(self, text: str, marker: int | None = None) -> list[Delta]: ...
    def finish(self, *, truncated: bool = False) -> list[Delta]: ...

_DeltaKind: TypeAlias = Literal["text", "reasoning", "tool_call_started", "tool_call_arguments", "tool_call_finished"]

@final
class Delta:
    @property
    def kind(self) -> _DeltaKind: ...
    @property
    def text(self) -> str: ...
    @property
    def index(self) -> int | None: ...
    @property
    def id(self) -> str | None: ...
    @property
    def name(self) -> str | None: ...
    @property
    def complete(self) -> bool | None: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...

@final
class ToolCall:
    @property
    def id(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def arguments(self) -> str: ...
    @property
    def complete(self) -> bool: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...

@final
class Event:
    @property
    def kind(self) -> _DeltaKind | Literal["finished"]: ...
    @property
    def text(self) -> str: ...
    @property
    def delta(self) -> Delta | None: ...
    @property
    def finish_reason(self) -> Literal["stop", "length", "tool_calls"] | None: ...
    @property
    def satisfied(self) -> bool | None: ...
    @property
    def usage(self) -> dict[str, int] | None: ...

@final
class Reply:
    @property
    def text(self) -> str: ...
    @property
    def reasoning(self) -> str | None: ...
    @property
    def tool_calls(self) -> list[ToolCall]: ...
    @property
    def finish_reason(self) -> Literal["stop", "length", "tool_calls"]: ...
    @property
    def stop_string(self) -> str | None: ...
    @property
    def satisfied(self) -> bool | None: ...
    @property
    def tokens(self) -> list[int]: ...
    @property
    def usage(self) -> dict[str, int]: ...
    def json(self) -> Any: ...

@final
class Stream(Iterator[Event]):
    def __iter__(self) -> Stream: ...
    def __next__(self) -> Event: ...
    def close(self) -> None: ...

@final
class LLM:
    def __new__(
        cls,
        model: str = "smollm2",
        *,
        device: str = "auto",
        threads: int | None = None,
        context: int | None = None,
        offline: bool | None = None,
        limits: Mapping[str, int] | None = None,
    ) -> LLM: ...
    @overload
    def generate(
        self,
        prompt: str | _Messages,
        *,
        json_schema: _Schema | None = None,
        json_object: bool = False,
        regex: str | None = None,
        choice: Sequence[str] | None = None,
        gbnf: str | None = None,
        lark: str | None = None,
        constraint: Constraint | None = None,
        stream: Literal[False] = False,
        raw: bool = False,
        system: str | None = None,
        max_tokens: int | None = None,
        temperature: float = 0.8,
        top_k: int | None = None,
        top_p: float = 1.0,
        min_p: float = 0.0,
        repetition_penalty: float = 1.0,
        presence_penalty: float = 0.0,
        frequency_penalty: float = 0.0,
        logit_bias: Mapping[int, float] | None = None,
        seed: int | None = None,
        stop: Sequence[str] = ...,
        tools: _Tools | None = None,
        tool_choice: _Choice | None = None,
        parallel_tool_calls: bool = True,
        think: bool | None = None,
        think_budget: int | None = None,
        template_arguments: Mapping[str, Any] | None = None,
    ) -> Reply: ...
    @overload
    def generate(
        self,
        prompt: str | _Messages,
        *,
        json_schema: _Schema | None = None,
        json_object: bool = False,
        regex: str | None = None,
        choice: Sequence[str] | None = None,
        gbnf: str | None = None,
        lark: str | None = None,
        constraint: Constraint | None = None,
        stream: Literal[True],
        raw: bool = False,
        system: str | None = None,
        max_tokens: int | None = None,
        temperature: float = 0.8,
        top_k: int | None = None,
        top_p: float = 1.0,
        min_p: float = 0.0,
        repetition_penalty: float = 1.0,
        presence_penalty: float = 0.0,
        frequency_penalty: float = 0.0,
        logit_bias: Mapping[int, float] | None = None,
        seed: int | None = None,
        stop: Sequence[str] = ...,
        tools: _Tools | None = None,
        tool_choice: _Choice | None = None,
        parallel_tool_calls: bool = True,
        think: bool | None = None,
        think_budget: int | None = None,
        template_arguments: Mapping[str, Any] | None = None,
    ) -> Stream: ...
    @overload
    def generate(
        self,
        prompt: str | _Messages,
        *,
        json_schema: _Schema | None = None,
        json_object: bool = False,
        regex: str | None = None,
        choice: Sequence[str] | None = None,
        gbnf: str | None = None,
        lark: str | None = None,
        constraint: Constraint | None = None,
        stream: bool,
        raw: bool = False,
        system: str | None = None,
        max_tokens: int | None = None,
        temperature: float = 0.8,
        top_k: int | None = None,
        top_p: float = 1.0,
        min_p: float = 0.0,
        repetition_penalty: float = 1.0,
        presence_penalty: float = 0.0,
        frequency_penalty: float = 0.0,
        logit_bias: Mapping[int, float] | None = None,
        seed: int | None = None,
        stop: Sequence[str] = ...,
        tools: _Tools | None = None,
        tool_choice: _Choice | None = None,
        parallel_tool_calls: bool = True,
        think: bool | None = None,
        think_budget: int | None = None,
        template_arguments: Mapping[str, Any] | None = None,
    ) -> Reply | Stream: ...
    def tokens(self, prompt: str | _Messages, *, raw: bool = False, system: str | None = None) -> list[int]: ...
    @property
    def vocabulary(self) -> Vocabulary: ...
    @property
    def name(self) -> str: ...
    @property
    def context(self) -> int: ...
    @property
    def device(self) -> str: ...
