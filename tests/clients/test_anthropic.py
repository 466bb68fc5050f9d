"""Anthropic's own client."""

import anthropic
import pytest
from pydantic import BaseModel

import models

TOOL = {
    "name": "add",
    "description": "adds",
    "input_schema": {
        "type": "object",
        "properties": {"a": {"type": "integer", "minimum": 0, "maximum": 99}, "b": {"type": "integer", "minimum": 0, "maximum": 99}},
        "required": ["a", "b"],
    },
}


class Town(BaseModel):
    """Without bounds, which this client sends as prose."""

    name: str
    river: bool


@pytest.fixture(scope="session")
def client(server):
    return anthropic.Anthropic(base_url=server.address, api_key=server.key, max_retries=0)


def asked(server, text=models.PROMPT, **more):
    return {"model": server.model, "max_tokens": 400, "messages": [{"role": "user", "content": text}], **more}


def test_a_text_and_its_usage(client, server):
    message = client.messages.create(**asked(server, max_tokens=20, system="Be brief."))
    assert message.content[0].type == "text"
    assert message.stop_reason in ("end_turn", "max_tokens")
    assert message.usage.output_tokens <= 20


def test_a_stream_is_the_same_message(client, server):
    with client.messages.stream(**asked(server, max_tokens=20, extra_body={"temperature": 0})) as stream:
        text = "".join(stream.text_stream)
    message = stream.get_final_message()
    assert message.content[0].text == text
    whole = client.messages.create(**asked(server, max_tokens=20, extra_body={"temperature": 0}))
    assert whole.content[0].text == text


@pytest.mark.parametrize("choice", [{"type": "any"}, {"type": "tool", "name": "add"}])
def test_a_tool_is_called(client, server, choice):
    choice = {**choice, "disable_parallel_tool_use": True}
    request = asked(server, "What is 2 and 3?", tools=[TOOL], tool_choice=choice)
    message = client.messages.create(**request)
    [call] = [block for block in message.content if block.type == "tool_use"]
    assert call.name == "add" and set(call.input) == {"a", "b"}
    assert message.stop_reason == "tool_use"
    with client.messages.stream(**request) as stream:
        kinds = [event.type for event in stream]
    assert "input_json" in kinds
    [streamed] = [block for block in stream.get_final_message().content if block.type == "tool_use"]
    assert set(streamed.input) == {"a", "b"}
    answer = client.messages.create(
        **asked(server, max_tokens=30)
        | {
            "messages": request["messages"]
            + [
                {"role": "assistant", "content": message.content},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": "5"}]},
            ]
        }
    )
    assert answer.content


def test_an_output_format_parses(client, server):
    message = client.messages.parse(**asked(server, output_format=Town))
    assert isinstance(message.parsed_output, Town)


def test_tokens_are_counted(client, server):
    request = asked(server)
    del request["max_tokens"]
    counted = client.messages.count_tokens(**request)
    assert counted.input_tokens == client.messages.create(**asked(server, max_tokens=1)).usage.input_tokens


def test_errors_are_of_the_clients_own_classes(client, server):
    with pytest.raises(anthropic.NotFoundError):
        client.messages.create(**asked(server) | {"model": "none"})
    with pytest.raises(anthropic.BadRequestError) as error:
        client.messages.create(**asked(server, tools=[TOOL], tool_choice={"type": "tool", "name": "sub"}))
    assert "sub" in str(error.value)
    with pytest.raises(anthropic.AuthenticationError):
        anthropic.Anthropic(base_url=server.address, api_key="other").models.list()


def test_models_are_listed(client, server):
    assert [model.id for model in client.models.list()] == [server.model]
