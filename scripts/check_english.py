"""Check the prose of the project against the six rules of CONTRIBUTING.md; `make check` runs it.

Usage: ``python scripts/check_english.py [files or folders]``. It reads Markdown, and in Python files the docstrings,
comments and messages; in TOML, HTML and JavaScript files the strings and texts.
"""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

PLACES = [
    "src",
    "docs",
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "experiments",
    "benchmarks",
    "examples",
    "scripts",
]
# A sentence with more words than this holds more than one idea.
LONGEST = 25
# Nouns on either side of a distributive "a", as in "one row a topic".
UNITS = (
    "block card cell class column corpus day document file fold group hour iteration label line minute model module "
    "month number object page panel person process row run second seed task term text thread time topic word worker"
).replace(" ", "|")
RULES = {
    rf"\b(?:(?!label )(?:{UNITS})s?|\d+|once|twice|µs|ms|s|MB|bytes|entries|weights) an? (?:{UNITS})\b": "write 'per'",
    r"\b(?:says?|said|saying|tells?|told|telling|hears?|heard|obeys?|obeyed|obeying)\b": "programs read, return, write",
    r"\b(?:besides?|anew|so many|so much|of which|(?:at|in) hand|thereby)\b": "write it more directly",
    r"\bthose (?:that|who|which|of|in|with)\b": "use a noun",
    r"\bwhat (?:is|was|are|were|has|have|had|it|they|you|we|nobody|the|an?|one|there|follows|remains)\b(?![^.]*\?)": (
        "use a noun"
    ),
}
PATTERNS = [(re.compile(pattern, re.IGNORECASE), advice) for pattern, advice in RULES.items()]
CODE = re.compile(r"```.*?```|<script.*?</script>|<style.*?</style>|<!--.*?-->", re.DOTALL)
# Tags of templates, and of HTML around whole blocks of text, end a sentence.
BLOCK = re.compile(r"\{[%#].*?[%#]\}|</?(?!(?:a|b|bdi|code|span)\b)[a-z!][^>]*>", re.DOTALL)
INLINE = re.compile(r"``[^`]+``|`[^`]+`|\$[^$]+\$|https?://\S+|\]\([^)]*\)|<[^>]*>|:\w+:|\{[^{}]*\}")
SENTENCE_END = re.compile(r"(?<=[.!?:;])\s+|\n\s*(?:[-*#>]|\d+\.)\s|\s\|\s?|\n\s*\n|\n\s*-{3,}")


def main(arguments: list[str]) -> int:
    """Print every finding; the exit code is 1 if there is one."""
    findings = [line for place in arguments or PLACES for path in files(Path(place)) for line in check(path)]
    print(*findings, sep="\n", end="\n" if findings else "")
    return int(bool(findings))


def files(place: Path) -> list[Path]:
    """The files with prose in a folder, or the file itself."""
    kinds = {".md", ".py", ".toml", ".html", ".js"}
    found = sorted(path for path in place.rglob("*") if path.suffix in kinds) if place.is_dir() else [place]
    return [path for path in found if path.name != Path(__file__).name]  # it names the banned words itself


def check(path: Path) -> Iterator[str]:
    """One line per finding: file, line, word and advice."""
    for line, prose in passages(path):
        text = INLINE.sub(lambda found: "code" + "\n" * found.group().count("\n"), prose)
        for pattern, advice in PATTERNS:
            for found in pattern.finditer(text):
                yield f"{path}:{line + text.count(chr(10), 0, found.start())}: {found.group()!r}: {advice}"
        for start, sentence in sentences(text):
            listed = re.sub(r"\bcode(\s+code)+\b", "code", sentence)  # a list of names is no sentence
            if (length := len(re.findall(r"[^\W\d_][\w'’-]*", listed))) > LONGEST:
                begin = " ".join(sentence.split()[:6])
                yield f"{path}:{line + text.count(chr(10), 0, start)}: {length} words: {begin} ..."


def sentences(text: str) -> Iterator[tuple[int, str]]:
    """Each sentence with its position; list items, table cells, colons and semicolons end one too."""
    start = 0
    for end in SENTENCE_END.finditer(text):
        yield start, text[start : end.start()]
        start = end.end()
    yield start, text[start:]


def passages(path: Path) -> Iterator[tuple[int, str]]:
    """Prose of a file with the line on which it begins."""
    source = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        yield from python_prose(source)
    elif path.suffix == ".toml":
        yield from enumerate(source.splitlines(), 1)
    elif path.suffix == ".js":
        yield from ((source.count("\n", 0, m.start()) + 1, m.group(1)) for m in re.finditer(r"//\s(.*)", source))
        for found in re.finditer(r"\"([^\"\n]*)\"|`([^`]*)`", source):
            text = found.group(1) or found.group(2) or ""
            if " " in text:
                yield source.count("\n", 0, found.start()) + 1, text
    elif path.suffix == ".html":
        yield 1, BLOCK.sub(lambda found: " | " + "\n" * found.group().count("\n"), source)
    else:
        yield 1, CODE.sub(lambda found: "\n" * found.group().count("\n"), source)


def python_prose(source: str) -> Iterator[tuple[int, str]]:
    """Comments, a run of lines as one, and strings."""
    comments: list[tuple[int, str]] = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            text = token.string.lstrip("# ")
            own_line = token.line.strip().startswith("#")
            if comments and own_line and comments[-1][0] + comments[-1][1].count("\n") + 1 == token.start[0]:
                comments[-1] = (comments[-1][0], f"{comments[-1][1]}\n{text}")
            else:
                comments.append((token.start[0], text))
    yield from comments
    tree = ast.parse(source)
    inside = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = [str(part.value) if isinstance(part, ast.Constant) else "X" for part in node.values]
            yield node.lineno, "".join(parts)
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and " " in node.value
            and id(node) not in inside
        ):
            yield node.lineno, re.sub(r"(?m)^\s*>>> .*$|^\s*\.\.\. .*$", "", node.value)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
