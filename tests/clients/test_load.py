"""Many clients at a time, half of which leave before their reply has ended.

`MASKWRIGHT_LOAD_SECONDS` says for how long (default 10); run with `-s` it prints what it counted.
"""

import asyncio
import json
import os
import random
import re
import time

import httpx

from conftest import Server

CLIENTS = 64
SECONDS = float(os.environ.get("MASKWRIGHT_LOAD_SECONDS", "10"))


def request(server, number):
    """Every reply has to hold the number of its request, so that none can be another's."""
    schema = {
        "type": "object",
        "properties": {
            "id": {"const": number},
            "word": {"type": "string", "maxLength": 10},
            "rest": {"type": "array", "items": {"enum": ["red", "green", "blue"]}, "maxItems": 3},
        },
        "required": ["id", "word", "rest"],
        "additionalProperties": False,
    }
    kind = number % 3
    body = {
        "model": server.model,
        "messages": [{"role": "user", "content": f"Say something about number {number}."}],
        "seed": number,
        "stream": True,
    }
    if kind == 0:
        body["max_tokens"] = 24
    else:
        body["response_format"] = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    return kind, body


def valid(number, text):
    value = json.loads(text)
    assert set(value) == {"id", "word", "rest"} and value["id"] == number, (number, text)
    assert isinstance(value["word"], str) and len(value["word"]) <= 10
    assert len(value["rest"]) <= 3 and set(value["rest"]) <= {"red", "green", "blue"}


async def one(client, server, number, chance, counts):
    kind, body = request(server, number)
    leaves = chance.random() < 0.5
    after = chance.randrange(1, 20)
    text, events, reason = "", 0, None
    async with client.stream("POST", "/v1/chat/completions", json=body) as reply:
        if reply.status_code == 429:
            counts["refused"] += 1
            await asyncio.sleep(float(reply.headers["retry-after"]) / 4)
            return
        assert reply.status_code == 200, await reply.aread()
        async for line in reply.aiter_lines():
            if not line.startswith("data: "):
                continue
            if line == "data: [DONE]":
                assert reason in ("stop", "length"), (number, text)
                if kind != 0:
                    assert reason == "stop", text
                    valid(number, text)
                counts["finished"] += 1
                return
            chunk = json.loads(line[len("data: ") :])
            assert "error" not in chunk, chunk
            choice = chunk["choices"][0]
            text += choice["delta"].get("content") or ""
            reason = choice["finish_reason"] or reason
            events += 1
            if leaves and events >= after:
                counts["left"] += 1
                return
    raise AssertionError(f"the reply to {number} broke off: {text!r}")


async def load(server, seconds):
    counts = {"finished": 0, "left": 0, "refused": 0}
    end = time.monotonic() + seconds
    numbers = iter(range(1, 1_000_000))

    async def client(seed):
        chance = random.Random(seed)
        headers = {"Authorization": f"Bearer {server.key}"}
        async with httpx.AsyncClient(base_url=server.address, headers=headers, timeout=300) as http:
            while time.monotonic() < end:
                await one(http, server, next(numbers), chance, counts)

    await asyncio.gather(*(client(seed) for seed in range(CLIENTS)))
    return counts


def metrics(server):
    text = httpx.get(f"{server.address}/metrics", headers={"Authorization": f"Bearer {server.key}"}).text
    found = re.findall(r"^maskwright_(\w+)\{[^}]*?(?:le=\"([^\"]+)\")?\} (\S+)$", text, re.M)
    return {(name, bound): float(value) for name, bound, value in found}


def test_nothing_is_lost_or_mixed_up_under_load(patience):
    server = Server()
    try:
        idle = lambda: metrics(server)["running", ""] == metrics(server)["waiting", ""] == 0
        # The first wave fills what is kept: grammars, lexers, prefixes, the allocator's own pages.
        asyncio.run(load(server, max(3.0, SECONDS / 2)))
        patience(idle)
        before = server.memory()
        counts = asyncio.run(load(server, SECONDS))
        patience(idle)
        after = server.memory()
        numbers = metrics(server)
        count = numbers["step_overhead_seconds_count", ""]
        p99 = min(
            (float(bound) for (name, bound), value in numbers.items()
             if name == "step_overhead_seconds_bucket" and value >= 0.99 * count),
        )
        print(f"\n{counts}; memory {before} kB, then {after} kB; overhead of a step: p99 at most {p99 * 1e6:.0f} µs")
        assert counts["finished"] > 0 and counts["left"] > 0
        assert numbers["failed_total", ""] == 0
        # Grammars stay in their cache up to its bound, so that a short run may still grow a little.
        assert after <= 1.10 * before + (0 if SECONDS >= 60 else 64_000), (before, after)
    finally:
        assert server.stop() == 0


def test_a_killed_server_leaves_nothing_broken():
    server = Server()
    body = request(server, 1)[1]
    with httpx.stream(
        "POST", f"{server.address}/v1/chat/completions", json=body, headers={"Authorization": f"Bearer {server.key}"}
    ) as reply:
        next(reply.iter_lines())
        server.process.kill()
        server.process.wait()
    server = Server()
    try:
        counts = {"finished": 0, "left": 0, "refused": 0}

        async def again():
            async with httpx.AsyncClient(
                base_url=server.address, headers={"Authorization": f"Bearer {server.key}"}, timeout=300
            ) as http:
                stays = random.Random()
                stays.random = lambda: 1.0
                await one(http, server, 2, stays, counts)

        asyncio.run(again())
        assert counts["finished"] == 1
    finally:
        assert server.stop() == 0


def test_a_stream_that_has_begun_is_finished_before_the_server_stops():
    server = Server()
    body = {**request(server, 3)[1], "max_tokens": 60}
    with httpx.stream(
        "POST", f"{server.address}/v1/chat/completions", json=body, headers={"Authorization": f"Bearer {server.key}"}
    ) as reply:
        lines = reply.iter_lines()
        next(lines)
        server.process.terminate()
        rest = list(lines)
    assert rest[-2:] and "data: [DONE]" in rest
    assert server.process.wait(timeout=60) == 0
