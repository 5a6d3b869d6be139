"""The built-in corpus: docstrings of the scientific libraries and of Python, labelled with their area.

It is always there, offline, because topicsteer cannot run without the packages it is read from.
"""

import ast
import gc
import importlib.util
import re
import sysconfig
import tomllib
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache
from importlib.resources import files
from pathlib import Path

from topicsteer.corpora.documents import Documents, documents_of
from topicsteer.corpora.read_report import ReadError, ReadReport

Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef

# A prompt with what follows it up to the next empty line; a place that is filled in at import.
NOT_PROSE = re.compile(r"^[ \t]*>>>.*(?:\n[ \t]*\S.*)*\n?|%\(\w+\)s", re.MULTILINE)


def load_docstrings(*, min_length: int = 200) -> Documents:
    """Docstrings of numpy, scipy, scikit-learn and the standard library, labelled with their area.

    Nothing is imported and nothing is downloaded: the source files of the installed packages are read, and
    their versions decide how many documents there are. Doctests are dropped, so that the texts are prose.

    Parameters
    ----------
    min_length : int, default=200
        Leave out docstrings with fewer characters.

    Returns
    -------
    Documents
        Ids such as ``"scipy.linalg.svd"``, the docstrings, and one or two areas each, sorted by id. The
        column ``package`` says where a document comes from.

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
    rows = [(name, text, list(areas), package) for name, text, areas, package in _rows() if len(text) >= min_length]
    return documents_of(rows, ["package"], ReadReport("docstrings of the installed packages"))


def read_areas() -> dict[str, list[str]]:
    """The modules of each area."""
    return tomllib.loads(files("topicsteer.corpora.known").joinpath("areas.toml").read_text("utf-8"))


@lru_cache(maxsize=1)
def _rows() -> tuple[tuple[str, str, tuple[str, ...], str], ...]:
    """Name, text, areas and package of every distinct docstring; read once a process, it takes seconds."""
    areas: dict[str, tuple[str, ...]] = {}
    for area, modules in read_areas().items():
        for module in modules:
            areas[module] = (*areas.get(module, ()), area)
    found: dict[str, tuple[str, tuple[str, ...], str]] = {}
    collecting = gc.isenabled()
    gc.disable()  # syntax trees are a million small objects: collecting in between costs a third of the time
    try:
        for package in ("numpy", "scipy", "sklearn", "Python"):
            before = len(found)
            for module, path in _files(package, areas):
                labels = areas[max((name for name in areas if f"{module}.".startswith(f"{name}.")), key=len)]
                for name, text in _docstrings(_parse(path), module):
                    found.setdefault(text, (name, labels, package))
            if len(found) == before:
                raise ReadError(
                    f"the source files of {package} hold no docstrings, and the built-in corpus is read from "
                    f"them: install {package} with its .py files"
                )
    finally:
        if collecting:
            gc.enable()
    count = Counter(_public(name) for name, _, _ in found.values())
    return tuple(
        sorted(
            (name if count[_public(name)] > 1 else _public(name), text, labels, package)
            for text, (name, labels, package) in found.items()
        )
    )


def _files(package: str, modules: Iterable[str]) -> list[tuple[str, Path]]:
    """Name and source file of the modules of a package under these names, tests left out, sorted."""
    if package == "Python":
        root = Path(sysconfig.get_path("stdlib"))
        modules = [name for name in modules if name.partition(".")[0] not in ("numpy", "scipy", "sklearn")]
    else:
        spec = importlib.util.find_spec(package)  # finds the file, does not import it
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
    """Syntax tree of a file; what the compiler thinks of other people's code stays out of our warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(path.read_bytes())


def _docstrings(node: ast.Module | Definition, name: str) -> Iterator[tuple[str, str]]:
    """Dotted name and text without doctests of a module or class and of what is public in it."""
    text = NOT_PROSE.sub("", ast.get_docstring(node) or "").strip()
    if text:
        yield name, text
    if isinstance(node, ast.Module | ast.ClassDef):
        for child in node.body:
            if isinstance(child, Definition) and not child.name.startswith("_"):
                yield from _docstrings(child, f"{name}.{child.name}")


def _public(name: str) -> str:
    """Leave out private modules: ``scipy.linalg._decomp_svd.svd`` is known as ``scipy.linalg.svd``."""
    return ".".join(part for part in name.split(".") if not part.startswith("_")) or name
