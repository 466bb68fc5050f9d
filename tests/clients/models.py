"""Models of data as users write them, and what the small model is asked."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Literal, Optional, Union

from pydantic import BaseModel as Base
from pydantic import ConfigDict, Field


class BaseModel(Base):
    """Closed, so that a small model comes to an end."""

    model_config = ConfigDict(extra="forbid")


class Color(str, Enum):
    red = "red"
    green = "green"


class City(BaseModel):
    name: str = Field(max_length=12)
    population: Optional[int] = None


class Country(BaseModel):
    name: str = Field(max_length=12)
    capital: City
    flag: list[Color] = Field(max_length=3)


class Node(BaseModel):
    value: int = Field(ge=0, le=9)
    next: Optional[Node] = None


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int = Field(ge=1, le=9)


class Dog(BaseModel):
    kind: Literal["dog"]
    tricks: list[Color] = Field(max_length=2)


class Pet(BaseModel):
    animal: Annotated[Union[Cat, Dog], Field(discriminator="kind")]


FLAT = [City, Country, Pet]
ALL = [*FLAT, Node]
# A small model likes to go on as it began; this makes it come to an end of a recursive one.
ENDING = 2.0
PROMPT = "Tell me something about France, in JSON."
