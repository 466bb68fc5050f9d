"""Decoding with llama.cpp on the model and cases of `maskwright bench decode`: free, with its own grammar, and with
maskwright's masks in its decoder (by `maskwright bench pipe`).

    python benches/peers/decode.py MODEL.gguf --maskwright PATH [--rounds N] [--threads N] [--json OUT]

The prompt is that of SmolLM2's template, written out. Greedy, as on the other side. Speed is of everything behind the
first logits; the first token's time has the reading of the prompt in it.
"""

import argparse
import ctypes
import importlib.metadata
import json
import pathlib
import statistics
import struct
import subprocess
import tempfile
import time

import llama_cpp
import numpy
from llama_cpp.llama_grammar import LlamaGrammar

CASES = pathlib.Path(__file__).resolve().parents[2] / "src/bench/decode/cases.json"
PROMPT = (
    "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
    "<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n"
)
PREFILL = 128


class Masks:
    """A logits processor: maskwright's masks, a token a step through pipes. Also the time they take."""

    def __init__(self, command: list, prompt: int) -> None:
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        (self.size,) = struct.unpack("<I", self.read(4))
        self.prompt, self.seconds = prompt, 0.0

    def read(self, count: int) -> bytes:
        data = self.process.stdout.read(count)
        if len(data) < count:
            raise RuntimeError("maskwright ended")
        return data

    def __call__(self, ids, scores):
        start = time.perf_counter()
        if len(ids) > self.prompt:
            self.process.stdin.write(struct.pack("<I", int(ids[-1])))
            self.process.stdin.flush()
        words = numpy.frombuffer(self.read((self.size + 31) // 32 * 4), dtype=numpy.uint8)
        allowed = numpy.unpackbits(words, bitorder="little")[: self.size].astype(bool)
        scores = scores.copy()
        scores[: self.size][~allowed] = -numpy.inf
        scores[self.size :] = -numpy.inf
        self.seconds += time.perf_counter() - start
        return scores

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()


def reply(model, prompt: list, tokens: int, **options) -> dict:
    """Greedy tokens up to the end of the text or `tokens` of them."""
    model.reset()
    stop = {model.token_eos(), model.tokenize(b"<|im_end|>", add_bos=False, special=True)[0]}
    start, first, count = time.perf_counter(), None, 0
    for token in model.generate(prompt, temp=0.0, top_k=1, reset=True, **options):
        first = first or time.perf_counter()
        count += 1
        if token in stop or count == tokens:
            break
    end = time.perf_counter()
    return {
        # The first token was chosen from the logits of the prompt: there are as many passes as further tokens.
        "tokens_per_second": (count - 1) / (end - first) if count > 1 else None,
        "first_token_ms": (first - start) * 1e3,
        "decode_ms": (end - first) * 1e3,
        "tokens": count,
    }


def ways(case: dict, options, scratch: str) -> dict:
    """Name of a way to what it gives to the decoder, made anew each time."""
    flags, own = None, None
    if "json_schema" in case:
        text = json.dumps(case["json_schema"])
        flags, own = ["--json-schema", text], lambda: LlamaGrammar.from_json_schema(text, verbose=False)
    elif "gbnf" in case:
        path = pathlib.Path(scratch) / (case["name"].replace(" ", "-") + ".gbnf")
        path.write_text(case["gbnf"], encoding="utf-8")
        flags, own = ["--grammar", str(path)], lambda: LlamaGrammar.from_string(case["gbnf"], verbose=False)
    elif "regex" in case:
        flags = ["--regex", case["regex"]]
    found = {"free": lambda prompt: {}}
    if own:
        found["own grammar"] = lambda prompt: {"grammar": own()}
    if options.maskwright and flags:
        command = [options.maskwright, "bench", "pipe", "--tokenizer", options.model, *flags]
        found["maskwright's masks"] = lambda prompt: {
            "logits_processor": llama_cpp.LogitsProcessorList([Masks(command, len(prompt))])
        }
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("--maskwright")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--plain-weights", action="store_true", help="for a machine where llama.cpp's own layout crashes")
    parser.add_argument("--max-tokens", type=int, default=48)
    parser.add_argument("--json")
    options = parser.parse_args()
    if options.plain_weights:
        import plain_weights

        plain_weights.use()
    llama_cpp.llama_log_set(ctypes.cast(None, llama_cpp.llama_log_callback), None)
    model = llama_cpp.Llama(
        options.model, n_ctx=1024, n_threads=options.threads, n_threads_batch=options.threads, verbose=False
    )
    cases = json.loads(CASES.read_text(encoding="utf-8"))
    rows: dict = {}
    prefill = []
    with tempfile.TemporaryDirectory() as scratch:
        for turn in range(options.rounds + 1):
            seen = set()
            for case in cases:
                prompt = model.tokenize(PROMPT.format(case["prompt"]).encode(), add_bos=False, special=True)
                for way, given in ways(case, options, scratch).items():
                    if way == "free" and case["prompt"] in seen:
                        continue
                    extra = given(prompt)
                    processors = extra.get("logits_processor", [])
                    measured = reply(model, prompt, options.max_tokens, **extra)
                    for masks in processors:
                        masks.close()
                        measured["grammar_ms"] = masks.seconds * 1e3
                    if turn > 0:  # the first round warms caches
                        rows.setdefault((case["name"], way), []).append(measured)
                seen.add(case["prompt"])
            model.reset()
            long = (model.tokenize(PROMPT.format("Hello").encode(), add_bos=False, special=True) * 8)[:PREFILL]
            start = time.perf_counter()
            model.eval(long)
            prefill.append(PREFILL / (time.perf_counter() - start))

    def row(key: tuple, rounds: list) -> dict:
        median = {}
        for name in ("tokens_per_second", "first_token_ms", "decode_ms", "grammar_ms", "tokens"):
            values = [measured[name] for measured in rounds if measured.get(name) is not None]
            if values:
                median[name] = round(statistics.median(values), 2)
        return {"case": key[0], "way": key[1]} | median

    report = {
        "kind": "decode",
        "engine": "llama.cpp",
        "version": f"llama-cpp-python {importlib.metadata.version('llama-cpp-python')}",
        "model": pathlib.Path(options.model).name,
        "threads": options.threads,
        "rounds": options.rounds,
        "max_tokens": options.max_tokens,
        "prefill_tokens": PREFILL,
        "prefill_tokens_per_second": round(statistics.median(prefill), 2),
        "rows": [row(key, rounds) for key, rounds in rows.items()],
    }
    text = json.dumps(report, indent=2)
    if options.json:
        pathlib.Path(options.json).write_text(text + "\n", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
