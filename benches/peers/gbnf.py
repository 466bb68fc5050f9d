"""Masks under GBNF grammars: llama.cpp's own grammar sampler, and llguidance with its converter.

The same grammars, texts and vocabulary as `benches/gbnf.rs`. Needs `pip install llama-cpp-python llguidance gguf
tokenizers`; `python benches/peers/gbnf.py TOKENIZER_DIR [ROUNDS]`, where the folder holds llama 3.1's tokenizer.json.
llama.cpp has no mask: what is timed is `llama_sampler_apply` on all candidates, which does the same.
"""

import ctypes
import json
import pathlib
import statistics
import sys
import tempfile
import time

import gguf
import llama_cpp
import llguidance
import tokenizers
from llguidance.gbnf_to_lark import gbnf_to_lark

ROOT = pathlib.Path(__file__).resolve().parents[2]
GRAMMARS = {
    "json": ROOT / "grammars/json.gbnf",
    "arithmetic": ROOT / "grammars/arithmetic.gbnf",
    "c-like": ROOT / "benches/gbnf/c-like.gbnf",
    "end": ROOT / "benches/gbnf/end.gbnf",
}


def vocabulary_file(tokenizer: dict, path: str) -> None:
    """A GGUF file with a vocabulary and nothing else."""
    vocab = dict(tokenizer["model"]["vocab"])
    special = set()
    for token in tokenizer["added_tokens"]:
        vocab[token["content"]] = token["id"]
        special.add(token["id"])
    texts = [text for text, _ in sorted(vocab.items(), key=lambda item: item[1])]
    merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in tokenizer["model"]["merges"]]
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("llama-bpe")
    writer.add_token_list(texts)
    writer.add_token_types([3 if index in special else 1 for index in range(len(texts))])
    writer.add_token_merges(merges)
    writer.add_eos_token_id(vocab["<|end_of_text|>"])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def llama_cpp_times(vocab, grammar: str, ids: list) -> list:
    sampler = llama_cpp.llama_sampler_init_grammar(vocab, grammar.encode(), b"root")
    count = llama_cpp.llama_vocab_n_tokens(vocab)
    data = (llama_cpp.llama_token_data * count)()
    times = []
    for token in ids:
        for index in range(count):
            data[index].id = index
            data[index].logit = 0.0
        array = llama_cpp.llama_token_data_array(data=data, size=count, selected=-1, sorted=False)
        start = time.perf_counter()
        llama_cpp.llama_sampler_apply(sampler, ctypes.byref(array))
        applied = time.perf_counter()
        assert data[token].logit == 0.0, f"token {token} is refused"
        again = time.perf_counter()
        llama_cpp.llama_sampler_accept(sampler, token)
        times.append((applied - start + time.perf_counter() - again) * 1e6)
    llama_cpp.llama_sampler_free(sampler)
    return times


def llguidance_times(tokenizer, grammar: str, ids: list, rounds: int) -> tuple:
    mask = bytearray((tokenizer.vocab_size + 31) // 32 * 4)
    address = (ctypes.c_char * len(mask)).from_buffer(mask)
    first, warm = [], []
    # The converter doesn't read these two escapes; spelled otherwise, the language is the same.
    plain = grammar.replace("[+\\-]", "[+-]").replace('["\\\\/bfnrt]', '["\\\\bfnrt/]')
    matcher = llguidance.LLMatcher(tokenizer, gbnf_to_lark(plain), log_level=0)
    for round_number in range(rounds + 1):
        matcher.reset()
        for place, token in enumerate(ids):
            start = time.perf_counter()
            matcher.unsafe_compute_mask_ptr(ctypes.addressof(address), len(mask))
            taken = matcher.consume_token(token)
            elapsed = (time.perf_counter() - start) * 1e6
            if not taken:
                return None, f"refuses token {place} of a text the grammar accepts"
            (warm if round_number else first).append(elapsed)
    return first, warm


def main() -> None:
    folder = pathlib.Path(sys.argv[1])
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 20
    text = (folder / "tokenizer.json").read_text(encoding="utf-8")
    encode = tokenizers.Tokenizer.from_str(text)
    with tempfile.TemporaryDirectory() as scratch:
        path = f"{scratch}/vocabulary.gguf"
        vocabulary_file(json.loads(text), path)
        model = llama_cpp.Llama(path, vocab_only=True, verbose=False)
    vocab = llama_cpp.llama_model_get_vocab(model.model)
    theirs = llguidance.LLTokenizer(text)
    print(f"llama-cpp-python {llama_cpp.__version__}, llguidance {llguidance.__version__ if hasattr(llguidance, '__version__') else ''}, {rounds} rounds")
    print("| grammar | tokens | llama.cpp mean µs | llama.cpp p50 µs | llguidance first mean | warm mean | warm p50 |")
    print("|---|---|---|---|---|---|---|")
    for name, grammar_path in GRAMMARS.items():
        grammar = grammar_path.read_text(encoding="utf-8")
        ids = encode.encode((ROOT / f"benches/gbnf/{name}.txt").read_text(encoding="utf-8"), add_special_tokens=False).ids
        slow = llama_cpp_times(vocab, grammar, ids)
        try:
            first, warm = llguidance_times(theirs, grammar, ids, rounds)
            fast = (
                f"{statistics.mean(first):.1f} | {statistics.mean(warm):.1f} | {statistics.median(warm):.1f}"
                if first
                else f"{warm} | |"
            )
        except Exception as error:  # noqa: BLE001 - whatever the converter says
            fast = f"{type(error).__name__} | |"
        print(f"| {name} | {len(ids)} | {statistics.mean(slow):.0f} | {statistics.median(slow):.0f} | {fast} |")


if __name__ == "__main__":
    main()
