"""Compiled functions whose machine code is kept between runs.

numba keeps machine code next to the source, or in the home of the user. If it can write to neither, every process
compiles, unless the environment variable NUMBA_CACHE_DIR names a folder. `lazy_module` loads a module with compiled
functions when it is first used, so that quick commands do not pay for it.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from importlib import import_module
from types import ModuleType
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def jit(**options: Any) -> Callable[[F], F]:
    """Return a decorator like ``numba.njit(cache=True)`` that does without a cache if there is no folder for it.

    Parameters
    ----------
    **options
        Options of ``numba.njit``.

    Examples
    --------
    >>> @jit(nogil=True)
    ... def double(number):
    ...     return 2 * number
    >>> double(21)
    42
    """
    from numba import njit

    def decorate(function: F) -> F:
        try:
            return njit(cache=True, **options)(function)  # type: ignore[no-any-return]
        except RuntimeError:  # no folder that numba can write to, or a function without a file
            return njit(**options)(function)  # type: ignore[no-any-return]

    return decorate


def keep(module: object, names: Iterable[str]) -> None:
    """Keep the machine code of compiled functions of another package between runs; unknown names are left out.

    Parameters
    ----------
    module : module
        The module of the functions.
    names : iterable of str
        Functions that numba compiles in every process otherwise.
    """
    for name in names:
        with suppress(RuntimeError, AttributeError):  # no folder; another version of the package, or no compiler
            getattr(module, name).enable_caching()


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
