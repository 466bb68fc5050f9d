import json
import threading
from typing import Any

import pytest
from conftest import assert_valid
from schemas import CAPS, SCHEMAS

import maskwright
from maskwright import LLM, Constraint, ConstraintError, NotFoundError, RequestError


@pytest.mark.parametrize("name", SCHEMAS)
def test_replies_are_valid_at_temperature_1(llm: LLM, name: str) -> None:
    constraint = Constraint.json_schema(SCHEMAS[name], **CAPS)
    for seed in range(3):
        reply = llm.generate("Give an example.", constraint=constraint, temperature=1.0, seed=seed, max_tokens=400)
        assert (reply.finish_reason, reply.satisfied) == ("stop", True)
        assert_valid(reply.text, SCHEMAS[name])


@pytest.mark.parametrize(
    ("arguments", "holds"),
    [
        ({"json_schema": {"const": ["1", True]}}, lambda text: text == '["1",true]'),
        ({"json_schema": '{"type": "boolean"}'}, lambda text: text in ("true", "false")),
        ({"regex": "[0-9]{3}"}, lambda text: len(text) == 3 and text.isdigit()),
        ({"choice": ["left", "right"]}, lambda text: text in ("left", "right")),
        ({"gbnf": 'root ::= "x" [yz]'}, lambda text: text in ("xy", "xz")),
        ({"lark": 'start: "a" "b"?'}, lambda text: text in ("a", "ab")),
        ({"constraint": Constraint.regex("k")}, lambda text: text == "k"),
    ],
)
def test_each_kind_of_constraint_holds(llm: LLM, arguments: dict[str, Any], holds: Any) -> None:
    reply = llm.generate("Say something else.", seed=1, max_tokens=50, **arguments)
    assert holds(reply.text)
    assert reply.satisfied


def test_a_reply_tells_how_it_ended(llm: LLM) -> None:
    reply = llm.generate("Count to a hundred.", max_tokens=5, temperature=0.0)
    assert (reply.finish_reason, reply.satisfied) == ("length", None)
    assert len(reply.tokens) == 5
    assert reply.usage["completion_tokens"] == 5
    assert reply.usage["prompt_tokens"] == len(llm.tokens("Count to a hundred."))
    reply = llm.generate("Hi", json_schema={"const": {"a": 1}}, max_tokens=50)
    assert reply.json() == {"a": 1}
    assert reply.usage["forced_tokens"] > 0


def test_a_stream_is_the_reply_in_parts(llm: LLM) -> None:
    arguments: dict[str, Any] = {"regex": "(one|two|three) [a-z]{2,12}", "seed": 4, "max_tokens": 40}
    whole = llm.generate("Hi", **arguments)
    events = list(llm.generate("Hi", stream=True, **arguments))
    assert "".join(event.text for event in events) == whole.text
    assert events[-1].kind == "finished"
    assert events[-1].finish_reason == "stop"
    assert events[-1].satisfied
    assert events[-1].usage == whole.usage


def test_a_stream_may_be_left(llm: LLM) -> None:
    stream = llm.generate("Tell a long story.", stream=True)
    assert next(stream).kind == "text"
    del stream
    stream = llm.generate("Tell a long story.", stream=True)
    stream.close()
    with pytest.raises(maskwright.CancelledError):
        for _ in stream:
            pass


def test_threads_share_a_model(llm: LLM) -> None:
    def reply(seed: int, into: dict[int, str]) -> None:
        into[seed] = llm.generate("A word:", regex="[a-z]{3,9}", seed=seed, max_tokens=20).text

    alone: dict[int, str] = {}
    together: dict[int, str] = {}
    for seed in range(3):
        reply(seed, alone)
    threads = [threading.Thread(target=reply, args=(seed, together)) for seed in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert together == alone


def test_conversations_and_tools(llm: LLM) -> None:
    tools = [
        {
            "type": "function",
            "function": {
                "name": "dice",
                "parameters": {
                    "type": "object",
                    "properties": {"sides": {"enum": [6, 20]}},
                    "required": ["sides"],
                },
            },
        }
    ]
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Roll."},
    ]
    reply = llm.generate(messages, tools=tools, tool_choice="required", parallel_tool_calls=False, max_tokens=80)
    assert reply.finish_reason == "tool_calls"
    (call,) = reply.tool_calls
    assert call.name == "dice"
    assert json.loads(call.arguments)["sides"] in (6, 20)
    # The call goes back as OpenAI's API spells it.
    messages += [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": call.arguments},
                }
            ],
        },
        {"role": "tool", "tool_call_id": call.id, "content": "4"},
    ]
    reply = llm.generate(messages, tools=tools, tool_choice="none", regex=None, max_tokens=5)
    assert reply.tool_calls == []


def test_what_makes_no_sense_is_refused_before_the_first_token(llm: LLM) -> None:
    cases: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({"regex": "a", "choice": ["b"]}, RequestError, "one constraint only"),
        ({"json_schema": {"minLenght": 1}}, ConstraintError, "/minLenght"),
        ({"json_schema": {"minLenght": 1}, "stream": True}, ConstraintError, "/minLenght"),
        ({"temperature": -1}, RequestError, "temperature"),
        ({"raw": True, "system": "x"}, RequestError, "no system message"),
        ({"regex": "a", "stop": ["x"]}, RequestError, "stop strings"),
        ({"tool_choice": "required"}, RequestError, "no tools"),
    ]
    for arguments, error, message in cases:
        with pytest.raises(error, match=message):
            llm.generate("x", **arguments)
    with pytest.raises(RequestError, match="messages"):
        llm.generate([{"role": "nobody", "content": "x"}])
    with pytest.raises(NotFoundError, match="did you mean"):
        LLM("smolm2")
    with pytest.raises(RequestError, match="device"):
        LLM("smollm2", device="abacus")


def test_the_model_is_described(llm: LLM) -> None:
    assert llm.vocabulary.size == 49152
    assert llm.context == 8192
    assert llm.device
    assert "LLM(" in repr(llm)
    raw = llm.tokens("x", raw=True)
    assert llm.vocabulary.decode(raw) == b"x"
