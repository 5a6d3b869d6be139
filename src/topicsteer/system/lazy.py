"""Modules that are loaded on first use, so that quick commands do not pay for them."""

from importlib import import_module
from types import ModuleType
from typing import Any


class _LazyModule(ModuleType):
    """Stands for a module until one of its names is used."""

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self.__name__), name)


def lazy_module(name: str) -> Any:
    """Return a module that is imported when one of its names is first used; any thread may do so.

    Parameters
    ----------
    name : str
        Full name of the module.

    Examples
    --------
    >>> colours = lazy_module("colorsys")
    >>> colours.rgb_to_hsv(1, 0, 0)
    (0.0, 1.0, 1)
    """
    return _LazyModule(name)
