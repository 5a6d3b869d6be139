"""Fingerprints of methods: a change to the code of a method makes its finished trials stale, and no others."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterable
from hashlib import sha256
from types import FunctionType
from typing import Any


def hash_of(sources: Iterable[str]) -> str:
    """A short hash of the code in some sources."""
    return sha256("\n".join(map(meaning, sources)).encode()).hexdigest()[:12]


def codes(function: Callable[..., Any], seen: frozenset[str] = frozenset()) -> set[str]:
    """Code of a function and of the functions of the experiments that it calls by name."""
    function = unwrapped(function)
    found = {meaning(inspect.getsource(function))}
    for name in function.__code__.co_names:
        other = unwrapped(function.__globals__.get(name))
        if isinstance(other, FunctionType) and other.__module__.startswith("experiments.") and name not in seen:
            found |= codes(other, seen | {name, function.__name__})
    return found


def unwrapped(thing: Any) -> Any:
    """A function without its cache, or the Python code of a compiled one."""
    return getattr(thing, "py_func", getattr(thing, "__wrapped__", thing))


def meaning(source: str) -> str:
    """Source without layout, comments and docstrings, which change no result."""
    tree = ast.parse(textwrap.dedent(source))
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if (
            isinstance(body, list)
            and body
            and isinstance(body[0], ast.Expr)
            and isinstance(body[0].value, ast.Constant)
        ):
            node.body = body[1:]
    return ast.dump(tree)
