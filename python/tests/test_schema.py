"""Types of Python's as schemas, with Pydantic and without."""

import dataclasses
import datetime
import enum
import json
import sys
import typing
import uuid
from typing import Annotated, Any, Literal, NotRequired, TypedDict

import jsonschema
import pytest
from conftest import random_walk

from maskwright import Compiler, Constraint, RequestError, json_schema_of


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclasses.dataclass
class Point:
    x: int
    y: int | None = None


@dataclasses.dataclass
class Shape:
    colour: Colour
    points: list[Point]
    size: Literal[1, 2]
    label: str = ""
    tags: set[Literal["a", "b"]] = dataclasses.field(default_factory=set)
    parent: "Shape | None" = None


class Movie(TypedDict):
    title: str
    year: NotRequired[int]
    ratings: dict[str, float]
    at: tuple[bool, datetime.date]
    id: Annotated[uuid.UUID, "identity"]


@pytest.fixture(params=["with pydantic", "without"])
def pydantic_or_not(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "without":
        monkeypatch.setitem(sys.modules, "pydantic", None)
    else:
        pytest.importorskip("pydantic")


@pytest.mark.usefixtures("pydantic_or_not")
@pytest.mark.parametrize(
    ("kind", "accepted", "refused"),
    [
        (Point, [{"x": 1}, {"x": 1, "y": None}], [{}, {"x": "1"}, {"x": 1, "z": 2}]),
        (
            Shape,
            [
                {"colour": "red", "points": [{"x": 1}], "size": 2},
                {
                    "colour": "blue",
                    "points": [],
                    "size": 1,
                    "parent": {"colour": "red", "points": [], "size": 1},
                },
            ],
            [
                {"colour": "green", "points": [], "size": 1},
                {"colour": "red", "points": [{}], "size": 1},
                {"colour": "red", "points": [], "size": 3},
                {"colour": "red", "points": [], "size": 1, "tags": ["a", "a"]},
                {"colour": "red", "points": [], "size": 1, "parent": {}},
            ],
        ),
        (
            Movie,
            [
                {
                    "title": "t",
                    "ratings": {"x": 1.5},
                    "at": [True, "2026-01-31"],
                    "id": "6ba7b810-9dad-11d1-80b4-00c04fd430c8",
                }
            ],
            [
                {"title": "t", "ratings": {}, "at": [True], "id": "6ba7b810-9dad-11d1-80b4-00c04fd430c8"},
                {"title": "t", "ratings": {"x": "y"}, "at": [True, "2026-01-31"], "id": "6ba7"},
            ],
        ),
        (list[int], [[], [1]], [["a"], 1]),
        (int | str, [1, "a"], [1.5, None]),
    ],
)
def test_types_are_described(kind: Any, accepted: list[Any], refused: list[Any]) -> None:
    schema = json_schema_of(kind)
    Constraint.json_schema(kind).check()
    validator = jsonschema.Draft202012Validator(schema, format_checker=jsonschema.FormatChecker())
    assert [value for value in accepted if not validator.is_valid(value)] == []
    assert [value for value in refused if validator.is_valid(value)] == []


@pytest.mark.usefixtures("pydantic_or_not")
def test_a_reply_can_be_read_as_the_type(bytes_compiler: Compiler) -> None:
    for seed in range(5):
        text = random_walk(bytes_compiler.json_schema(Point), seed)
        point = Point(**json.loads(text))
        assert isinstance(point.x, int)


def test_pydantic_describes_its_models(bytes_compiler: Compiler) -> None:
    pydantic = pytest.importorskip("pydantic")

    class Person(pydantic.BaseModel):  # type: ignore[misc, name-defined]
        name: str = pydantic.Field(pattern="^[A-Z][a-z]{1,5}$")
        age: int = pydantic.Field(ge=0, le=120)
        note: dict[str, Any] = pydantic.Field(default={"properties": {}, "type": "object"}, max_length=0)

    compiled = bytes_compiler.json_schema(Person)
    for seed in range(5):
        Person.model_validate_json(random_walk(compiled, seed))
    assert json_schema_of(Person)["additionalProperties"] is False
    # What is a value isn't taken for a schema.
    assert json_schema_of(Person)["properties"]["note"]["default"] == {"properties": {}, "type": "object"}


def test_what_has_no_schema_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for hide in (False, True):
        if hide:
            monkeypatch.setitem(sys.modules, "pydantic", None)
        else:
            pytest.importorskip("pydantic")
        with pytest.raises(RequestError, match="JSON Schema"):
            json_schema_of(threading_lock_type())
    with pytest.raises(RequestError, match="keys of JSON objects"):
        json_schema_of(dict[bytes, int])


def threading_lock_type() -> type:
    class Lock:
        pass

    return Lock


def test_names_that_clash_are_kept_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pydantic", None)
    one = dataclasses.make_dataclass("Same", [("a", int)])
    two = dataclasses.make_dataclass("Same", [("b", int)])
    schema = json_schema_of(typing.Union[one, two])  # noqa: UP007
    validator = jsonschema.Draft202012Validator(schema)
    assert validator.is_valid({"a": 1})
    assert validator.is_valid({"b": 1})
    assert not validator.is_valid({"c": 1})
