import html
import re

from hypothesis import given
from hypothesis import strategies as st

from topicsteer.report.page import excerpt
from topicsteer.system.templates import environment, revealed

texts = st.text(st.characters(exclude_categories=()), max_size=300)
spans = st.lists(st.tuples(st.integers(-5, 310), st.integers(-5, 310), st.floats(-1, 2)), max_size=8)


def markup(text, spans, limit=700):
    module = environment().get_template("report/templates/macros.html").module
    return str(module.excerpt(excerpt(text, spans, limit)))


def text_of(markup):
    """The text that a browser displays."""
    return html.unescape(re.sub(r"</?(?:mark|span)\b[^<>]*>", "", markup))


@given(texts, spans)
def test_highlights_change_no_text_and_hold_no_other_tag(text, spans):
    made = markup(text, spans)
    assert text_of(made) == revealed(text)
    assert set(re.findall("<[^>]*>", made)) <= {"</mark>", *(f'<mark class="m{level}">' for level in "1234")}
    assert made.count("<mark") == made.count("</mark>")


def test_words_are_marked_by_strength():
    made = markup("Rain & wind at noon", [(0, 4, 1.0), (7, 11, 0.3)])
    assert made == '<mark class="m4">Rain</mark> &amp; <mark class="m2">wind</mark> at noon'


def test_outside_and_weak_spans_are_ignored():
    spans = [(0, 4, 0.5), (7, 99, 1.0), (5, 5, 1.0), (-1, 3, 1.0), (5, 7, 0.0), (5, 7, float("nan"))]
    assert markup("rain at noon", spans) == '<mark class="m3">rain</mark> at noon'


def test_overlapping_pairs_of_characters_are_one_mark():
    pairs = [(0, 2, 0.9), (1, 3, 0.6), (2, 4, 0.1), (3, 5, 1.0), (5, 7, 0.3)]  # 都大 joins no words
    made = markup("東京都大学です", pairs)
    assert made == '<mark class="m4">東京都</mark><mark class="m4">大学</mark><mark class="m2">です</mark>'


def test_a_long_text_shows_its_beginning_and_how_much_was_cut():
    made = markup("A" * 5_000_000, [(10, 20, 1.0)])
    assert len(made) < 1000
    assert made.endswith(' <span class="cut">… 4,999,300 more characters</span>')
    assert '<mark class="m4">AAAAAAAAAA</mark>' in made
