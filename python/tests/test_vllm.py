"""vLLM's logits processor, driven as its model runner drives it: requests join, leave and change places."""

import dataclasses
import json
import random
import types
from typing import Any

import pytest
from conftest import assert_valid
from schemas import CAPS, SCHEMAS
from stand_ins import real_or_stand_in
from stand_ins import vllm as in_shape

from maskwright import UnsupportedError, Vocabulary

torch = pytest.importorskip("torch")
torch.set_num_threads(1)
interface, IS_REAL = real_or_stand_in("vllm.v1.sample.logits_processor", in_shape())

WIDTH = 151_936


@dataclasses.dataclass
class Params:
    extra_args: dict[str, Any] | None = None


@pytest.fixture
def processor(qwen3: Vocabulary, monkeypatch: pytest.MonkeyPatch) -> Any:
    from maskwright import vllm

    print("the real vLLM" if IS_REAL else "vLLM in shape only: it can't be imported here")
    monkeypatch.setattr(vllm, "_vocabulary", lambda config: qwen3)
    return vllm.LogitsProcessor(types.SimpleNamespace(), torch.device("cpu"), False)


def update(removed: Any = (), added: Any = (), moved: Any = ()) -> Any:
    return interface.BatchUpdate(batch_size=8, removed=removed, added=added, moved=moved)


@dataclasses.dataclass
class Request:
    """A request, and where it stands in the batch."""

    schema: Any
    output: list[int] = dataclasses.field(default_factory=list)

    @property
    def params(self) -> Params:
        if self.schema is None:
            return Params()
        return Params({"maskwright": json.dumps({"json_schema": self.schema, **CAPS})})


def test_requests_keep_their_constraints_through_a_moving_batch(processor: Any, qwen3: Vocabulary) -> None:
    draw = random.Random(1)
    torch.manual_seed(1)
    waiting = [Request(SCHEMAS[name]) for name in SCHEMAS for _ in range(3)]
    waiting[5:5] = [Request(None), Request(None)]
    batch: list[Request] = []
    finished = 0
    while waiting or batch:
        removed, added, moved = [], [], []
        # Those that ended leave; the last takes the first free place, as vLLM condenses its batch.
        ended = [at for at, one in enumerate(batch) if _has_ended(one, qwen3)]
        for at in reversed(ended):
            one = batch[at]
            if one.schema is not None:
                ids = [id for id in one.output if id not in qwen3.stop_tokens]
                assert_valid(qwen3.decode(ids).decode(), one.schema)
            finished += 1
            last = len(batch) - 1
            if at != last:
                moved.append((last, at, interface.MoveDirectionality.UNIDIRECTIONAL))
            batch[at] = batch[last]
            batch.pop()
            removed.append(at)
        if ended:
            processor.update_state(update(removed=removed, moved=moved))
            moved = []
        while waiting and len(batch) < 8:
            one = waiting.pop(0)
            added.append((len(batch), one.params, [1, 2], one.output))
            batch.append(one)
        if len(batch) > 1 and draw.random() < 0.3:
            a, b = draw.sample(range(len(batch)), 2)
            batch[a], batch[b] = batch[b], batch[a]
            moved.append((a, b, interface.MoveDirectionality.SWAP))
        processor.update_state(update(added=added, moved=moved) if added or moved else None)
        if not batch:
            break
        logits = processor.apply(torch.randn(len(batch), WIDTH))
        tokens = torch.multinomial(logits.softmax(-1), 1).flatten().tolist()
        for one, token in zip(batch, tokens):
            one.output.append(token)
    assert finished == 62


def _has_ended(one: Request, vocab: Vocabulary) -> bool:
    return bool(one.output) and (one.output[-1] in vocab.stop_tokens or (one.schema is None and len(one.output) > 20))


def test_a_row_without_a_constraint_isnt_touched(processor: Any) -> None:
    logits = torch.randn(2, WIDTH)
    assert processor.apply(logits) is logits
    processor.update_state(update(added=[(1, Params({"maskwright": {"choice": ["yes"]}}), [1], [])]))
    before = logits.clone()
    masked = processor.apply(logits)
    assert (masked[0] == before[0]).all()
    assert masked[1].isfinite().sum() < 10
    processor.update_state(update(removed=[1]))
    after = torch.randn(2, WIDTH)
    assert (processor.apply(after.clone()) == after).all()
    assert processor.is_argmax_invariant() is False


def test_a_bad_constraint_is_refused_before_it_is_queued(processor: Any) -> None:
    kind = type(processor)
    kind.validate_params(Params())
    kind.validate_params(Params({"other": 1}))
    kind.validate_params(Params({"maskwright": {"regex": "a+"}}))
    for spec in (
        {"json_schema": {"minLenght": 1}},
        {"regex": "("},
        {},
        {"regex": "a", "choice": ["b"]},
        "{",
        3,
        {"gbnf": "x"},
        {"json_object": False},
        {"regex": "a", "whitespace": "compact"},
    ):
        with pytest.raises(ValueError, match=r"constraint|json|regex|choice|gbnf"):
            kind.validate_params(Params({"maskwright": spec}))


def test_a_token_that_isnt_known_yet_is_an_error(processor: Any) -> None:
    output: list[int] = []
    processor.update_state(update(added=[(0, Params({"maskwright": {"regex": "a"}}), [1], output)]))
    output.append(-1)
    with pytest.raises(UnsupportedError, match="async"):
        processor.apply(torch.zeros(1, WIDTH))


def test_the_entry_point_names_the_processor() -> None:
    from importlib.metadata import entry_points

    (point,) = [point for point in entry_points(group="vllm.logits_processors") if point.name == "maskwright"]
    assert point.value == "maskwright.vllm:LogitsProcessor"
    from maskwright import vllm

    assert point.load() is vllm.LogitsProcessor
    assert issubclass(vllm.LogitsProcessor, interface.LogitsProcessor)
