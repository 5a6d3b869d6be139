import html
import re

from hypothesis import example, given
from hypothesis import strategies as st

from topicsteer.report.markup import highlighted
from topicsteer.system.safe_text import shown, visible

texts = st.text(st.characters(exclude_categories=()), max_size=300)


def text_of(markup):
    """What a browser displays."""
    return html.unescape(re.sub(r"</?(?:mark|span)\b[^<>]*>", "", markup))


@given(texts)
@example("<script>alert('1')</script>\"&amp;")
@example("\u202e\u2066\x00\ud800\ufeff")
def test_any_text_is_shown_as_text(text):
    markup = shown(text, 10_000)
    assert not set("<>\"'") & set(markup)
    assert html.unescape(markup) == visible(text, 10_000)
    assert not re.search("[\x00-\x08\u202a-\u202e\u2066-\u2069\ud800-\udfff]", markup)
    markup.encode()


@given(texts, st.integers(2, 400))
def test_nothing_is_longer_than_its_limit(text, limit):
    assert len(visible(text, limit)) <= limit
    if len(text) > limit:
        assert visible(text, limit).endswith("…")


spans = st.lists(st.tuples(st.integers(-5, 310), st.integers(-5, 310), st.floats(-1, 2)), max_size=8)


@given(texts, spans)
def test_highlights_change_no_text_and_hold_no_other_tag(text, spans):
    markup = highlighted(text, spans)
    assert text_of(markup) == visible(text, 10_000)
    assert set(re.findall("<[^>]*>", markup)) <= {"</mark>", *(f'<mark class="m{level}">' for level in "1234")}
    assert markup.count("<mark") == markup.count("</mark>")


def test_overlapping_outside_and_weak_spans_are_left_out():
    spans = [(0, 4, 0.5), (2, 6, 1.0), (7, 99, 1.0), (5, 5, 1.0), (-1, 3, 1.0), (5, 7, 0.0), (5, 7, float("nan"))]
    assert highlighted("rain at noon", spans) == '<mark class="m3">rain</mark> at noon'


def test_a_long_text_shows_its_beginning_and_what_was_cut():
    markup = highlighted("A" * 5_000_000, [(10, 20, 1.0)], limit=700)
    assert len(markup) < 1000
    assert "… 4,999,300 more characters" in markup
    assert '<mark class="m4">AAAAAAAAAA</mark>' in markup


def test_a_long_text_shows_where_its_words_are():
    text = "word " * 2000 + "rain " * 20 + "word " * 2000
    markup = highlighted(text, [(10_000 + 5 * i, 10_004 + 5 * i, 1.0) for i in range(20)], limit=300)
    assert markup.count("<mark") == 20
    assert re.search("[0-9,]+ characters before …", markup)
    cut = [int(number.replace(",", "")) for number in re.findall("([0-9,]+)(?: more)? characters", markup)]
    kept = re.sub('<span class="cut">[^<]*</span>', "", markup)
    assert len(text) - sum(cut) <= 300
    assert len(text_of(kept)) - 2 == len(text) - sum(cut)  # a blank beside each note
