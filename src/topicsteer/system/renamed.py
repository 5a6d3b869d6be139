"""Old public names, which keep working for one release and warn."""

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from topicsteer.system.warn import warn_user

P = ParamSpec("P")
T = TypeVar("T")


def warn_renamed(old: str, new: str) -> None:
    """Warn the user's code that a name has changed.

    Examples
    --------
    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warn_renamed("cuts_", "thresholds_")
    >>> print(caught[0].message)
    cuts_ is thresholds_ now; the old name goes with 0.3.
    """
    warn_user(f"{old} is {new} now; the old name goes with 0.3.", DeprecationWarning)


class Renamed:
    """An attribute or method under its old name, as a class attribute.

    Parameters
    ----------
    new : str
        The present name.
    """

    def __init__(self, new: str) -> None:
        self.new = new

    def __set_name__(self, owner: type, name: str) -> None:
        self.old = name

    def __get__(self, instance: object, owner: type) -> Any:
        if instance is None:
            return self
        value = getattr(instance, self.new)
        warn_renamed(self.old, self.new)
        return value


def renamed_arguments(**names: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Decorate a function to accept keyword arguments under their old names: ``old="new"``."""

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        @wraps(function)
        def accept(*args: P.args, **given: P.kwargs) -> T:
            for old in names.keys() & given.keys():
                warn_renamed(old, names[old])
                given.setdefault(names[old], given.pop(old))
            return function(*args, **given)

        return accept

    return decorate
