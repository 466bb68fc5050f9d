import json

import pytest

from maskwright import ChatFormat, Delta, ReplyParser, RequestError, Vocabulary

TOOLS = [{"name": "ping", "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}}}]
REPLY = 'Wait.<tool_call>\n{"name": "ping", "arguments": {"n": 1}}\n</tool_call>'


def read(parser: ReplyParser, pieces: list[str]) -> list[Delta]:
    deltas = [delta for piece in pieces for delta in parser.push(piece)]
    return deltas + parser.finish()


@pytest.mark.parametrize("size", [1, 7, len(REPLY)])
def test_a_reply_is_read_however_it_comes(size: int) -> None:
    parser = ReplyParser("hermes", TOOLS)
    deltas = read(parser, [REPLY[at : at + size] for at in range(0, len(REPLY), size)])
    text = "".join(delta.text for delta in deltas if delta.kind == "text")
    arguments = "".join(delta.text for delta in deltas if delta.kind == "tool_call_arguments")
    (started,) = [delta for delta in deltas if delta.kind == "tool_call_started"]
    assert text == "Wait."
    assert (started.name, started.index) == ("ping", 0)
    assert started.id
    assert json.loads(arguments) == {"n": 1}
    assert deltas[-1].kind == "tool_call_finished"
    assert deltas[-1].complete


def test_without_tools_nothing_is_a_call() -> None:
    deltas = read(ReplyParser("hermes"), [REPLY])
    assert "".join(delta.text for delta in deltas) == REPLY
    assert {delta.kind for delta in deltas} == {"text"}


def test_thoughts_are_told_apart() -> None:
    deltas = read(ReplyParser("hermes", prompt="<think>\n"), ["hm</think>Yes"])
    assert [(delta.kind, delta.text) for delta in deltas] == [("reasoning", "hm"), ("text", "Yes")]


def test_markers_may_be_tokens(qwen3: Vocabulary) -> None:
    format = ChatFormat.named("hermes", qwen3)
    parser = ReplyParser(format, TOOLS)
    deltas = parser.push("", qwen3.special("<tool_call>"))
    deltas += parser.push('\n{"name": "ping", "arguments": {}}\n', qwen3.special("</tool_call>"))
    deltas += parser.finish()
    assert [delta.name for delta in deltas if delta.kind == "tool_call_started"] == ["ping"]


def test_formats_go_by_name_and_by_template() -> None:
    assert "hermes" in ChatFormat.names()
    assert ChatFormat.named("harmony").name == "harmony"
    assert ChatFormat.detect("… <tool_call> a json object </tool_call>").name == "hermes"
    with pytest.raises(RequestError, match='no chat format named "morse"; known are'):
        ChatFormat.named("morse")
