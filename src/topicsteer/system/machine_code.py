"""Compiled functions whose machine code is kept between runs, also where the package and the home are read-only.

numba keeps machine code next to the source, or in the home of the user, and refuses a function if it can write to
neither. Such functions are kept in a private temporary folder here. A folder elsewhere begins with a copy of the code
next to the source: an image of a container that ran once while it was built compiles nothing again. `lazy_module` loads
a module with compiled functions when it is first used, so that quick commands do not pay for it.
"""

import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def jit(**options: Any) -> Callable[[F], F]:
    """Return a decorator like ``numba.njit(cache=True)`` that finds a folder for the machine code, or does without.

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
    from numba import config, njit

    def decorate(function: F) -> F:
        with suppress(RuntimeError):  # numba finds no folder that it can write to
            return _cached(function, options)
        folder = private_folder()
        if folder is not None:
            setattr(config, "CACHE_DIR", str(folder))  # noqa: B010, for other packages too: they would fail as well
            with suppress(RuntimeError):  # a function without a file
                return _cached(function, options)
        return njit(**options)(function)  # type: ignore[no-any-return]

    return decorate


def _cached(function: F, options: dict[str, Any]) -> F:
    """Return the compiled function; machine code next to the source is copied first if it is kept elsewhere."""
    from numba import njit

    found = njit(cache=True, **options)(function)
    source = Path(function.__code__.co_filename).parent / "__pycache__"
    if found is not function and found.stats.cache_path != str(source):  # the same function if the compiler is off
        copy_code(source, Path(found.stats.cache_path))
    return found  # type: ignore[no-any-return]


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


@cache
def private_folder() -> Path | None:
    """Return a folder for machine code that only this user can write to; None if there is none.

    Machine code is loaded and run, so a folder that a stranger may have made is not used.
    """
    with suppress(OSError, AttributeError):
        folder = Path(tempfile.gettempdir()) / f"topicsteer-numba-{os.getuid()}"
        with suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        found = folder.lstat()
        if stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077:
            return folder
    return None


@cache
def copy_code(source: Path, target: Path) -> None:
    """Copy machine code next to the source, once per folder."""
    with suppress(OSError):
        for file in sorted(source.glob("*.nb[ci]")):
            if not (target / file.name).exists():
                shutil.copyfile(file, target / file.name)


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
