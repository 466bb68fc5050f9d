"""Schemas that every host is tried with. Whatever they leave open, `CAPS` bounds: a random model would write on."""

from typing import Any

CAPS: dict[str, int] = {"string_cap": 12, "array_cap": 3}

SCHEMAS: dict[str, Any] = {
    "boolean": {"type": "boolean"},
    "integer in bounds": {"type": "integer", "minimum": -20, "maximum": 300},
    "multiple": {"type": "integer", "minimum": 0, "maximum": 1000, "multipleOf": 7},
    "number in bounds": {"type": "number", "exclusiveMinimum": 0, "maximum": 2.5},
    "string of a length": {"type": "string", "minLength": 2, "maxLength": 9},
    "pattern": {"type": "string", "pattern": "^[A-Z]{3}-\\d{2,4}$"},
    "date": {"type": "string", "format": "date"},
    "address": {"type": "string", "format": "ipv4"},
    "enumeration": {"enum": ["red", "green", 3, None, {"a": [1]}]},
    "constant": {"const": {"kind": "fixed", "list": [1, 2, 3]}},
    "array of numbers": {
        "type": "array",
        "items": {"type": "integer", "maximum": 99, "minimum": 0},
        "minItems": 1,
    },
    "unique items": {"type": "array", "items": {"enum": [1, 2, 3, 4]}, "uniqueItems": True, "minItems": 2},
    "tuple": {
        "type": "array",
        "prefixItems": [{"type": "string", "maxLength": 4}, {"type": "boolean"}],
        "items": False,
        "minItems": 2,
    },
    "person": {
        "type": "object",
        "properties": {
            "name": {"type": "string", "maxLength": 8},
            "age": {"type": "integer", "minimum": 0, "maximum": 120},
            "email": {"type": ["string", "null"], "maxLength": 8},
        },
        "required": ["name", "age"],
        "additionalProperties": False,
    },
    "nested": {
        "type": "object",
        "properties": {
            "point": {
                "type": "object",
                "properties": {
                    "x": {"type": "integer", "maximum": 9},
                    "y": {"type": "integer", "maximum": 9},
                },
                "required": ["x", "y"],
                "additionalProperties": False,
            },
            "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 3},
        },
        "required": ["point", "tags"],
        "additionalProperties": False,
    },
    "union": {
        "anyOf": [
            {"type": "integer", "minimum": 0, "maximum": 9},
            {
                "type": "object",
                "properties": {"ok": {"const": True}},
                "required": ["ok"],
                "additionalProperties": False,
            },
        ]
    },
    "exactly one": {
        "oneOf": [
            {"type": "integer", "multipleOf": 3, "minimum": 0, "maximum": 30},
            {"type": "integer", "multipleOf": 5, "minimum": 0, "maximum": 30},
        ]
    },
    "conditional": {
        "type": "object",
        "properties": {
            "kind": {"enum": ["a", "b"]},
            "value": {"type": "integer", "minimum": 0, "maximum": 9},
        },
        "required": ["kind"],
        "additionalProperties": False,
        "if": {"properties": {"kind": {"const": "a"}}},
        "then": {"required": ["value"]},
    },
    "recursive": {
        "$ref": "#/$defs/tree",
        "$defs": {
            "tree": {
                "type": "object",
                "properties": {
                    "leaf": {"type": "boolean"},
                    "children": {"type": "array", "items": {"$ref": "#/$defs/leaf"}, "maxItems": 2},
                },
                "required": ["leaf", "children"],
                "additionalProperties": False,
            },
            "leaf": {"type": "object", "properties": {"n": {"enum": [1, 2]}}, "additionalProperties": False},
        },
    },
    "free keys": {
        "type": "object",
        "propertyNames": {"pattern": "^[a-c]{1,2}$"},
        "additionalProperties": {"type": "boolean"},
        "minProperties": 1,
        "maxProperties": 3,
    },
}

assert len(SCHEMAS) == 20
