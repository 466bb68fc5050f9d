"""Replies under a schema, one reader and several, from `maskwright serve` and from llama-cpp-python, in one run.

    python benches/peers/serve.py MODEL.gguf --maskwright target/release/maskwright [--readers 8] [--rounds 3]

Readers ask for one reply after the other; reading the prompts is part of the time. llama-cpp-python runs one reply at a
time, so that its readers take turns, as they do behind its server.
"""

import argparse
import concurrent.futures
import json
import re
import statistics
import subprocess
import time
import urllib.request

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 16},
        "age": {"type": "integer", "minimum": 0, "maximum": 120},
        "city": {"type": "string", "maxLength": 16},
        "mood": {"enum": ["good", "bad", "so so"]},
    },
    "required": ["name", "age", "city", "mood"],
    "additionalProperties": False,
}
PEOPLE = ["Ada Lovelace", "Alan Turing", "Grace Hopper", "Kurt Gödel", "Emmy Noether", "Ida Rhodes", "John Backus", "Niklaus Wirth"]
REPLIES = 3


def messages(reader: int, number: int) -> list:
    return [{"role": "user", "content": f"Make up a record number {number} for {PEOPLE[reader % len(PEOPLE)]}, as JSON."}]


class Ours:
    def __init__(self, command: str, model: str, readers: int):
        flags = ["--port", "0", "--sequences", str(max(readers, 1)), "--offline"]
        self.process = subprocess.Popen([command, "serve", model, *flags], stderr=subprocess.PIPE, text=True)
        for line in self.process.stderr:
            if found := re.search(r"listening on (\S+)", line):
                self.address = found.group(1)
                break
        with urllib.request.urlopen(f"{self.address}/v1/models") as reply:
            self.model = json.load(reply)["data"][0]["id"]

    def reply(self, reader: int, number: int) -> int:
        body = {
            "model": self.model,
            "messages": messages(reader, number),
            "seed": number,
            "max_tokens": 200,
            "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}},
        }
        request = urllib.request.Request(f"{self.address}/v1/chat/completions", json.dumps(body).encode())
        with urllib.request.urlopen(request) as reply:
            answer = json.load(reply)
        check(answer["choices"][0])
        return answer["usage"]["completion_tokens"]

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait()


class LlamaCpp:
    def __init__(self, model: str, threads: int):
        import threading

        import llama_cpp

        self.llama = llama_cpp.Llama(model, n_ctx=2048, n_threads=threads, n_threads_batch=threads, verbose=False)
        self.lock = threading.Lock()

    def reply(self, reader: int, number: int) -> int:
        with self.lock:
            answer = self.llama.create_chat_completion(
                messages(reader, number),
                seed=number,
                max_tokens=200,
                response_format={"type": "json_object", "schema": SCHEMA},
            )
        check(answer["choices"][0])
        return answer["usage"]["completion_tokens"]


def check(choice: dict) -> None:
    value = json.loads(choice["message"]["content"])
    assert set(value) == set(SCHEMA["required"]), value


def speed(engine, readers: int, round_: int) -> float:
    def read(reader: int) -> int:
        return sum(engine.reply(reader, 1000 * round_ + 10 * reader + number) for number in range(REPLIES))

    start = time.perf_counter()
    with concurrent.futures.ThreadPoolExecutor(readers) as pool:
        tokens = sum(pool.map(read, range(readers)))
    return tokens / (time.perf_counter() - start)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--maskwright", required=True)
    parser.add_argument("--readers", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--plain-weights", action="store_true", help="for a machine where llama.cpp's own layout crashes")
    options = parser.parse_args()
    if options.plain_weights:
        import plain_weights

        plain_weights.use()
    ours = Ours(options.maskwright, options.model, options.readers)
    engines = {"maskwright serve": ours, "llama-cpp-python": LlamaCpp(options.model, options.threads)}
    speeds = {(name, count): [] for name in engines for count in (1, options.readers)}
    try:
        for round_ in range(options.rounds):
            for (name, count), found in speeds.items():
                found.append(speed(engines[name], count, round_))
    finally:
        ours.stop()
    print(f"| engine | readers | tokens/s, median of {options.rounds} | ÷ 1 reader |\n|---|---|---|---|")
    for (name, count), found in speeds.items():
        one = statistics.median(speeds[name, 1])
        print(f"| {name} | {count} | {statistics.median(found):.0f} | {statistics.median(found) / one:.2f} |")


if __name__ == "__main__":
    main()
