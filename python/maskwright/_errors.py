"""Exceptions: one class for each fault, so that nobody has to read a message to decide what to do."""

from __future__ import annotations


class MaskwrightError(Exception):
    """Any error of this package.

    `pointer` is the JSON Pointer of the place in a schema, `line` and `column` (from 1) that in a text; each is `None`
    where there is no such place.
    """

    pointer: str | None
    line: int | None
    column: int | None

    def __init__(
        self,
        message: str = "",
        pointer: str | None = None,
        line: int | None = None,
        column: int | None = None,
    ) -> None:
        super().__init__(message)
        self.pointer = pointer
        self.line = line
        self.column = column


class RequestError(MaskwrightError, ValueError):
    """The request is wrong: asking again won't help."""


class ConstraintError(RequestError):
    """A constraint can't be honoured, and so nothing is generated under it."""


class NotFoundError(MaskwrightError, LookupError):
    """Something that was named doesn't exist: a model, a file."""


class LimitError(MaskwrightError, ValueError):
    """Something is larger or more complex than the limits allow."""


class UnsupportedError(MaskwrightError, NotImplementedError):
    """This build, model or host can't do what was asked for."""


class CancelledError(MaskwrightError):
    """The caller cancelled."""


class BusyError(MaskwrightError):
    """There is no room at the moment; asking later may help."""


class InternalError(MaskwrightError, RuntimeError):
    """Our side failed."""
