"""The real `generate`, on a tiny Llama with random weights and Qwen 3's vocabulary."""

from typing import Any

import pytest
from conftest import assert_valid, fixture_path
from schemas import CAPS, SCHEMAS

from maskwright import Compiled, Compiler, RequestError, Vocabulary

torch = pytest.importorskip("torch")
torch.set_num_threads(1)
transformers = pytest.importorskip("transformers")

# Wider than the vocabulary, as Qwen's own head is.
WIDTH = 151_936


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return transformers.AutoTokenizer.from_pretrained(fixture_path("tokenizers/qwen3"), padding_side="left")


@pytest.fixture(scope="module")
def model() -> Any:
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=WIDTH,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=2048,
        eos_token_id=151645,
        pad_token_id=151643,
        bos_token_id=None,
    )
    return transformers.LlamaForCausalLM(config).eval()


@pytest.fixture(scope="module")
def compiler(tokenizer: Any, model: Any) -> Compiler:
    return Compiler(Vocabulary.from_transformers(tokenizer, generation_config=model.generation_config))


def generate(
    model: Any, tokenizer: Any, compiler: Compiler, constraints: Any, prompts: list[str], **options: Any
) -> list[str]:
    from maskwright.transformers import LogitsProcessor

    inputs = tokenizer(prompts, return_tensors="pt", padding=True)
    processor = LogitsProcessor(constraints, num_beams=options.get("num_beams", 1))
    output = model.generate(
        **inputs,
        logits_processor=[processor],
        max_new_tokens=400,
        eos_token_id=compiler.vocabulary.stop_tokens,
        **options,
    )
    replies = output[:, inputs["input_ids"].shape[1] :].tolist()
    stops = compiler.vocabulary.stop_tokens
    texts = []
    for ids in replies:
        end = next(at for at, id in enumerate(ids) if id in stops)
        texts.append(compiler.vocabulary.decode(ids[:end]).decode())
    return texts


@pytest.mark.parametrize("name", SCHEMAS)
def test_batches_at_temperature_1(model: Any, tokenizer: Any, compiler: Compiler, name: str) -> None:
    compiled = compiler.json_schema(SCHEMAS[name], **CAPS)
    prompts = ["One", "Give me another one", "", "three"]
    for seed in range(3):
        torch.manual_seed(seed)
        for text in generate(model, tokenizer, compiler, compiled, prompts, do_sample=True, temperature=1.0, top_k=0):
            assert_valid(text, SCHEMAS[name])


@pytest.mark.parametrize("name", ["person", "union", "array of numbers", "free keys", "enumeration", "boolean"])
def test_greedy_and_beams(model: Any, tokenizer: Any, compiler: Compiler, name: str) -> None:
    compiled = compiler.json_schema(SCHEMAS[name], **CAPS)
    for options in (
        {"num_beams": 1},
        {"num_beams": 4},
        {"num_beams": 3, "do_sample": True, "num_return_sequences": 1},
    ):
        for text in generate(model, tokenizer, compiler, compiled, ["One", "two"], **options):
            assert_valid(text, SCHEMAS[name])


def test_beams_find_the_likeliest_text(model: Any, tokenizer: Any, compiler: Compiler) -> None:
    """With as many beams as there are texts, beam search is exact."""
    choices = ["ab", "ba", "cab", "dd"]
    compiled: Compiled = compiler.choice(choices)
    (found,) = generate(model, tokenizer, compiler, compiled, ["x"], num_beams=8, length_penalty=0.0)
    prompt = tokenizer("x")["input_ids"]

    def score(text: str) -> float:
        # Beam search sums over the tokens that masks allow, not renormalised; ours are the tokens of that text.
        ids = [*compiler.vocabulary.encode(text), 151645]
        logits = model(torch.tensor([prompt + ids])).logits[0].log_softmax(-1)
        return float(sum(logits[len(prompt) + at - 1, id] for at, id in enumerate(ids)))

    assert found in choices
    best = max(choices, key=score)
    assert score(found) == pytest.approx(score(best), abs=0.2)


def test_each_prompt_may_have_a_constraint_of_its_own(model: Any, tokenizer: Any, compiler: Compiler) -> None:
    from maskwright.transformers import LogitsProcessor

    constraints = [compiler.regex("[0-9]{4}"), None, compiler.choice(["yes"])]
    inputs = tokenizer(["a", "b", "c"], return_tensors="pt", padding=True)
    output = model.generate(
        **inputs,
        logits_processor=[LogitsProcessor(constraints)],
        max_new_tokens=8,
        do_sample=True,
        eos_token_id=compiler.vocabulary.stop_tokens,
    )
    replies = [compiler.vocabulary.decode(ids) for ids in output[:, inputs["input_ids"].shape[1] :].tolist()]
    assert len(replies[0]) == 4
    assert replies[0].isdigit()
    assert replies[2] == b"yes"
    with pytest.raises(ValueError, match="2 constraints, but 3 rows"):
        LogitsProcessor(constraints[:2])(inputs["input_ids"], torch.zeros((3, WIDTH)))


def test_assisted_generation_goes_back(model: Any, tokenizer: Any, compiler: Compiler) -> None:
    compiled = compiler.json_schema(SCHEMAS["person"], **CAPS)
    torch.manual_seed(3)
    assistant = transformers.LlamaForCausalLM(model.config).eval()
    assistant.generation_config.num_assistant_tokens = 3
    (text,) = generate(model, tokenizer, compiler, compiled, ["One"], assistant_model=assistant)
    assert_valid(text, SCHEMAS["person"])


def test_a_mask_that_was_undone_is_an_error(compiler: Compiler) -> None:
    from maskwright.transformers import LogitsProcessor

    processor = LogitsProcessor(compiler.choice(["yes"]))
    processor(torch.tensor([[5]]), torch.zeros((1, WIDTH)))
    with pytest.raises(RequestError, match="token 0 of the reply"):
        processor(torch.tensor([[5, 6]]), torch.zeros((1, WIDTH)))
