"""OpenAI's own client."""

import json
import pathlib
import shutil
import subprocess

import openai
import pytest
from openai import OpenAI
from pydantic import BaseModel, Field

import models


class Add(BaseModel):
    """Adds two numbers."""

    a: int = Field(ge=0, le=99)
    b: int = Field(ge=0, le=99)


TOOL = openai.pydantic_function_tool(Add, name="add")
NAMED = {"type": "function", "function": {"name": "add"}}


@pytest.fixture(scope="session")
def client(server):
    return OpenAI(base_url=f"{server.address}/v1", api_key=server.key, max_retries=0)


def asked(server, text=models.PROMPT, **more):
    return {"model": server.model, "messages": [{"role": "user", "content": text}], "seed": 1, **more}


def test_a_text_and_its_usage(client, server):
    reply = client.chat.completions.create(**asked(server, max_tokens=20))
    assert reply.choices[0].message.role == "assistant"
    assert reply.usage.total_tokens == reply.usage.prompt_tokens + reply.usage.completion_tokens
    assert reply.usage.completion_tokens <= 20


@pytest.mark.parametrize("model", models.ALL)
def test_models_of_data_parse(client, server, model):
    for seed in range(3):
        request = asked(server, response_format=model, temperature=1.0, frequency_penalty=models.ENDING)
        reply = client.chat.completions.parse(**{**request, "seed": seed})
        assert isinstance(reply.choices[0].message.parsed, model)


@pytest.mark.parametrize("model", models.ALL)
def test_models_of_data_stream(client, server, model):
    with client.chat.completions.stream(**asked(server, response_format=model, frequency_penalty=models.ENDING)) as stream:
        deltas = [event.delta for event in stream if event.type == "content.delta"]
    reply = stream.get_final_completion()
    assert isinstance(reply.choices[0].message.parsed, model)
    assert "".join(deltas) == reply.choices[0].message.content
    assert len(deltas) > 1


@pytest.mark.parametrize("choice", ["required", NAMED])
def test_a_tool_is_called(client, server, choice):
    request = asked(server, "What is 2 and 3?", tools=[TOOL], tool_choice=choice, parallel_tool_calls=False)
    reply = client.chat.completions.parse(**request)
    [call] = reply.choices[0].message.tool_calls
    assert isinstance(call.function.parsed_arguments, Add)
    assert reply.choices[0].finish_reason == "tool_calls"

    with client.chat.completions.stream(**request) as stream:
        names = [event.name for event in stream if event.type == "tool_calls.function.arguments.done"]
    assert names == ["add"]
    [streamed] = stream.get_final_completion().choices[0].message.tool_calls
    assert streamed.function.arguments == call.function.arguments

    history = request["messages"] + [
        {"role": "assistant", "tool_calls": [call.model_dump(exclude={"function": {"parsed_arguments"}})]},
        {"role": "tool", "tool_call_id": call.id, "content": "5"},
    ]
    reply = client.chat.completions.create(**asked(server, max_tokens=30) | {"messages": history})
    assert reply.choices[0].message.content


def test_a_tool_may_be_called_or_not(client, server):
    reply = client.chat.completions.create(**asked(server, "Say hello.", tools=[TOOL], max_tokens=60))
    assert reply.choices[0].finish_reason in ("stop", "length", "tool_calls")
    for call in reply.choices[0].message.tool_calls or []:
        if reply.choices[0].finish_reason != "tool_calls":
            break
        Add.model_validate_json(call.function.arguments)


def test_log_probabilities_and_several_replies(client, server):
    reply = client.chat.completions.create(**asked(server, logprobs=True, top_logprobs=3, n=2, max_tokens=8))
    assert [choice.index for choice in reply.choices] == [0, 1]
    for choice in reply.choices:
        entries = choice.logprobs.content
        assert "".join(entry.token for entry in entries).strip() == choice.message.content.strip()
        assert all(entry.logprob <= 0 and len(entry.top_logprobs) == 3 for entry in entries)


def test_a_stream_ends_with_usage(client, server):
    stream = client.chat.completions.create(
        **asked(server, max_tokens=10, stream=True, stream_options={"include_usage": True})
    )
    chunks = list(stream)
    assert chunks[-1].choices == [] and chunks[-1].usage.completion_tokens <= 10


def test_extra_bodies_of_other_servers(client, server):
    for extra in [
        {"structured_outputs": {"regex": "[0-9]{4}"}},
        {"guided_regex": "[0-9]{4}"},
        {"grammar": "root ::= [0-9] [0-9] [0-9] [0-9]"},
        {"lark": "start: /[0-9]{4}/"},
    ]:
        reply = client.chat.completions.create(**asked(server), extra_body=extra)
        assert reply.choices[0].message.content.isdigit()


def test_completions(client, server):
    reply = client.completions.create(model=server.model, prompt="One, two,", max_tokens=5, seed=1)
    assert reply.choices[0].text and reply.usage.completion_tokens <= 5


@pytest.mark.parametrize("model", models.FLAT)
def test_responses_parse_and_stream(client, server, model):
    request = {"model": server.model, "input": models.PROMPT, "text_format": model}
    reply = client.responses.parse(**request)
    assert isinstance(reply.output_parsed, model)
    with client.responses.stream(**request) as stream:
        kinds = [event.type for event in stream]
    assert kinds[0] == "response.created" and kinds[-1] == "response.completed"
    assert isinstance(stream.get_final_response().output_parsed, model)


def test_responses_call_tools_and_go_on(client, server):
    tool = {"type": "function", "name": "add", "strict": True, "parameters": Add.model_json_schema()}
    reply = client.responses.create(
        model=server.model, input="What is 2 and 3?", tools=[tool], tool_choice="required", parallel_tool_calls=False
    )
    [call] = [item for item in reply.output if item.type == "function_call"]
    Add.model_validate_json(call.arguments)
    output = {"type": "function_call_output", "call_id": call.call_id, "output": "5"}
    after = client.responses.create(
        model=server.model, input=[output], previous_response_id=reply.id, max_output_tokens=20
    )
    assert after.previous_response_id == reply.id and after.output_text
    assert client.responses.retrieve(reply.id).id == reply.id
    client.responses.delete(reply.id)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(reply.id)


def test_errors_are_of_the_clients_own_classes(client, server):
    with pytest.raises(openai.NotFoundError) as error:
        client.chat.completions.create(**asked(server) | {"model": "none"})
    assert error.value.code == "model_not_found"
    schema = {"type": "object", "properties": {"a": {"pattern": "(a)\\1"}}}
    format = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    with pytest.raises(openai.BadRequestError) as error:
        client.chat.completions.create(**asked(server), response_format=format)
    assert error.value.param == "response_format.json_schema.schema"
    assert "/properties/a/pattern" in str(error.value)
    with pytest.raises(openai.BadRequestError) as error:
        client.chat.completions.create(**asked(server), extra_body={"respose_format": format})
    assert "did you mean" in str(error.value)
    with pytest.raises(openai.AuthenticationError):
        OpenAI(base_url=f"{server.address}/v1", api_key="other").models.list()
    with pytest.raises(openai.LengthFinishReasonError):
        client.chat.completions.parse(**asked(server, response_format=models.Country, max_tokens=3))


def test_models_are_listed(client, server):
    assert [model.id for model in client.models.list()] == [server.model]
    assert client.models.retrieve(server.model).id == server.model


def test_the_client_of_javascript(server):
    node = shutil.which("node")
    if not node:
        pytest.skip("there is no node here")
    here = pathlib.Path(__file__).parent
    if not (here / "node_modules" / "openai").exists():
        pytest.skip("`make clients` installs OpenAI's client for JavaScript")
    script = subprocess.run(
        [node, "stream.mjs", server.address, server.key, server.model],
        cwd=here, capture_output=True, text=True, timeout=300,
    )
    assert script.returncode == 0, script.stderr
    result = json.loads(script.stdout)
    assert set(json.loads(result["content"])) == {"name", "population"}
    assert json.loads(result["arguments"]).keys() == {"a", "b"}
    assert result["pieces"] > 2
