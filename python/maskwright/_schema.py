"""JSON Schemas of Python's types.

Pydantic describes its models, and where it is installed every other type, too. Where it isn't, dataclasses, TypedDicts
and the types of the standard library are described here.
"""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import json
import types
import typing
import uuid
from collections.abc import Mapping
from typing import Any

from maskwright._errors import RequestError

_SCALARS: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    None: {"type": "null"},
    type(None): {"type": "null"},
    decimal.Decimal: {"type": "number"},
    datetime.datetime: {"type": "string", "format": "date-time"},
    datetime.date: {"type": "string", "format": "date"},
    datetime.time: {"type": "string", "format": "time"},
    uuid.UUID: {"type": "string", "format": "uuid"},
    Any: {},
    object: {},
}


def schema_text(schema: Any) -> str:
    """The text of a schema given as a mapping, a boolean or a type. Order is kept: it is that of the output."""
    if not isinstance(schema, (Mapping, bool)):
        schema = json_schema_of(schema)
    try:
        return json.dumps(schema)
    except (TypeError, ValueError) as error:
        raise RequestError(f"the schema can't be written as JSON: {error}") from error


def json_schema_of(kind: Any) -> dict[str, Any]:
    """The schema of a Pydantic model, a dataclass, a TypedDict or another type.

    Objects of a declared type are closed: a reply has no properties that the type doesn't name.
    """
    if hasattr(kind, "model_json_schema"):
        return _closed(kind.model_json_schema())
    try:
        import pydantic  # noqa: F401
    except ImportError:
        return _Types().document(kind)
    return _closed(_pydantic(kind))


def _pydantic(kind: Any) -> dict[str, Any]:
    from pydantic import TypeAdapter
    from pydantic.errors import PydanticUserError

    try:
        schema: dict[str, Any] = TypeAdapter(kind).json_schema()
    except PydanticUserError:
        # Before Python 3.12 it doesn't take `typing.TypedDict`.
        return _Types().document(kind)
    return schema


def _closed(schema: dict[str, Any]) -> dict[str, Any]:
    """The same, with every object that has declared properties closed, unless it says otherwise."""

    def close(value: Any) -> Any:
        if isinstance(value, list):
            return [close(item) for item in value]
        if not isinstance(value, dict):
            return value
        # What is a value and not a schema stays as it is.
        verbatim = ("const", "enum", "default", "examples", "example")
        closed = {key: item if key in verbatim else close(item) for key, item in value.items()}
        if closed.get("type") == "object" and isinstance(closed.get("properties"), dict):
            closed.setdefault("additionalProperties", False)
        return closed

    result: dict[str, Any] = close(schema)
    return result


class _Types:
    """Describes types without Pydantic. Classes with fields become definitions, so that they may name themselves."""

    def __init__(self) -> None:
        self.definitions: dict[str, dict[str, Any]] = {}
        self.names: dict[Any, str] = {}

    def document(self, kind: Any) -> dict[str, Any]:
        schema = self.schema(kind)
        return {**schema, "$defs": self.definitions} if self.definitions else schema

    def schema(self, kind: Any) -> dict[str, Any]:
        try:
            known = _SCALARS.get(kind)
        except TypeError:
            known = None
        if known is not None:
            return dict(known)
        origin, arguments = typing.get_origin(kind), typing.get_args(kind)
        if origin is typing.Annotated:
            return self.schema(arguments[0])
        if origin in (typing.Required, typing.NotRequired):
            return self.schema(arguments[0])
        if origin in (typing.Union, types.UnionType):
            return {"anyOf": [self.schema(argument) for argument in arguments]}
        if origin is typing.Literal:
            return {"enum": list(arguments)}
        if isinstance(kind, type) and issubclass(kind, enum.Enum):
            return {"enum": [member.value for member in kind]}
        if isinstance(kind, type) and (dataclasses.is_dataclass(kind) or typing.is_typeddict(kind)):
            return self.reference(kind)
        container = origin or kind
        if container in (dict, Mapping) or container is typing.Mapping:
            return self.mapping(arguments)
        if container is tuple:
            return self.tuple(arguments)
        if isinstance(container, type) and issubclass(container, (list, set, frozenset, typing.Sequence)):
            unique = {"uniqueItems": True} if issubclass(container, (set, frozenset)) else {}
            items = {"items": self.schema(arguments[0])} if arguments else {}
            return {"type": "array", **items, **unique}
        raise RequestError(f"{kind!r} has no JSON Schema that is known without Pydantic")

    def mapping(self, arguments: tuple[Any, ...]) -> dict[str, Any]:
        if not arguments:
            return {"type": "object"}
        key, value = arguments
        if key is not str:
            raise RequestError(f"keys of JSON objects are strings, not {key!r}")
        return {"type": "object", "additionalProperties": self.schema(value)}

    def tuple(self, arguments: tuple[Any, ...]) -> dict[str, Any]:
        if not arguments:
            return {"type": "array"}
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            return {"type": "array", "items": self.schema(arguments[0])}
        count = len(arguments)
        items = [self.schema(argument) for argument in arguments]
        return {"type": "array", "prefixItems": items, "minItems": count, "maxItems": count}

    def reference(self, kind: type) -> dict[str, Any]:
        name = self.names.get(kind)
        if name is None:
            name = kind.__name__
            while name in self.definitions:
                name += "_"
            self.names[kind] = name
            self.definitions[name] = {}
            self.definitions[name].update(self.fields(kind))
        return {"$ref": f"#/$defs/{name}"}

    def fields(self, kind: type) -> dict[str, Any]:
        hints = typing.get_type_hints(kind, include_extras=True)
        if dataclasses.is_dataclass(kind):
            fields = [field for field in dataclasses.fields(kind) if field.init]
            names = [field.name for field in fields]
            missing = dataclasses.MISSING
            required = [f.name for f in fields if f.default is missing and f.default_factory is missing]
        else:
            names = list(hints)
            required = [name for name in names if _is_required(kind, name, hints[name])]
        properties = {name: self.schema(hints[name]) for name in names}
        schema: dict[str, Any] = {"type": "object", "properties": properties}
        if required:
            schema["required"] = required
        return {**schema, "additionalProperties": False}


def _is_required(kind: Any, name: str, hint: Any) -> bool:
    origin = typing.get_origin(hint)
    # Annotations that are text hide these words from the class itself.
    if origin in (typing.Required, typing.NotRequired):
        return origin is typing.Required
    return name in kind.__required_keys__
