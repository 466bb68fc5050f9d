import json
import threading
import time
from typing import Any

import pytest
from conftest import assert_valid, random_walk
from schemas import CAPS, SCHEMAS

import maskwright
from maskwright import Compiler, Constraint, ConstraintError, LimitError, RequestError, Vocabulary


@pytest.mark.parametrize("name", SCHEMAS)
def test_masks_lead_to_valid_json_only(bytes_compiler: Compiler, name: str) -> None:
    compiled = bytes_compiler.json_schema(SCHEMAS[name], **CAPS)
    for seed in range(10):
        # Strings may hold any bytes of UTF-8, which single bytes are drawn from.
        assert_valid(random_walk(compiled, seed).decode(), SCHEMAS[name])


@pytest.mark.parametrize(
    ("constraint", "accepted", "refused"),
    [
        (Constraint.regex("[ab]{2}"), ["ab"], ["abc", "a", ""]),
        (Constraint.choice(["yes", "no"]), ["yes", "no"], ["ye", "maybe"]),
        (Constraint.gbnf('root ::= "x"+ "y"?'), ["xx", "xy"], ["y", ""]),
        (Constraint.lark('start: "x" /[0-9]+/'), ["x12"], ["x"]),
        (
            Constraint.structural_tag(
                {"format": {"type": "tag", "begin": "<", "content": {"type": "any_text"}, "end": ">"}}
            ),
            ["<a b>"],
            ["<a>>"],
        ),
        (Constraint.json_object(), ['{"a":[1]}', "{}"], ["[]", "{"]),
        (Constraint.json_schema("true", whitespace="spaced"), ['{"a": 1}'], ['{"a":1}']),
        (Constraint.json_schema({"type": "array"}, whitespace=2), ["[\n  1\n]"], ["[1]"]),
        (
            Constraint.json_schema({"required": ["b", "a"], "properties": {"a": True, "b": True}}, order="any"),
            ['{"b":1,"a":2}', '{"a":1,"b":2}'],
            ['{"a":1}'],
        ),
    ],
)
def test_each_kind_of_constraint_is_its_own_language(
    bytes_compiler: Compiler, constraint: Constraint, accepted: list[str], refused: list[str]
) -> None:
    compiled = bytes_compiler.compile(constraint)

    def accepts(text: str) -> bool:
        matcher = compiled.matcher()
        return matcher.accepts(list(text.encode())) == len(text) and _ends(matcher, text)

    assert [accepts(text) for text in accepted] == [True] * len(accepted)
    assert [accepts(text) for text in refused] == [False] * len(refused)


def _ends(matcher: maskwright.Matcher, text: str) -> bool:
    matcher.commit(list(text.encode()))
    return matcher.is_accepting()


def test_an_error_names_its_place() -> None:
    with pytest.raises(ConstraintError, match="/properties/a/minLenght") as raised:
        Constraint.json_schema({"properties": {"a": {"type": "string", "minLenght": 3}}}).check()
    assert raised.value.pointer == "/properties/a/minLenght"
    assert raised.value.line is None
    with pytest.raises(ConstraintError) as raised:
        Constraint.json_schema('{\n "type": }')
    assert (raised.value.line, raised.value.column, raised.value.pointer) == (2, 10, None)
    with pytest.raises(ConstraintError, match="no rule is named") as raised:
        Constraint.gbnf('root ::= "a" | item\n').check()
    assert (raised.value.line, raised.value.column) == (1, 16)
    assert isinstance(raised.value, ValueError)


def test_a_limit_is_an_error_of_its_own() -> None:
    small = Compiler(Vocabulary.single_bytes(), limits={"regex_bytes": 4})
    with pytest.raises(LimitError, match="exceeds the limit of 4"):
        small.regex("aaaaa")
    with pytest.raises(RequestError, match='no limit named "nonsense"'):
        Compiler(Vocabulary.single_bytes(), limits={"nonsense": 1})


def test_arguments_that_arent_known_are_refused() -> None:
    arguments: list[dict[str, Any]] = [
        {"whitespace": "wide"},
        {"order": "random"},
        {"numbers": "roman"},
        {"unknown": "ignore"},
    ]
    for argument in arguments:
        with pytest.raises(RequestError, match="it must be"):
            Constraint.json_schema({}, **argument)


def test_a_schema_that_isnt_json_is_refused() -> None:
    with pytest.raises(RequestError, match="can't be written as JSON"):
        Constraint.json_schema({"enum": {1, 2}})


def test_documents_supply_references(bytes_compiler: Compiler) -> None:
    schema = {"$ref": "https://example.com/word"}
    with pytest.raises(ConstraintError):
        bytes_compiler.json_schema(schema)
    compiled = bytes_compiler.json_schema(schema, documents={"https://example.com/word": {"const": "w"}})
    assert random_walk(compiled, 0) == b'"w"'


def test_equal_constraints_are_compiled_once_and_warnings_come_along() -> None:
    compiler = Compiler(Vocabulary.single_bytes())
    first = compiler.json_schema({"type": "string", "nullable": True})
    assert any("nullable" in warning for warning in first.warnings)
    compiler.json_schema({"type": "string", "nullable": True})
    assert compiler.cached[0] == 1
    assert first.nbytes > 0


def test_tools_hold_arguments_to_their_schemas(qwen3_compiler: Compiler) -> None:
    parameters = {"type": "object", "properties": {"city": {"enum": ["Oslo", "Rome"]}}, "required": ["city"]}
    tools = [{"type": "function", "function": {"name": "weather", "parameters": parameters}}]
    compiled = qwen3_compiler.tools(tools, "required", "hermes", think=False)
    vocab = qwen3_compiler.vocabulary
    for choice in ("required", "weather", {"type": "function", "function": {"name": "weather"}}):
        compiled = qwen3_compiler.tools(tools, choice, "hermes", think=False)
        text = '<tool_call>\n{"name": "weather", "arguments": {"city": "Oslo"}}\n</tool_call>'
        ids = vocab.encode(text, specials=True)
        assert compiled.matcher().accepts(ids) == len(ids)
        wrong = vocab.encode(text.replace("Oslo", "Paris"), specials=True)
        assert compiled.matcher().accepts(wrong) < len(wrong)
    with pytest.raises(RequestError, match='names "other"'):
        qwen3_compiler.tools(tools, "other", "hermes")
    with pytest.raises(RequestError, match="no chat format named"):
        qwen3_compiler.tools(tools, "auto", "morse")
    with pytest.raises(RequestError, match="nothing would be constrained"):
        qwen3_compiler.tools([], "auto", "hermes")
    with pytest.raises(ConstraintError) as raised:
        qwen3_compiler.tools([{"function": {}}], "auto", "hermes")
    assert raised.value.pointer == "/0/function/name"


def test_compiling_leaves_the_interpreter_to_others(qwen3: Vocabulary) -> None:
    begun, done = threading.Event(), threading.Event()

    times = 20

    def compile() -> None:
        begun.set()
        for _ in range(times):
            Compiler(qwen3)
        done.set()

    worker = threading.Thread(target=compile)
    worker.start()
    begun.wait()
    turns = 0
    while not done.is_set():
        turns += 1
        time.sleep(0.0005)
    worker.join()
    # Held, the interpreter would have been had between one and the next only.
    assert turns > 3 * times, turns


def test_a_schemas_own_order_is_that_of_the_output(bytes_compiler: Compiler) -> None:
    schema = json.loads(
        '{"type": "object", "properties": {"z": {"const": "1"}, "a": {"const": "2"}}, "required": ["z", "a"]}'
    )
    schema["additionalProperties"] = False
    assert random_walk(bytes_compiler.json_schema(schema), 0) == b'{"z":"1","a":"2"}'
