"""Constraints as JSON, for hosts whose requests carry nothing else."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from maskwright._errors import RequestError
from maskwright._maskwright import Constraint

KINDS = ("json_schema", "json_object", "regex", "choice", "gbnf", "lark", "structural_tag")


def constraint_of(spec: Any) -> Constraint:
    """A constraint from a mapping with one of the keys `json_schema`, `json_object`, `regex`, `choice`, `gbnf`,
    `lark` and `structural_tag`, or from the JSON of one. Other keys are arguments of that kind, as `whitespace`."""
    if isinstance(spec, str):
        try:
            spec = json.loads(spec)
        except ValueError as error:
            raise RequestError(f"the constraint isn't JSON: {error}") from error
    if not isinstance(spec, Mapping):
        raise RequestError("the constraint must be an object")
    options = dict(spec)
    kinds = [kind for kind in KINDS if kind in options]
    if len(kinds) != 1:
        raise RequestError(
            "the constraint must have one of json_schema, json_object, regex, choice, gbnf, lark and structural_tag, "
            f"and has {' and '.join(kinds) or 'none'}"
        )
    kind = kinds[0]
    value = options.pop(kind)
    try:
        if kind == "json_object":
            if value is not True:
                raise RequestError("json_object must be true")
            return Constraint.json_object(**options)
        constraint: Constraint = getattr(Constraint, kind)(value, **options)
    except TypeError as error:
        raise RequestError(f"the constraint: {error}") from error
    return constraint
