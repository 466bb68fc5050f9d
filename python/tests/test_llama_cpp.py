"""The real llama-cpp-python, with SmolLM2."""

import pathlib
from typing import Any

import numpy
import pytest
from conftest import assert_valid
from schemas import CAPS, SCHEMAS

from maskwright import Compiler, RequestError

llama_cpp = pytest.importorskip("llama_cpp")


@pytest.fixture(scope="module")
def llama(smollm2_path: pathlib.Path) -> Any:
    return llama_cpp.Llama(str(smollm2_path), n_ctx=1024, verbose=False)


@pytest.fixture(scope="module")
def compiler(llama: Any) -> Compiler:
    import maskwright.llama_cpp

    return Compiler(maskwright.llama_cpp.vocabulary(llama))


@pytest.mark.parametrize("name", SCHEMAS)
def test_replies_at_temperature_1(llama: Any, compiler: Compiler, name: str) -> None:
    from maskwright.llama_cpp import LogitsProcessor

    compiled = compiler.json_schema(SCHEMAS[name], **CAPS)
    for seed in range(3):
        processors = llama_cpp.LogitsProcessorList([LogitsProcessor(compiled)])
        reply = llama.create_completion(
            "Give an example:\n",
            max_tokens=400,
            temperature=1.0,
            top_k=0,
            top_p=1.0,
            min_p=0.0,
            seed=seed,
            logits_processor=processors,
        )
        assert reply["choices"][0]["finish_reason"] == "stop"
        assert_valid(reply["choices"][0]["text"], SCHEMAS[name])


def test_a_mask_that_was_undone_is_an_error(compiler: Compiler) -> None:
    from maskwright.llama_cpp import LogitsProcessor

    processor = LogitsProcessor(compiler.choice(["yes"]))
    scores = numpy.zeros(compiler.vocabulary.size, dtype=numpy.single)
    processor(numpy.array([5], dtype=numpy.intc), scores)
    with pytest.raises(RequestError, match="token 0 of the reply"):
        processor(numpy.array([5, 6], dtype=numpy.intc), scores)
