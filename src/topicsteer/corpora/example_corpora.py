"""Example corpora: customer messages, and the docstrings of installed packages."""

from __future__ import annotations

import ast
import importlib.util
import os
import re
import shutil
import sysconfig
import tomllib
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache
from importlib.resources import files
from pathlib import Path

from topicsteer.corpora.documents import Documents, ReadError, ReadReport


def example_table(copy: str | os.PathLike[str] | None = None) -> Path:
    """Return the path of a table of messages to a shop: id, text, region, date, topic and chosen.

    The messages are made up. 60 of the 300 were drawn at random, as `chosen` records, and have labels; `(none)` marks a
    message with none of the six topics.

    Parameters
    ----------
    copy : path, optional
        File to copy the table to. The path of the copy is returned.
    """
    table = Path(__file__).with_name("messages.csv")
    return table if copy is None else Path(shutil.copyfile(table, copy))


Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef

# Doctests up to the next empty line, and placeholders that are filled in at import.
NOT_PROSE = re.compile(r"^[ \t]*>>>.*(?:\n[ \t]*\S.*)*\n?|%\(\w+\)s", re.MULTILINE)


def load_docstrings(*, min_length: int = 200) -> Documents:
    """Docstrings of numpy, scipy, scikit-learn and the standard library, labelled with their area.

    The source files of the installed packages are read; nothing is imported or downloaded. The number of documents
    depends on their versions. Doctests are removed, so that the texts are prose.

    Parameters
    ----------
    min_length : int, default=200
        Leave out docstrings with fewer characters.

    Returns
    -------
    Documents
        Ids such as ``"scipy.linalg.svd"``, the docstrings, and one or two areas each, sorted by id. The column
        ``package`` names the package of each document.

    Raises
    ------
    ReadError
        If a package is installed without its source files.

    Examples
    --------
    >>> documents = load_docstrings()
    >>> len(documents) > 3000
    True
    >>> documents.labels[documents.ids.index("scipy.sparse.linalg.svds")]
    ['linear algebra', 'sparse matrices']
    """
    rows = [(name, text, list(areas), package) for name, text, areas, package in all_rows() if len(text) >= min_length]
    ids, texts, labels, packages = map(list, zip(*rows, strict=True))
    report = ReadReport("docstrings of the installed packages")
    return Documents(ids, texts, labels, {"package": packages}, report=report)


def read_areas() -> dict[str, list[str]]:
    """The modules of each area."""
    return tomllib.loads(files("topicsteer.corpora").joinpath("areas.toml").read_text("utf-8"))


@lru_cache(maxsize=1)
def all_rows() -> tuple[tuple[str, str, tuple[str, ...], str], ...]:
    """Name, text, areas and package of every distinct docstring; this takes seconds, so the result is cached."""
    areas: dict[str, tuple[str, ...]] = {}
    for area, modules in read_areas().items():
        for module in modules:
            areas[module] = (*areas.get(module, ()), area)
    found: dict[str, tuple[str, tuple[str, ...], str]] = {}
    for package in ("numpy", "scipy", "sklearn", "Python"):
        before = len(found)
        for module, path in _files(package, areas):
            labels = areas[max((name for name in areas if f"{module}.".startswith(f"{name}.")), key=len)]
            for name, text in _docstrings(_parse(path), module):
                found.setdefault(text, (name, labels, package))
        if len(found) == before:
            raise ReadError(
                f"the source files of {package} have no docstrings, but the built-in corpus needs them: "
                f"install {package} with its .py files"
            )
    count = Counter(_public(name) for name, _, _ in found.values())
    return tuple(
        sorted(
            (name if count[_public(name)] > 1 else _public(name), text, labels, package)
            for text, (name, labels, package) in found.items()
        )
    )


def _files(package: str, modules: Iterable[str]) -> list[tuple[str, Path]]:
    """Return the name and source file of the given modules of a package, without tests, sorted."""
    if package == "Python":
        root = Path(sysconfig.get_path("stdlib"))
        modules = [name for name in modules if name.partition(".")[0] not in ("numpy", "scipy", "sklearn")]
    else:
        spec = importlib.util.find_spec(package)  # This finds the file without an import.
        root = Path(spec.origin).parent.parent if spec and spec.origin else Path()
        modules = [name for name in modules if name.partition(".")[0] == package]
    paths: set[Path] = set()
    for name in modules:
        base = root.joinpath(*name.split("."))
        paths.update(base.rglob("*.py") if base.is_dir() else base.parent.glob(f"{base.name}.py"))
    named = {path: path.relative_to(root).with_suffix("").parts for path in paths}
    return sorted(
        (".".join(parts).removesuffix(".__init__"), path)
        for path, parts in named.items()
        if not {"test", "tests"} & set(parts)
    )


def _parse(path: Path) -> ast.Module:
    """Return the syntax tree of a file; warnings of the compiler about it are suppressed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(path.read_bytes())


def _docstrings(node: ast.Module | Definition, name: str) -> Iterator[tuple[str, str]]:
    """Yield the dotted name and text, without doctests, of a module or class and of its public members."""
    text = NOT_PROSE.sub("", ast.get_docstring(node) or "").strip()
    if text:
        yield name, text
    if isinstance(node, ast.Module | ast.ClassDef):
        for child in node.body:
            if isinstance(child, Definition) and not child.name.startswith("_"):
                yield from _docstrings(child, f"{name}.{child.name}")


def _public(name: str) -> str:
    """Remove private modules from a name: ``scipy.linalg._decomp_svd.svd`` becomes ``scipy.linalg.svd``."""
    return ".".join(part for part in name.split(".") if not part.startswith("_")) or name
