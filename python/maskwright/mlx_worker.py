"""A worker that runs an MLX model for another process: `python -m maskwright.mlx_worker --model PATH`.

Requests come on stdin, a line of JSON each; every one is answered on stdout by a line of JSON, in their order. Where an
answer has `bytes`, so many raw bytes follow its line. Anything else that is printed goes to stderr.

    {"op": "hello"}
        {"ok": true, "protocol": 1, "model": NAME, "architecture": NAME, "width": COLUMNS, "context": TOKENS or null,
         "device": NAME, "template": TEXT or null, "tokenizer": TEXT, "stop_tokens": [ID, …]}
        `tokenizer` is the text of a tokenizer.json.
    {"op": "add"}
        {"ok": true, "sequence": N}
        A new, empty sequence.
    {"op": "feed", "work": [[N, [ID, …]], …]}
        {"ok": true, "rows": R, "width": COLUMNS, "bytes": 4 * R * COLUMNS}
        Appends tokens, at least one, to each sequence that is named, each at most once. The rows are the logits after
        the last token of each, in the order of `work`: float32, little-endian.
    {"op": "truncate", "sequence": N, "len": TOKENS}
        {"ok": true, "len": TOKENS}
        Keeps the first tokens of a sequence; nothing happens where it has no more.
    {"op": "len", "sequence": N}
        {"ok": true, "len": TOKENS}
    {"op": "remove", "sequence": N}
        {"ok": true}

A request that fails changes nothing and is answered by `{"ok": false, "fault": FAULT, "error": TEXT}`; `fault` is
`client`, `limit`, `unsupported` or `server`. The worker ends when stdin does.
"""

from __future__ import annotations

import argparse
import inspect
import json
import os
import sys
from collections.abc import Callable
from typing import IO, Any

PROTOCOL = 1


class FaultError(Exception):
    """A request that fails."""

    def __init__(self, fault: str, message: str) -> None:
        super().__init__(message)
        self.fault = fault


class Worker:
    """A model and its sequences."""

    def __init__(self, model: Any, tokenizer: Any, name: str = "") -> None:
        self.model = model
        self.tokenizer = tokenizer
        self.name = name
        self.arguments = getattr(model, "args", None)
        self.caches: dict[int, list[Any]] = {}
        self.lengths: dict[int, int] = {}
        self.next = 0
        self.width: int | None = None

    def answer(self, request: Any) -> tuple[dict[str, Any], bytes]:
        """The answer to a request, and the bytes that follow it."""
        operations: dict[str, Callable[..., tuple[dict[str, Any], bytes]]] = {
            "hello": self.hello,
            "add": self.add,
            "feed": self.feed,
            "truncate": self.truncate,
            "len": self.len,
            "remove": self.remove,
        }
        try:
            if not isinstance(request, dict) or request.get("op") not in operations:
                raise FaultError("client", f"a request is a line of JSON with an op: {', '.join(operations)}")
            given = {key: value for key, value in request.items() if key != "op"}
            operation = operations[request["op"]]
            try:
                inspect.signature(operation).bind(**given)
            except TypeError as error:
                raise FaultError("client", str(error)) from error
            answer, data = operation(**given)
        except FaultError as fault:
            return {"ok": False, "fault": fault.fault, "error": str(fault)}, b""
        except Exception as error:
            return {"ok": False, "fault": "server", "error": f"{type(error).__name__}: {error}"}, b""
        return {"ok": True, **answer, **({"bytes": len(data)} if data else {})}, data

    def hello(self) -> tuple[dict[str, Any], bytes]:
        """What is known of the model without running it, but for the width of its logits."""
        import mlx.core as mx

        inner = getattr(self.tokenizer, "_tokenizer", self.tokenizer)
        stops = getattr(self.tokenizer, "eos_token_ids", None) or [inner.eos_token_id]
        template = getattr(inner, "chat_template", None)
        return {
            "protocol": PROTOCOL,
            "model": self.name,
            "architecture": getattr(self.arguments, "model_type", ""),
            "width": self._width(),
            "context": self._context(),
            "device": str(mx.default_device()),
            "template": template if isinstance(template, str) else None,
            "tokenizer": inner.backend_tokenizer.to_str(),
            "stop_tokens": sorted(stops),
        }, b""

    def add(self) -> tuple[dict[str, Any], bytes]:
        """A new sequence."""
        sequence = self.next
        self.next += 1
        self.caches[sequence] = self._cache()
        self.lengths[sequence] = 0
        return {"sequence": sequence}, b""

    def feed(self, work: Any) -> tuple[dict[str, Any], bytes]:
        """Appends tokens; the logits after them."""
        import mlx.core as mx
        import numpy

        self._check(work)
        rows = []
        for sequence, ids in work:
            logits = self.model(mx.array([ids]), cache=self.caches[sequence])
            self.lengths[sequence] += len(ids)
            rows.append(logits[0, -1, :].astype(mx.float32))
        stacked = numpy.array(mx.stack(rows), dtype="<f4")
        count, width = stacked.shape
        return {"rows": count, "width": width}, stacked.tobytes()

    def truncate(self, sequence: Any, len: Any) -> tuple[dict[str, Any], bytes]:
        """Keeps the first tokens."""
        from mlx_lm.models.cache import can_trim_prompt_cache, trim_prompt_cache

        cache = self._known(sequence)
        if not _is_count(len):
            raise FaultError("client", f"len is {len!r}; it must be a number of tokens")
        surplus = self.lengths[sequence] - len
        if surplus > 0:
            if len == 0:
                self.caches[sequence] = self._cache()
            elif not can_trim_prompt_cache(cache):
                raise FaultError("unsupported", "the state of this model can't go back")
            else:
                trim_prompt_cache(cache, surplus)
            self.lengths[sequence] = len
        return {"len": self.lengths[sequence]}, b""

    def len(self, sequence: Any) -> tuple[dict[str, Any], bytes]:
        """Number of tokens."""
        self._known(sequence)
        return {"len": self.lengths[sequence]}, b""

    def remove(self, sequence: Any) -> tuple[dict[str, Any], bytes]:
        """Forgets a sequence."""
        self._known(sequence)
        del self.caches[sequence], self.lengths[sequence]
        return {}, b""

    def _check(self, work: Any) -> None:
        """Refuses what can't be fed as a whole, before anything is changed."""
        if not isinstance(work, list) or not work:
            raise FaultError("client", "work must be a list of [sequence, [id, …]]")
        seen: set[int] = set()
        context, width = self._context(), self._width()
        for item in work:
            if not isinstance(item, list) or len(item) != 2 or not isinstance(item[1], list) or not item[1]:
                raise FaultError("client", "work must be a list of [sequence, [id, …]] with an id at least")
            sequence, ids = item
            self._known(sequence)
            if sequence in seen:
                raise FaultError("client", f"sequence {sequence} is named twice")
            seen.add(sequence)
            for id in ids:
                if not _is_count(id) or id >= width:
                    raise FaultError("client", f"token {id!r} is past the model's {width} tokens")
            length = self.lengths[sequence] + len(ids)
            if context is not None and length > context:
                raise FaultError("limit", f"{length} tokens don't fit into the model's context of {context}")

    def _known(self, sequence: Any) -> list[Any]:
        if not _is_count(sequence) or sequence not in self.caches:
            raise FaultError("client", f"there is no sequence {sequence!r}")
        return self.caches[sequence]

    def _cache(self) -> list[Any]:
        from mlx_lm.models.cache import make_prompt_cache

        cache: list[Any] = make_prompt_cache(self.model)
        return cache

    def _context(self) -> int | None:
        context = getattr(self.arguments, "max_position_embeddings", None)
        return context if isinstance(context, int) else None

    def _width(self) -> int:
        if self.width is None:
            import mlx.core as mx

            self.width = int(self.model(mx.array([[0]])).shape[-1])
        return self.width


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def serve(worker: Worker, requests: IO[str], answers: IO[bytes]) -> None:
    """Answers requests until there are no more."""
    for line in requests:
        if not line.strip():
            continue
        try:
            request = json.loads(line)
        except ValueError:
            request = None
        answer, data = worker.answer(request)
        answers.write(json.dumps(answer).encode() + b"\n" + data)
        answers.flush()


def main() -> None:
    """Loads a model and serves it on stdin and stdout."""
    arguments = argparse.ArgumentParser(prog="python -m maskwright.mlx_worker")
    arguments.add_argument("--model", required=True, help="a folder or a name that mlx-lm loads")
    given = arguments.parse_args()
    # Answers have stdout for themselves.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

    import mlx_lm

    model, tokenizer = mlx_lm.load(given.model)[:2]
    serve(Worker(model, tokenizer, given.model), sys.stdin, answers)


if __name__ == "__main__":
    main()
