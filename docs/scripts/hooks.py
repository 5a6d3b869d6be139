"""Hooks for mkdocs: reStructuredText roles in docstrings become plain code."""

from __future__ import annotations

import re
from typing import Any

ROLE = re.compile(r":(?:meth|class|func|attr|mod):(?=<code>)")


def on_page_content(html: str, **_: Any) -> str:
    """Remove the role from ``:meth:`fit```."""
    return ROLE.sub("", html)
