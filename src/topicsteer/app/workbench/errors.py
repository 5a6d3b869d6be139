"""Refusals: errors with a message for the person who asked, and the status of the answer over HTTP."""

from typing import ClassVar


class Refused(ValueError):
    """A request that cannot be granted; nothing was changed."""

    status: ClassVar[int] = 400


class Malformed(Refused):
    """A request that cannot be read at all."""


class Invalid(Refused):
    """A value that is not allowed: an unknown field, a wrong type, a name that is too long."""

    status = 422


class NotFound(Refused):
    """A document, topic, column or file that does not exist, or no longer exists."""

    status = 404


class Conflict(Refused):
    """A request that contradicts the current state: a name in use, nothing to undo, no model yet."""

    status = 409


class TooLarge(Refused):
    """A request body over the limit."""

    status = 413


class WrongPassword(Refused):
    """A wrong password."""

    status = 403


class TooManyAttempts(Refused):
    """Too many wrong passwords in a short time."""

    status = 429
