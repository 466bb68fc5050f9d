"""Ollama's own client."""

import ollama
import pytest

import models


def add(a: int, b: int) -> int:
    """Adds two numbers.

    Args:
      a: one
      b: another
    """
    return a + b


@pytest.fixture(scope="session")
def client(server):
    return ollama.Client(host=server.address, headers={"Authorization": f"Bearer {server.key}"})


def asked(server, text=models.PROMPT, **more):
    return {"model": server.model, "messages": [{"role": "user", "content": text}], **more}


def test_a_text_whole_and_streamed(client, server):
    options = {"temperature": 0, "num_predict": 20}
    whole = client.chat(**asked(server, options=options))
    parts = list(client.chat(**asked(server, options=options), stream=True))
    assert "".join(part.message.content for part in parts) == whole.message.content
    assert parts[-1].done and parts[-1].eval_count == whole.eval_count


@pytest.mark.parametrize("model", models.ALL)
def test_models_of_data_parse(client, server, model):
    given = {"format": model.model_json_schema(), "options": {"frequency_penalty": models.ENDING, "seed": 1}}
    reply = client.chat(**asked(server, **given))
    model.model_validate_json(reply.message.content)
    reply = client.generate(model=server.model, prompt=models.PROMPT, **given)
    model.model_validate_json(reply.response)


def test_json_is_an_object(client, server):
    reply = client.chat(**asked(server, format="json", options={"num_predict": 30}))
    assert reply.message.content.startswith("{")


def test_tools_may_be_called(client, server):
    reply = client.chat(**asked(server, "What is 2 and 3?", tools=[add], options={"num_predict": 100}))
    for call in reply.message.tool_calls or []:
        assert call.function.name == "add" and set(call.function.arguments) == {"a", "b"}


def test_models_are_listed_and_shown(client, server):
    assert [model.model for model in client.list().models] == [server.model]
    assert "tools" in client.show(server.model).capabilities


def test_errors_are_of_the_clients_own_class(client, server):
    with pytest.raises(ollama.ResponseError) as error:
        client.chat(**asked(server) | {"model": "none"})
    assert error.value.status_code == 404
    with pytest.raises(ollama.ResponseError) as error:
        client.chat(**asked(server, format={"properties": {"a": {"pattern": "(a)\\1"}}}))
    assert error.value.status_code == 400 and "/properties/a/pattern" in error.value.error
