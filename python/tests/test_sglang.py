"""SGLang's grammar backend, driven as its scheduler drives it."""

import json
from typing import Any, NamedTuple

import pytest
from conftest import assert_valid, fixture_path
from schemas import SCHEMAS
from stand_ins import real_or_stand_in
from stand_ins import sglang as in_shape

torch = pytest.importorskip("torch")
torch.set_num_threads(1)
transformers = pytest.importorskip("transformers")
interface, IS_REAL = real_or_stand_in("sglang.srt.constrained.base_grammar_backend", in_shape())

WIDTH = 151_936


class Row(NamedTuple):
    row: int
    grammar: Any


@pytest.fixture(scope="module")
def backend() -> Any:
    from maskwright import sglang

    print("the real SGLang" if IS_REAL else "SGLang in shape only: it can't be imported here")
    sglang.register()
    tokenizer = transformers.AutoTokenizer.from_pretrained(fixture_path("tokenizers/qwen3"))
    return interface.GRAMMAR_BACKEND_REGISTRY["maskwright"](None, tokenizer, WIDTH, {151645})


def test_a_batch_of_requests(backend: Any) -> None:
    torch.manual_seed(0)
    # Only those that are bounded by themselves: requests have no caps.
    names = [name for name in SCHEMAS if name not in ("array of numbers", "person", "nested")]
    grammars = [backend.dispatch_json(json.dumps(SCHEMAS[name])).copy() for name in names for _ in range(3)]
    outputs: list[list[int]] = [[] for _ in grammars]
    masks = grammars[0].allocate_vocab_mask(WIDTH, len(grammars), "cpu")
    for _ in range(300):
        if all(grammar.is_terminated() for grammar in grammars):
            break
        type(grammars[0]).reset_vocab_mask(masks)
        grammars[0].fill_vocab_mask_batched([Row(row, one) for row, one in enumerate(grammars)], masks)
        logits = torch.randn(len(grammars), WIDTH)
        grammars[0].apply_vocab_mask(logits, grammars[0].move_vocab_mask(masks, "cpu"))
        for grammar, output, token in zip(
            grammars, outputs, torch.multinomial(logits.softmax(-1), 1).flatten().tolist()
        ):
            if not grammar.is_terminated():
                output.append(token)
                grammar.accept_token(token)
    vocab = backend._compiler.vocabulary
    for index, output in enumerate(outputs):
        assert grammars[index].finished
        assert_valid(vocab.decode(output).decode(), SCHEMAS[names[index // 3]])


def test_going_back_and_jumping_ahead(backend: Any) -> None:
    vocab = backend._compiler.vocabulary
    grammar = backend.dispatch_json(json.dumps(SCHEMAS["constant"]))
    tokens, _ = grammar.try_jump_forward(None)
    assert vocab.decode(tokens).startswith(b'{"kind":"fixed"')
    for token in tokens:
        grammar.accept_token(token)
    grammar.rollback(len(tokens) - 1)
    assert grammar.matcher.tokens == tokens[:1]
    grammar.jump_and_retokenize(tokens[:1], tokens, -1)
    assert grammar.matcher.tokens == tokens
    with pytest.raises(ValueError, match="isn't allowed"):
        grammar.accept_token(0)
    fresh = grammar.copy()
    assert fresh.matcher.tokens == []
    assert fresh.matcher.mask() == backend.dispatch_json(json.dumps(SCHEMAS["constant"])).matcher.mask()


def test_every_kind_is_served_or_refused(backend: Any) -> None:
    for grammar in (
        backend.dispatch_json("$$ANY$$"),
        backend.dispatch_regex("a+"),
        backend.dispatch_ebnf('root ::= "x"'),
        backend.dispatch_structural_tag('{"format": {"type": "any_text", "excludes": ["<"]}}'),
    ):
        assert not isinstance(grammar, interface.InvalidGrammarObject)
    for grammar, message in (
        (backend.dispatch_json('{"minLenght": 1}'), "/minLenght"),
        (backend.dispatch_json("{"), "1:"),
        (backend.dispatch_regex("("), "unclosed"),
        (backend.dispatch_ebnf("root ::= x"), "no rule"),
        (backend.dispatch_structural_tag("{}"), "has neither a format"),
    ):
        assert isinstance(grammar, interface.InvalidGrammarObject)
        assert message in grammar.error_message
