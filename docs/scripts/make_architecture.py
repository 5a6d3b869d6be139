"""Generate the picture and the table of the architecture page from the import contract and the package docstrings.

`python docs/scripts/make_architecture.py` writes both, and `tests/test_architecture.py` compares them.
"""

import ast
import re
import tomllib
from html import escape
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "topicsteer"
PAGE = ROOT / "docs" / "explanation" / "architecture.md"
PICTURE = ROOT / "docs" / "pictures" / "architecture.svg"
BEGIN, END = "<!-- layers: made by docs/scripts/make_architecture.py -->", "<!-- end of layers -->"
COLOURS = ("#e0f2f1", "#00796b", "#222", "#444")
WIDTH, HEIGHT, GAP = 860, 50, 10


def layers() -> list[list[str]]:
    """Return the layers of the contract, from top to bottom; packages in one layer are independent."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (contract,) = (one for one in contracts if one["type"] == "layers")
    return [[name.strip() for name in re.split("[|:]", layer)] for layer in contract["layers"]]


def about(name: str) -> str:
    """Return the first sentence of the docstring of a package or module."""
    path = PACKAGE / name / "__init__.py" if (PACKAGE / name).is_dir() else PACKAGE / f"{name}.py"
    text = ast.get_docstring(ast.parse(path.read_text())) or ""
    return text.split("\n\n")[0].replace("\n", " ").rstrip(".").split(". ")[0]


def shortened(text: str, room: int) -> str:
    """Cut a text after the last clause that fits into the room."""
    clauses = re.split(r"(?=[,:;])", text)
    while len(clauses) > 1 and len("".join(clauses)) > room:
        clauses.pop()
    return "".join(clauses)


def modules(name: str) -> list[str]:
    """Return the names of the modules in a package."""
    folder = PACKAGE / name
    files = (path for path in folder.glob("*") if path.suffix == ".py" or (path / "__init__.py").exists())
    return sorted(path.stem for path in files if not path.stem.startswith("__"))


def table() -> str:
    """Return the table: one row per package, from the top layer to the bottom one."""
    rows = ["| layer | package | purpose | modules |", "|---|---|---|---|"]
    for number, layer in enumerate(layers(), 1):
        for name in layer:
            inside = " ".join(f"`{module}`" for module in modules(name))
            rows.append(f"| {number} | `{name}` | {about(name)} | {inside} |")
    return "\n".join(rows)


def picture() -> str:
    """Return the picture: one bar per layer, with the lowest layer at the bottom."""
    fill, stroke, dark, grey = COLOURS
    found = layers()
    height = len(found) * (HEIGHT + GAP) + GAP
    style = (
        f".box{{fill:{fill};stroke:{stroke};stroke-width:1.2}} text{{fill:{dark}}} .small{{font-size:11px;fill:{grey}}}"
    )
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH + 40} {height}" '
        'font-family="system-ui, sans-serif" font-size="14">',
        "<title>The layers of topicsteer: a module imports only from the layers below its own</title>",
        f"<style>{style}</style>",
        f'<rect width="{WIDTH + 40}" height="{height}" fill="#fff"/>',
    ]
    for number, layer in enumerate(found):
        y = GAP + number * (HEIGHT + GAP)
        wide = (WIDTH - GAP * (len(layer) - 1)) / len(layer)
        parts.append(f'<text class="small" x="12" y="{y + 30}">{number + 1}</text>')
        for place, name in enumerate(layer):
            x = 30 + place * (wide + GAP)
            shown = shortened(about(name).replace("`", ""), int(wide / 6.2))
            parts += [
                f'<rect class="box" x="{x:.0f}" y="{y}" width="{wide:.0f}" height="{HEIGHT}" rx="6"/>',
                f'<text class="layer" x="{x + 12:.0f}" y="{y + 21}">{escape(name)}</text>',
                f'<text class="small" x="{x + 12:.0f}" y="{y + 39}">{escape(shown)}</text>',
            ]
    return "\n".join([*parts, "</svg>", ""])


def page() -> str:
    """Return the architecture page with a new table."""
    before, rest = PAGE.read_text().split(BEGIN)
    return f"{before}{BEGIN}\n\n{table()}\n\n{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    PAGE.write_text(page())
    PICTURE.write_text(picture())
