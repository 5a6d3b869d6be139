"""The house: ten layers without exceptions, a picture that says so, short files and functions."""

import ast
import importlib.util
import io
import re
import tokenize
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "topicsteer"
FILES = sorted(SOURCE.rglob("*.py"))
LONGEST_FILE, LONGEST_FUNCTION = 350, 60
THE_ALGORITHM = {"nmf/loop.py: factorise"}  # reads from top to bottom as the paper's loop does


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


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(SOURCE).as_posix())
def test_files_and_functions_are_short(path):
    source = path.read_text()
    lines = code_lines(source)
    assert len(lines) <= LONGEST_FILE
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if f"{path.relative_to(SOURCE).as_posix()}: {node.name}" in THE_ALGORITHM:
                continue
            assert len(lines & set(range(node.lineno, node.end_lineno + 1))) <= LONGEST_FUNCTION, node.name


def test_nobody_above_the_backends_asks_where_rows_live():
    kinds = re.compile(r"isinstance\(.*(csr|BlockFolder|Spool|StoredWeights)")
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
