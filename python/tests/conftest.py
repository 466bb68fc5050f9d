"""What tests share: fixtures of the repository, vocabularies, and the check that every reply must pass."""

from __future__ import annotations

import json
import os
import pathlib
from typing import Any

import jsonschema
import pytest

import maskwright
from maskwright import Compiler, Vocabulary


def fixture_path(name: str) -> pathlib.Path:
    """A file that `make fixtures` fetches. Without it a test is skipped, unless files are required."""
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
    root = pathlib.Path(os.environ.get("MASKWRIGHT_FIXTURES") or cache / "maskwright" / "fixtures")
    path = root / name
    if not path.exists():
        if os.environ.get("MASKWRIGHT_REQUIRE_FIXTURES"):
            pytest.fail(f"{path} is missing: run `make fixtures`")
        pytest.skip(f"{path} is missing: `make fixtures` fetches it")
    return path


@pytest.fixture(scope="session")
def bytes_compiler() -> Compiler:
    return Compiler(Vocabulary.single_bytes())


@pytest.fixture(scope="session")
def qwen3_files() -> tuple[str, str]:
    folder = fixture_path("tokenizers/qwen3")
    return (folder / "tokenizer.json").read_text(), (folder / "tokenizer_config.json").read_text()


@pytest.fixture(scope="session")
def qwen3(qwen3_files: tuple[str, str]) -> Vocabulary:
    tokenizer, config = qwen3_files
    return Vocabulary.from_tokenizer_json(
        tokenizer, tokenizer_config=config, chat_template=json.loads(config)["chat_template"]
    )


@pytest.fixture(scope="session")
def qwen3_compiler(qwen3: Vocabulary) -> Compiler:
    return Compiler(qwen3)


@pytest.fixture(scope="session")
def smollm2_path() -> pathlib.Path:
    return fixture_path("models/SmolLM2-135M-Instruct.Q4_1.gguf")


@pytest.fixture(scope="session")
def llm(smollm2_path: pathlib.Path) -> maskwright.LLM:
    return maskwright.LLM(str(smollm2_path))


def assert_valid(text: str, schema: Any) -> None:
    """Whether a text is JSON that the schema accepts, by another implementation."""
    validator = jsonschema.Draft202012Validator(schema, format_checker=jsonschema.FormatChecker())
    validator.validate(json.loads(text))


def random_walk(compiled: maskwright.Compiled, seed: int, limit: int = 2000) -> bytes:
    """A text that masks allow, drawn without a model."""
    import random

    draw = random.Random(seed)
    matcher = compiled.matcher()
    for _ in range(limit):
        ids = matcher.mask().ids()
        matcher.commit(draw.choice(ids))
        if matcher.has_ended():
            return compiled.vocabulary.decode(matcher.tokens)
    raise AssertionError("the text didn't end")
