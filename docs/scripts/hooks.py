"""What mkdocs does besides: roles of reStructuredText in docstrings become plain code."""

from __future__ import annotations

import re
from typing import Any

ROLE = re.compile(r":(?:meth|class|func|attr|mod):(?=<code>)")


def on_page_content(html: str, **_: Any) -> str:
    """Take the role away from ``:meth:`fit```."""
    return ROLE.sub("", html)
