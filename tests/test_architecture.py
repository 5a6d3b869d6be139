"""The house: ten layers without exceptions, a picture that says so, and its size."""

import ast
import importlib.util
import io
import re
import tokenize
import tomllib
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "topicsteer"
FILES = sorted(SOURCE.rglob("*.py"))


@pytest.fixture(scope="module")
def drawn():
    spec = importlib.util.spec_from_file_location("drawn", ROOT / "docs" / "scripts" / "make_architecture.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_contract_has_ten_layers_and_no_exceptions():
    lint = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    contract = next(one for one in lint["contracts"] if one["type"] == "layers")
    assert len(contract["layers"]) == 10
    assert contract["exhaustive"]
    assert not {name for one in (lint, *lint["contracts"]) for name in one if "ignore_imports" in name}


def test_at_most_fourteen_names_at_the_root(drawn):
    names = {path.stem for path in SOURCE.iterdir() if path.name not in ("__init__.py", "__main__.py", "__pycache__")}
    names.discard("py")  # py.typed
    assert len(names) <= 14
    assert names == {name for layer in drawn.layers() for name in layer}


def test_picture_and_table_say_what_the_contract_says(drawn):
    rows = re.findall(r"^\| (\d+) \| `(\w+)` \|", drawn.PAGE.read_text(), flags=re.M)
    listed = [[name for number, name in rows if number == str(k)] for k in range(1, 11)]
    assert listed == drawn.layers()
    shown = re.findall(r'<text class="layer" x="\d+" y="(\d+)">(\w+)<', drawn.PICTURE.read_text())
    heights = sorted({int(y) for y, _ in shown})
    assert [[name for y, name in shown if int(y) == height] for height in heights] == drawn.layers()
    assert drawn.PICTURE.read_text() == drawn.picture(), "run python docs/scripts/make_architecture.py"
    assert drawn.PAGE.read_text() == drawn.page(), "run python docs/scripts/make_architecture.py"


def code_lines(source):
    """Numbers of the lines that hold code: no docstrings, comments or blank lines."""
    passive = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    lines = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in passive:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module) and node.body:
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                lines -= set(range(first.lineno, first.end_lineno + 1))
    return lines


def test_the_house_is_small():
    """Size of the package and of its documentation. A feature that needs more room replaces another."""
    assert sum(len(code_lines(path.read_text())) for path in FILES) <= 20_100
    guidance = [path for path in FILES if path.parent.name == "guidance"]
    assert sum(len(code_lines(path.read_text())) for path in guidance) <= 1_500
    assert len(guidance) <= 10
    assert len(FILES) <= 150
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    assert sum(len(page.read_text(encoding="utf-8").split()) for page in pages) <= 32_000


def test_file_names_are_unique():
    names = Counter(path.name for path in FILES if path.name != "__init__.py")
    assert [name for name, count in names.items() if count > 1] == []


@pytest.mark.parametrize(
    "pattern",
    [
        r"forest is (not )?None",
        r"\bTable = Any\b",
        r"getattr\(source, \"ready\"",
        r"(?<!self\.)\bestimator_?\.[a-z]\w* = ",
    ],
    ids=["a forest is never None", "tables have types", "a spool is a type", "nobody writes into an estimator"],
)
def test_patterns_that_stay_out(pattern):
    lines = [(path, line) for path in FILES for line in path.read_text().splitlines()]
    assert [f"{path.relative_to(SOURCE)}: {line}" for path, line in lines if re.search(pattern, line)] == []


def test_nobody_above_the_backends_asks_where_rows_live():
    kinds = re.compile(r"isinstance\(.*(csr|BlockFolder)")
    outside = [path for path in FILES if path.parent.name != "backends"]
    found = [f"{path.name}: {line}" for path in outside for line in path.read_text().splitlines() if kinds.search(line)]
    assert not found


def test_temporary_files_have_an_owner():
    """`system.files.Scratch` is swept after a crash; folders of `tempfile` stay for ever."""
    found = []
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text())):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                continue
            if node.func.attr in ("TemporaryDirectory", "NamedTemporaryFile", "mkdtemp", "mkstemp"):
                inside = any(keyword.arg == "dir" for keyword in node.keywords)
                if not inside and path != SOURCE / "system" / "files.py":
                    found.append(f"{path.relative_to(SOURCE)}:{node.lineno}")
    assert not found, f"use Scratch: {found}"


def test_the_long_files_of_the_tests_exist():
    import conftest

    assert [name for name in conftest.LONG if not (Path(conftest.__file__).parents[1] / name).is_file()] == []


TESTS = ROOT / "tests"
# Private names of other packages and of the standard library, and methods that notebooks and named tuples call.
FOREIGN = {"_repr_html_", "_replace", "_fields", "_asdict", "_nb_optimize_layout_euclidean_single_epoch"}
TESTED = sorted(TESTS.rglob("*.py"))


def private_names(tree):
    """Private names that a test imports from our packages or reads from an object other than self."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "topicsteer":
            yield from (alias.name for alias in node.names if re.match("_[^_]", alias.name))
        elif isinstance(node, ast.Attribute) and ast.unparse(node.value) != "self":
            yield from (name for name in [node.attr] if re.match("_[^_]", name) and name not in FOREIGN)


def patched_constants(tree):
    """Upper-case names that a test patches with ``setattr``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "setattr":
            strings = [one.value for one in node.args[:2] if isinstance(one, ast.Constant)]
            foreign = ast.unparse(node.args[0]) == "numba.config"
            yield from (str(one) for one in strings if not foreign and re.search(r"(^|\.)_?[A-Z][A-Z_]+$", str(one)))


def test_no_test_reaches_into_private_names():
    found = {str(path.relative_to(TESTS)): sorted(private_names(ast.parse(path.read_text()))) for path in TESTED}
    assert not {path: names for path, names in found.items() if names}


def test_no_test_patches_a_constant():
    found = {str(path.relative_to(TESTS)): list(patched_constants(ast.parse(path.read_text()))) for path in TESTED}
    assert not {path: names for path, names in found.items() if names}
