#!/usr/bin/env python3
"""What masks cost from Python, and how threads share the work. Prints tables for benches/MICRO.md.

python python/benches/masks.py TOKENIZER_FOLDER
"""

from __future__ import annotations

import pathlib
import random
import sys
import sysconfig
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy

import maskwright

SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "string", "maxLength": 40}, "b": {"type": "array", "items": {"type": "integer"}}},
    "required": ["a", "b"],
    "additionalProperties": False,
}
# Verbatim quotes of a long text: masks that cost something, and another one at each place.
PAGE = "".join(random.Random(1).choices("abcdefgh ", k=6000))
QUOTE = {"x-maskwright-substring-of": PAGE}


def each(step: Callable[[], object], rounds: int = 2000, takes: int = 15) -> float:
    """Microseconds of one step: the least of many takes, for the machine may be shared."""
    times = []
    for _ in range(takes):
        begin = time.perf_counter()
        for _ in range(rounds):
            step()
        times.append((time.perf_counter() - begin) / rounds * 1e6)
    return min(times)


def walk(compiled: maskwright.Compiled, texts: list[list[int]]) -> None:
    """Fills masks along texts."""
    out = numpy.empty(compiled.mask_words, dtype=numpy.int32)
    for ids in texts:
        matcher = compiled.matcher()
        for token in ids:
            matcher.fill_mask(out)
            matcher.commit(token)


def quotes(vocabulary: maskwright.Vocabulary, seed: int, count: int) -> list[list[int]]:
    """Quotes of the page that nobody has walked along before."""
    draw = random.Random(seed)
    starts = [draw.randrange(len(PAGE) - 120) for _ in range(count)]
    return [vocabulary.encode(f'"{PAGE[start : start + 120]}"') for start in starts]


def main() -> None:
    folder = pathlib.Path(sys.argv[1])
    vocabulary = maskwright.Vocabulary.from_tokenizer_json(
        (folder / "tokenizer.json").read_text(), tokenizer_config=(folder / "tokenizer_config.json").read_text()
    )
    compiled = maskwright.Compiler(vocabulary).json_schema(SCHEMA)
    gil = "no GIL" if not getattr(sys, "_is_gil_enabled", lambda: True)() else "GIL"
    print(f"Python {sysconfig.get_python_version()} ({gil}), vocabulary of {vocabulary.size}\n")

    matcher = compiled.matcher()
    matcher.commit(matcher.forced())
    out: Any = numpy.empty((4, compiled.mask_words), dtype=numpy.int32)
    masks: list[tuple[str, Callable[[], object]]] = [
        ("`matcher.mask()`", matcher.mask),
        ("`matcher.fill_mask(numpy array)`", lambda: matcher.fill_mask(out)),
        ("`matcher.is_complete()`", matcher.is_complete),
        ("`matcher.accepts(id)`, detached", lambda: matcher.accepts(0)),
    ]
    torch = sys.modules.get("torch") or _torch()
    if torch is not None:
        tensor = torch.empty((4, compiled.mask_words), dtype=torch.int32)
        masks.append(("`matcher.fill_mask(torch tensor)`", lambda: matcher.fill_mask(tensor)))
    several = [compiled.matcher() for _ in range(4)]
    masks.append(("`fill_masks` of 4", lambda: maskwright.fill_masks(several, out)))
    logits = numpy.zeros(151_936, dtype=numpy.float32)
    mask = matcher.mask()
    masks.append(("`apply_mask_(numpy row)`", lambda: maskwright.apply_mask_(logits, mask)))
    print("| a known mask | µs |\n|---|---|")
    for name, step in masks:
        print(f"| {name} | {each(step):.2f} |")

    print("\n| threads filling unknown masks | masks/s | ÷ one thread | cores used |\n|---|---|---|---|")
    base = None
    for threads in (1, 2, 4, 8):
        fresh = maskwright.Compiler(vocabulary).json_schema(QUOTE)
        walk(fresh, quotes(vocabulary, 99, 2))
        work = [quotes(vocabulary, seed, 60) for seed in range(8)]
        begin, cpu = time.perf_counter(), time.process_time()
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(walk, [fresh] * 8, work))
        spent, cpu = time.perf_counter() - begin, time.process_time() - cpu
        rate = sum(len(ids) for part in work for ids in part) / spent
        base = base or rate
        print(f"| {threads} | {rate:.0f} | {rate / base:.2f} | {cpu / spent:.2f} |")


def _torch() -> Any:
    try:
        import torch
    except ImportError:
        return None
    return torch


if __name__ == "__main__":
    main()
