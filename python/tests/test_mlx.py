"""The real mlx-lm, on tiny models with random weights and Qwen 3's vocabulary."""

import io
import json
from typing import Any

import numpy
import pytest
from conftest import assert_valid, fixture_path
from schemas import CAPS, SCHEMAS

from maskwright import Compiler, RequestError, Vocabulary

mx = pytest.importorskip("mlx.core")
mlx_lm = pytest.importorskip("mlx_lm")

WIDTH = 151_936


def tiny(seed: int, layers: int = 2) -> Any:
    from mlx_lm.models import qwen3

    mx.random.seed(seed)
    model = qwen3.Model(
        qwen3.ModelArgs(
            model_type="qwen3",
            hidden_size=32,
            num_hidden_layers=layers,
            intermediate_size=64,
            num_attention_heads=4,
            rms_norm_eps=1e-6,
            vocab_size=WIDTH,
            num_key_value_heads=2,
            max_position_embeddings=512,
            rope_theta=10000.0,
            head_dim=8,
            tie_word_embeddings=True,
        )
    )
    mx.eval(model.parameters())
    return model


@pytest.fixture(scope="module")
def model() -> Any:
    return tiny(0)


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    from mlx_lm.tokenizer_utils import load

    return load(fixture_path("tokenizers/qwen3"))


@pytest.fixture(scope="module")
def compiler(tokenizer: Any) -> Compiler:
    return Compiler(Vocabulary.from_transformers(tokenizer))


@pytest.fixture(scope="module")
def sampler() -> Any:
    from mlx_lm.sample_utils import make_sampler

    return make_sampler(temp=1.0)


@pytest.mark.parametrize("name", SCHEMAS)
def test_replies_at_temperature_1(model: Any, tokenizer: Any, compiler: Compiler, sampler: Any, name: str) -> None:
    from maskwright.mlx import LogitsProcessor

    compiled = compiler.json_schema(SCHEMAS[name], **CAPS)
    for seed in range(3):
        mx.random.seed(seed)
        text = mlx_lm.generate(
            model,
            tokenizer,
            "Give an example.",
            max_tokens=400,
            sampler=sampler,
            logits_processors=[LogitsProcessor(compiled)],
        )
        assert_valid(text, SCHEMAS[name])


@pytest.mark.parametrize("name", ["person", "free keys", "union"])
def test_speculation_shows_drafts_and_drops_them(
    model: Any, tokenizer: Any, compiler: Compiler, sampler: Any, name: str
) -> None:
    from maskwright.mlx import LogitsProcessor

    compiled = compiler.json_schema(SCHEMAS[name], **CAPS)
    draft = tiny(1, layers=1)
    for seed in range(2):
        for one in (sampler, None):
            mx.random.seed(seed)
            text = mlx_lm.generate(
                model,
                tokenizer,
                "Give an example.",
                max_tokens=200,
                draft_model=draft,
                num_draft_tokens=3,
                sampler=one,
                logits_processors=[LogitsProcessor(compiled)],
            )
            assert_valid(text, SCHEMAS[name])


def test_speculation_says_what_the_model_alone_says(model: Any, tokenizer: Any, compiler: Compiler) -> None:
    from maskwright.mlx import LogitsProcessor

    compiled = compiler.json_schema(SCHEMAS["nested"], **CAPS)

    def reply(**options: Any) -> str:
        text: str = mlx_lm.generate(
            model,
            tokenizer,
            "x y z",
            max_tokens=200,
            logits_processors=[LogitsProcessor(compiled)],
            **options,
        )
        return text

    assert reply(draft_model=tiny(2, layers=1), num_draft_tokens=4) == reply()


def test_batches(model: Any, tokenizer: Any, compiler: Compiler, sampler: Any) -> None:
    from mlx_lm.generate import BatchGenerator

    from maskwright.mlx import logits_processors

    names = ["person", "boolean", "array of numbers", "date"]
    compiled = [compiler.json_schema(SCHEMAS[name], **CAPS) for name in names]
    prompts = [tokenizer.encode(text) for text in ("One", "Give me another one", "three", "four or five of them")]
    generator = BatchGenerator(model, stop_tokens=[[id] for id in tokenizer.eos_token_ids], sampler=sampler)
    uids = generator.insert(prompts, [400] * 4, logits_processors=logits_processors(compiled, 4))
    replies: dict[int, list[int]] = {uid: [] for uid in uids}
    while responses := generator.next_generated():
        for response in responses:
            if response.finish_reason != "stop":
                replies[response.uid].append(response.token)
    for uid, name in zip(uids, names):
        assert_valid(compiler.vocabulary.decode(replies[uid]).decode(), SCHEMAS[name])
    with pytest.raises(ValueError, match="4 constraints, but 3 sequences"):
        logits_processors(compiled, 3)


def test_a_mask_that_was_undone_is_an_error(compiler: Compiler) -> None:
    from maskwright.mlx import LogitsProcessor

    processor = LogitsProcessor(compiler.choice(["yes"]))
    processor(mx.array([5]), mx.zeros((1, WIDTH)))
    with pytest.raises(RequestError, match="token 0 of the reply"):
        processor(mx.array([5, 6]), mx.zeros((1, WIDTH)))


@pytest.fixture(scope="module")
def worker(model: Any, tokenizer: Any) -> Any:
    from maskwright.mlx_worker import Worker

    return Worker(model, tokenizer, "tiny")


def ask(worker: Any, *requests: Any) -> list[tuple[dict[str, Any], bytes]]:
    """Answers to requests, over the protocol."""
    from maskwright.mlx_worker import serve

    lines = io.StringIO("".join((r if isinstance(r, str) else json.dumps(r)) + "\n" for r in requests))
    out = io.BytesIO()
    serve(worker, lines, out)
    out.seek(0)
    answers = []
    while line := out.readline():
        answer = json.loads(line)
        answers.append((answer, out.read(answer.get("bytes", 0))))
    assert len(answers) == len(requests)
    return answers


def test_the_worker_describes_its_model(worker: Any, compiler: Compiler) -> None:
    ((answer, _),) = ask(worker, {"op": "hello"})
    assert (answer["ok"], answer["protocol"], answer["width"], answer["context"]) == (True, 1, WIDTH, 512)
    vocab = Vocabulary.from_tokenizer_json(answer["tokenizer"], stop_ids=answer["stop_tokens"])
    assert vocab.encode("Grüße") == compiler.vocabulary.encode("Grüße")


def test_the_workers_logits_are_the_models(worker: Any, model: Any) -> None:
    answers = ask(
        worker,
        {"op": "add"},
        {"op": "add"},
        {"op": "feed", "work": [[0, [1, 2, 3]], [1, [4]]]},
        {"op": "feed", "work": [[0, [9]]]},
        {"op": "truncate", "sequence": 0, "len": 3},
        {"op": "feed", "work": [[0, [4]]]},
        {"op": "truncate", "sequence": 1, "len": 0},
        {"op": "feed", "work": [[1, [1, 2]]]},
        {"op": "len", "sequence": 0},
        {"op": "remove", "sequence": 1},
    )
    assert [answer["ok"] for answer, _ in answers] == [True] * len(answers)

    def expected(ids: list[int]) -> Any:
        return numpy.array(model(mx.array([ids]))[0, -1].astype(mx.float32))

    def rows(index: int) -> Any:
        answer, data = answers[index]
        return numpy.frombuffer(data, dtype="<f4").reshape(answer["rows"], answer["width"])

    for index, row, ids in [(2, 0, [1, 2, 3]), (2, 1, [4]), (5, 0, [1, 2, 3, 4]), (7, 0, [1, 2])]:
        numpy.testing.assert_allclose(rows(index)[row], expected(ids), atol=1e-4)
    assert answers[8][0]["len"] == 4


def test_a_request_that_fails_changes_nothing(worker: Any) -> None:
    ((added, _),) = ask(worker, {"op": "add"})
    sequence = added["sequence"]
    ask(worker, {"op": "feed", "work": [[sequence, [1, 2]]]})
    cases: list[tuple[Any, str]] = [
        ("{", "client"),
        ([], "client"),
        ({"op": "dance"}, "client"),
        ({"op": "feed"}, "client"),
        ({"op": "feed", "work": []}, "client"),
        ({"op": "feed", "work": [[sequence, []]]}, "client"),
        ({"op": "feed", "work": [[sequence, [1]], [sequence, [1]]]}, "client"),
        ({"op": "feed", "work": [[sequence, [1]], [999, [1]]]}, "client"),
        ({"op": "feed", "work": [[sequence, [WIDTH]]]}, "client"),
        ({"op": "feed", "work": [[sequence, [True]]]}, "client"),
        ({"op": "feed", "work": [[sequence, [1] * 511]]}, "limit"),
        ({"op": "truncate", "sequence": sequence, "len": -1}, "client"),
        ({"op": "len", "sequence": "0"}, "client"),
    ]
    for request, fault in cases:
        ((answer, _),) = ask(worker, request)
        assert (answer["ok"], answer["fault"]) == (False, fault), request
        assert answer["error"]
    ((answer, _),) = ask(worker, {"op": "len", "sequence": sequence})
    assert answer["len"] == 2
