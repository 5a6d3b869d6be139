import html
import re
import subprocess
import sys
from pathlib import Path

import jinja2
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import topicsteer
from topicsteer.system.templates import environment, render, revealed

PACKAGE = Path(topicsteer.__file__).parent
TEMPLATES = sorted(PACKAGE.rglob("*/templates/*.html"))
EXPLANATION = "analysis/templates/explanation.html"


def shown(value):
    """The markup of a piece of a text."""
    page = render(EXPLANATION, topics=[], pieces=[("", value)])
    return page.partition('pre-wrap">')[2].removesuffix("</p></div>")


@given(st.text(st.characters(exclude_categories=()), max_size=300))
@example("<script>alert('1')</script>\"&amp;")
@example("{{ 7 * 7 }}{% raw %}{# a #}")
@example("\u202e\u2066\x00\ud800\ufeff")
def test_any_text_is_shown_as_text(text):
    for value in (text, np.str_(text)):
        markup = shown(value)
        assert not set("<>\"'") & set(markup)
        assert html.unescape(markup) == revealed(str(value))  # numpy drops a final NUL
        markup.encode()


def test_an_id_of_any_type_is_text():
    class Key:
        def __str__(self):
            return "<b>\u202e"

    assert (shown(Key()), shown(7)) == ("&lt;b&gt;⟦U+202E⟧", "7")


def test_a_missing_value_is_an_error():
    with pytest.raises(jinja2.UndefinedError, match="pieces"):
        render(EXPLANATION, topics=[])


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_no_template_turns_escaping_off(path):
    source = path.read_text("utf-8")
    assert not re.search(r"\|\s*safe\b|autoescape|Markup", source)
    environment().get_template(path.relative_to(PACKAGE).as_posix())
    assert not re.search(r"<[a-z][^>]*=\{\{", source), "an attribute without quotes"


def test_there_is_no_markup_in_code():
    tag = re.compile(r"f['\"].*<[a-z]+[ >]")
    lines = [f"{path}: {line}" for path in PACKAGE.rglob("*.py") for line in path.read_text("utf-8").splitlines()]
    assert not [line for line in lines if tag.search(line)]


@pytest.mark.slow
def test_the_engine_is_loaded_with_the_first_page():
    code = "import sys, topicsteer.report.page; assert 'jinja2' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
