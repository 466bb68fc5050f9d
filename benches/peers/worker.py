"""One engine of another project in a process of its own, for `maskwright bench masks --peer`.

    python benches/peers/worker.py ENGINE TOKENIZER_JSON [--memory GIB]

Speaks the protocol of src/bench/peer.rs: a line `{"ready", "about"}`; then for each line
`{"id", "schema", "tests": [{"valid", "tokens"}], "limit_s"}` a line with what came of it. Counting is that of
src/bench/walk.rs. Times are of this process, mask and commit of a token together; the look-up of the token in the
mask is outside of them. Limits: CPU time between steps here, and by the one who started this process; memory by the
system.
"""

import argparse
import json
import logging
import re
import resource
import sys
import time

import engines


class Late(Exception):
    """The limit is over."""


class Steps:
    """Times in hundredths of a microsecond; all instances in a row."""

    def __init__(self) -> None:
        self.lengths, self.wall, self.cpu = [], [], []

    def push(self, wall: int, cpu: int) -> None:
        self.wall.append(min(wall // 10, 2**32 - 1))
        self.cpu.append(min(cpu // 10, 2**32 - 1))
        self.lengths[-1] += 1


def now() -> tuple:
    return time.perf_counter_ns(), time.process_time_ns()


def since(start: tuple) -> dict:
    wall, cpu = now()
    return {"wall": wall - start[0], "cpu": cpu - start[1]}


def walk(engine, task: dict) -> dict:
    limit = time.process_time_ns() + int(task["limit_s"] * 1e9)
    record = {"engine": "", "id": task["id"], "outcome": "passing", "wrong": []}
    steps = Steps()
    try:
        start = now()
        try:
            template = engine.compile(task["schema"])
        except Exception as error:  # noqa: BLE001 - whatever an engine raises is its refusal
            record["compile"] = since(start)
            return record | {"outcome": "compile_error", "reason": words(error)}
        record["compile"] = since(start)
        check(limit)
        for place, test in enumerate(task["tests"]):
            verdict, first = follow(template, test["tokens"], limit, steps)
            record.setdefault("first_mask", first)
            wrong = None
            if isinstance(verdict, str):
                wrong = ("validation_error", verdict)
            elif verdict is None and not test["valid"]:
                wrong = ("invalidation_error", f"invalid instance accepted: instance {place}")
            elif verdict is not None and test["valid"]:
                wrong = ("validation_error", f"valid instance refused: instance {place}, token {verdict}")
            if wrong:
                record["wrong"].append(place)
                record["outcome"], record["reason"] = wrong
        start = now()
        try:
            template.open().mask()
        except Exception:  # noqa: BLE001 - counted where there is an instance
            pass
        record["again"] = since(start)
        record.setdefault("first_mask", record["again"])
    except Late:
        return {"engine": "", "id": task["id"], "outcome": "timeout"}
    record["steps"] = vars(steps)
    return record


def follow(template, tokens: list, limit: int, steps: Steps) -> tuple:
    """None when all tokens were allowed, the place of the first that wasn't, or an error in words."""
    steps.lengths.append(0)
    first = None
    opening = now()
    try:
        session = template.open()
        for place, token in enumerate(tokens):
            check(limit)
            timed = session.timed
            start = now()
            session.mask()
            masked = now()
            first = first or since(opening)
            if not session.allows(token):
                if timed:
                    steps.push(masked[0] - start[0], masked[1] - start[1])
                return place, first
            again = now()
            session.commit(token)
            end = now()
            if timed:
                steps.push(masked[0] - start[0] + end[0] - again[0], masked[1] - start[1] + end[1] - again[1])
    except Late:
        raise
    except Exception as error:  # noqa: BLE001 - whatever an engine raises in a step is counted
        return words(error), first or since(opening)
    return None, first


def check(limit: int) -> None:
    if time.process_time_ns() > limit:
        raise Late


def words(error: Exception) -> str:
    # Without the time of day that xgrammar puts before its messages: equal reasons are counted together.
    text = re.sub(r"\[\d\d:\d\d:\d\d\] ", "", f"{type(error).__name__}: {error}")
    return " ".join(text.split())[:300]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("engine", choices=sorted(engines.ENGINES))
    parser.add_argument("tokenizer")
    parser.add_argument("--memory", type=float, default=8, help="address space in GiB")
    options = parser.parse_args()
    size = int(options.memory * 2**30)
    resource.setrlimit(resource.RLIMIT_AS, (size, size))
    # What goes wrong is counted; nobody reads it here.
    logging.disable(logging.CRITICAL)
    # Engines print; the protocol has stdout for itself.
    out, sys.stdout = sys.stdout, sys.stderr
    engine = engines.ENGINES[options.engine](options.tokenizer)
    print(json.dumps({"ready": True, "about": engine.about}), file=out, flush=True)
    for line in sys.stdin:
        record = walk(engine, json.loads(line))
        record["peak_kib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        print(json.dumps(record), file=out, flush=True)


if __name__ == "__main__":
    main()
