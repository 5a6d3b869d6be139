"""Fail if a page of the built site loads anything from the network: ``python docs/scripts/check_site.py site``."""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path

LOADS = {
    "script": ("src",),
    "img": ("src", "srcset"),
    "link": ("href",),
    "iframe": ("src",),
    "source": ("src", "srcset"),
    "video": ("src", "poster"),
    "audio": ("src",),
    "object": ("data",),
    "embed": ("src",),
}
FOREIGN = re.compile(r"^\s*(?:[a-z]+:)?//", re.IGNORECASE)
IN_STYLE = re.compile(r"""(?:url\(|@import)\s*["']?\s*(?:https?:)?//[^)\s"']+""")


class Loads(HTMLParser):
    """Collects the foreign addresses that a page loads; links for the reader to click do not count."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect the attributes that make a browser fetch something."""
        given = {name: value or "" for name, value in attrs}
        if tag == "link" and given.get("rel") in ("canonical", "alternate", "next", "prev"):
            return
        self.found += [given[name] for name in LOADS.get(tag, ()) if FOREIGN.match(given.get(name, ""))]


def foreign(path: Path) -> list[str]:
    """Return the addresses that one file loads from the network."""
    text = path.read_text(encoding="utf-8")
    page = Loads()
    if path.suffix == ".html":
        page.feed(text)
    return page.found + IN_STYLE.findall(text if path.suffix in (".html", ".css", ".svg") else "")


def main(site: Path) -> int:
    """Check all files and print the findings; the exit code is 1 if there are any."""
    files = [path for path in sorted(site.rglob("*")) if path.suffix in (".html", ".css", ".svg")]
    bad = [f"{path}: loads {address}" for path in files for address in foreign(path)]
    print("\n".join(bad) or f"{len(files)} files, none loads anything from the network")
    return 1 if bad or not files else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else "site")))
