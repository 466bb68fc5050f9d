import json
import pathlib

import pytest
from conftest import fixture_path

from maskwright import InternalError, UnsupportedError, Vocabulary


def test_single_bytes_are_their_own_ids() -> None:
    vocab = Vocabulary.single_bytes()
    assert (vocab.size, vocab.stop_tokens, vocab.bos_token) == (257, [256], None)
    assert vocab.encode("hé") == list("hé".encode())
    assert vocab.decode([104, 105, 256]) == b"hi"
    assert vocab.token(256) == b"<|end|>"
    assert vocab.special("<|end|>") == 256
    assert vocab.is_special(256)
    assert vocab.encode("<|end|>", specials=True) == [256]
    assert vocab.token(9999) == b""


def test_a_tokenizer_file_is_read_with_what_stands_beside_it(qwen3: Vocabulary, qwen3_files: tuple[str, str]) -> None:
    assert qwen3.stop_tokens == [qwen3.special("<|im_end|>")]
    # The chat template's family has markers that the file doesn't flag.
    assert qwen3.special("<tool_call>") is not None
    plain = Vocabulary.from_tokenizer_json(qwen3_files[0].encode(), stop_texts=["<|endoftext|>"])
    assert plain.stop_tokens == [plain.special("<|endoftext|>")]
    assert plain.special("<tool_call>") is None
    assert plain.fingerprint != qwen3.fingerprint


def test_a_gguf_file_is_read(smollm2_path: pathlib.Path) -> None:
    vocab = Vocabulary.from_gguf(smollm2_path)
    assert vocab.size == 49152
    assert vocab.decode(vocab.encode("Grüße, 42!")) == "Grüße, 42!".encode()


def test_tiktokens_ranks_encode_as_the_tokenizer_file_does() -> None:
    text = (fixture_path("tokenizers/gptoss") / "tokenizer.json").read_text()
    file = json.loads(text)
    expected = Vocabulary.from_tokenizer_json(text, stop_texts=["<|return|>"])
    specials = [(token["content"], token["id"]) for token in file["added_tokens"]]
    known = {id for _, id in specials}
    ranks = [(expected.token(id), id) for id in file["model"]["vocab"].values() if id not in known]
    (pattern,) = [
        part["pattern"]["Regex"] for part in file["pre_tokenizer"]["pretokenizers"] if part["type"] == "Split"
    ]
    vocab = Vocabulary.from_tiktoken(ranks, pattern, specials, stop_texts=["<|return|>"])
    assert (vocab.size, vocab.stop_tokens) == (expected.size, expected.stop_tokens)
    for sample in ["Hello, world!", '{"name": "Ada", "age": 36}', "naïve 東京  \n\n x=12345", "<|return|>"]:
        assert vocab.encode(sample) == expected.encode(sample)
    assert vocab.encode("<|return|>", specials=True) == expected.stop_tokens


def test_ranks_without_a_byte_are_refused() -> None:
    with pytest.raises(ValueError, match="no token for the byte 0x01"):
        Vocabulary.from_tiktoken([(b"\0", 0)], "x", [])


def test_what_cant_be_read_is_an_error_with_its_place() -> None:
    with pytest.raises(InternalError, match="tokenizer can't be read"):
        Vocabulary.from_tokenizer_json("{}")
    with pytest.raises(UnsupportedError, match="fast tokenizer"):
        Vocabulary.from_transformers(object())


def test_a_fast_tokenizer_is_read(qwen3: Vocabulary, tmp_path: pathlib.Path) -> None:
    transformers = pytest.importorskip("transformers")
    folder = fixture_path("tokenizers/qwen3")
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    vocab = Vocabulary.from_transformers(tokenizer, stop_ids=[151643])
    assert set(vocab.stop_tokens) == {151643, 151645}
    assert vocab.encode("Grüße {}") == qwen3.encode("Grüße {}")
    assert vocab.special("<tool_call>") == qwen3.special("<tool_call>")
