"""The frame of an HTML file that opens offline.

Style and script are inside. The Content-Security-Policy permits only these two, by their hashes, and no request.
"""

import base64
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from typing import Any

from topicsteer import __version__
from topicsteer.analysis.columns import Column, typed
from topicsteer.system.templates import render

# Scripts and style sheets of a page with charts and a document map.
SCRIPTS = ("document_map.js", "save_svg.js", "report.js")
STYLES = ("report.css", "charts.css", "document_map.css")
# The parts of a script that only a module may have.
_MODULE = re.compile(r"^import .*;\n|^export ", re.MULTILINE)


def page(template: str, title: str, *, scripts: Sequence[str] = (), **values: Any) -> str:
    """Fill a template of the report that extends base.html.

    Parameters
    ----------
    template : str
        Name of the file.
    title : str
        Of the page.
    scripts : sequence of str
        Names of the files of its script, if it has one. Their imports come before them.
    **values
        Content of the template.

    Returns
    -------
    str
        A whole HTML document.
    """
    from markupsafe import Markup

    style = " ".join(" ".join(map(_resource, STYLES)).split())
    code = '"use strict";\n' + "".join(_MODULE.sub("", _resource(name)) for name in scripts) if scripts else ""
    permitted = f"style-src {_source_hash(style)}" + (f"; script-src {_source_hash(code)}" if code else "")
    return render(
        f"report/templates/{template}",
        title=title,
        version=__version__,
        policy=f"default-src 'none'; {permitted}; base-uri 'none'; form-action 'none'",
        style=Markup(style),  # noqa: S704 - a file of this package
        script=Markup(code),  # noqa: S704 - a file of this package
        **values,
    )


def model_summary(
    summary: str, table: Mapping[str, Sequence[Any]] | None = None, columns: Iterable[Column] = (), belief: str = ""
) -> str:
    """A line about a model, its table of topics with all their terms, and its belief, for a notebook."""
    values = table or {}
    shown = typed(values, columns)
    rows = [[column.format(cell) for column, cell in zip(shown, row, strict=True)] for row in zip(*values.values())]  # noqa: B905
    return render("report/templates/model.html", summary=summary, columns=shown, rows=rows, belief=belief)


def _resource(name: str) -> str:
    return files("topicsteer.report").joinpath(name).read_text("utf-8")


def _source_hash(text: str) -> str:
    """The name of an inline style or script in a Content-Security-Policy."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
