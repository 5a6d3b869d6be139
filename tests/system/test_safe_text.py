import re

import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from topicsteer.report import table_files
from topicsteer.system.templates import guarded, revealed, unguarded, visible

texts = st.text(st.characters(exclude_categories=()), max_size=300)
HIDDEN = re.compile("[\x00-\x08\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


@given(texts)
@example("\u202e\u2066\x00\ud800\ufeff")
def test_hidden_characters_are_replaced_by_their_code_points(text):
    shown = revealed(text)
    assert not HIDDEN.search(shown)
    assert revealed(shown) == shown
    shown.encode()
    assert re.sub("⟦U\\+([0-9A-F]{4,})⟧", lambda m: chr(int(m[1], 16)), shown) == text or "⟦" in text


@given(texts, st.integers(2, 400))
def test_nothing_is_longer_than_its_limit(text, limit):
    assert len(visible(text, limit)) <= limit
    if len(text) > limit:
        assert visible(text, limit).endswith("…")


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r"])
def test_every_beginning_of_a_formula_is_guarded(start):
    """Spreadsheets read each of them as the start of a formula or of a command."""
    for cell in (f"{start}SUM(A1)", start, f"'{start}x"):
        assert guarded(cell) == f"'{cell}"
        assert unguarded(guarded(cell)) == cell
        assert table_files.guarded(pl.DataFrame({"a": [cell]})).rows() == [(f"'{cell}",)]


@given(st.text(st.sampled_from("=+-@'\t\r1a."), max_size=6))
def test_a_guarded_cell_comes_back(cell):
    assert unguarded(guarded(cell)) == cell
