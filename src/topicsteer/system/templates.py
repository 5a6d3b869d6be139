"""Pages from templates: every value is escaped, and hidden characters are made visible."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from topicsteer.system.safe_text import revealed, visible

if TYPE_CHECKING:
    from jinja2 import Environment


def render(template: str, **values: Any) -> str:
    """Fill a template.

    Parameters
    ----------
    template : str
        Path inside the package, such as "report/templates/report.html".
    **values
        Content of the template. Text is escaped; only `markupsafe.Markup` is inserted as it is.

    Examples
    --------
    >>> render("report/templates/model.html", summary="1 topic <b>", rows=[], belief="")
    '<p>1 topic &lt;b&gt;</p>'
    """
    return environment().get_template(template).render(values)


@cache
def environment() -> Environment:
    """The template engine, loaded with the first page."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    engine = Environment(
        loader=PackageLoader("topicsteer", ""),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    engine.filters |= {
        "cut": visible,
        "thousands": "{:,}".format,
        "percent": lambda share, digits=0: f"{share:.{digits}%}",
        "px": lambda length: f"{length:.1f}".removesuffix(".0"),
        "counted": lambda number, noun: f"{number:,} {noun}{'' if number == 1 else 's'}",
    }
    return engine


def _finalize(value: Any) -> Any:
    """A value as a template may show it: plain text without hidden characters."""
    return value if isinstance(value, int | float) or hasattr(value, "__html__") else revealed(str(value))
