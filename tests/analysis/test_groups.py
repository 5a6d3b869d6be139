"""Groups from columns: plain values, dates and periods, missing values."""

import datetime
import re

import numpy as np
import pandas as pd
import pytest

from topicsteer.analysis.groups import MISSING, Groups, column_groups


def test_plain_values_are_sorted_by_number_then_by_name() -> None:
    groups = Groups.of([10, 9.0, "b", "10", "a"], "v")
    assert groups.names == ("9", "10", "a", "b")
    assert groups.codes.tolist() == [1, 0, 3, 1, 2]
    assert groups.period is None
    assert groups.notes == ()


@pytest.mark.parametrize(
    ("period", "names"),
    [
        ("day", ("2023-12-31", "2024-01-01", "2024-05-07")),
        ("week", ("2023-W52", "2024-W01", "2024-W19")),
        ("month", ("2023-12", "2024-01", "2024-05")),
        ("quarter", ("2023-Q4", "2024-Q1", "2024-Q2")),
        ("year", ("2023", "2024")),
    ],
)
def test_periods_agree_with_pandas(period: str, names: tuple[str, ...]) -> None:
    values = ["2024-05-07", "2023-12-31", "2024-01-01T10:00:00"]
    groups = Groups.of(values, "date", period)
    assert groups.names == names
    assert groups.period == period
    days = pd.to_datetime(pd.Series([value[:10] for value in values]))
    same = days.dt.to_period({"day": "D", "week": "W", "month": "M", "quarter": "Q", "year": "Y"}[period])
    assert pd.factorize(same, sort=True)[0].tolist() == groups.codes.tolist()


def test_the_period_follows_from_the_range() -> None:
    first = datetime.date(2020, 1, 1)
    for days, period in ((60, "week"), (600, "month"), (2000, "quarter"), (9000, "year")):
        groups = Groups.of([first, first + datetime.timedelta(days)], "date")
        assert groups.period == period
        assert len(groups.names) == 2
        assert period in groups.notes[0]


@pytest.mark.parametrize("form", ["%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y", "%m/%d/%Y", "%d %b %Y", "%d %B %Y", "%b %d, %Y"])
def test_written_forms_of_dates(form: str) -> None:
    days = [datetime.date(2024, 1, 31), datetime.date(2024, 2, 1), datetime.date(2024, 2, 28)]
    groups = Groups.of([f"{day:{form}}" for day in days], "date", "month")
    assert groups.names == ("2024-01", "2024-02")
    assert groups.codes.tolist() == [0, 1, 1]


def test_an_ambiguous_form_is_reported() -> None:
    groups = Groups.of(["01/02/2024", "03/04/2024"], "date", "month")
    assert "%d/%m/%Y is possible too" in groups.notes[0]


def test_months_and_years_as_text() -> None:
    assert Groups.of(["2024-03", "2024-05"], "m", "quarter").names == ("2024-Q1", "2024-Q2")
    assert Groups.of([2023, 2025], "y").names == ("2023", "2025")
    assert Groups.of(["2023", "2025"], "y", "year").names == ("2023", "2025")


def test_missing_values_are_a_group() -> None:
    values = ["b", None, " ", float("nan"), "a"]
    groups = Groups.of(values, "region")
    assert groups.names == ("a", "b", MISSING)
    assert groups.counts.tolist() == [1, 1, 3]
    assert "3 documents" in groups.notes[0]


def test_values_with_the_names_of_our_own_groups_get_quotes() -> None:
    groups = Groups.of(["(all)", "(missing)", None, "north"], "region")
    assert groups.names == ('"(all)"', '"(missing)"', "north", "(missing)")


def test_unreadable_dates_are_missing() -> None:
    values = ["2024-01-01"] * 19 + ["soon"]
    groups = Groups.of(values, "date", "month")
    assert groups.names == ("2024-01", MISSING)
    assert groups.counts.tolist() == [19, 1]


def test_a_column_may_have_a_colon_in_its_name() -> None:
    assert column_groups({"a:b": ["x", "y"]}, "a:b").names == ("x", "y")


@pytest.mark.parametrize(
    ("by", "words"),
    [
        ("colour", "there is no column 'colour' to group by; the further columns are: date, text, empty"),
        ("Date:month", "to group by; the further columns are: date, text, empty. Did you mean 'date'?"),
        ("date:decade", "expected one of day, week"),
        ("text:month", "few dates (such as 'hello')"),
        ("empty", "has no values"),
    ],
)
def test_errors(by: str, words: str) -> None:
    columns = {"date": ["2024-01-01"], "text": ["hello"], "empty": [None]}
    with pytest.raises(ValueError, match=re.escape(words)):
        column_groups(columns, by)


def test_too_many_groups() -> None:
    with pytest.raises(ValueError, match="different values"):
        Groups.of([str(k) for k in range(2000)], "id")


def test_dates_of_numpy_and_pandas() -> None:
    days = list(pd.to_datetime(["2024-01-05", None, "2024-03-01"]))
    assert Groups.of(days, "date", "month").names == ("2024-01", "2024-03", MISSING)
    assert np.array_equal(Groups.of(days, "date", "month").codes, [0, 2, 1])


@pytest.mark.parametrize(("dates", "is_date"), [(91, True), (90, True), (89, False), (60, False)])
def test_a_column_is_read_as_dates_if_nine_of_ten_values_are(dates, is_date):
    values = [f"2024-{1 + k % 12:02}-03" for k in range(dates)] + [f"text {k}" for k in range(100 - dates)]
    assert (Groups.of(values, "when").period is not None) == is_date
    if not is_date:
        with pytest.raises(ValueError, match="has few dates"):
            Groups.of(values, "when", period="month")


@pytest.mark.parametrize(
    ("values", "names"),
    [
        (["03.05.98", "04.06.01", "01.01.00", "29.02.96"], ("1996", "1998", "2000", "2001")),
        (["03/05/24", "04/06/01", "02/03/99"], ("1999", "2001", "2024")),  # never the 24th of May of the year 3
        (["31/12/70", "30/11/69"], ("1970", "2069")),
        (["1 Mar 24", "2 Apr 1999"], ("1999", "2024")),
        (["26-FEB-87", "1-MAR-87"], ("1987",)),
        (["98", "99", "01", "00"], ("1998", "1999", "2000", "2001")),
        (["2001", "99"], ("1999", "2001")),
    ],
)
def test_years_of_two_digits_are_1970_to_2069(values: list[str], names: tuple[str, ...]) -> None:
    groups = Groups.of(values, "date", "year")
    assert groups.names == names
    assert "Two-digit years of 'date' were read as 1970 to 2069." in groups.notes
    assert not any("digit" in note for note in Groups.of(["2024-01-03", "2024/02/09"], "date").notes)


def test_years_of_three_digits_are_no_dates() -> None:
    with pytest.raises(ValueError, match="few dates"):
        Groups.of(["03.05.124", "04.05.0980"], "date", "year")


def test_values_that_are_no_dates_are_not_called_missing_values() -> None:
    groups = Groups.of(["2024-01-03"] * 20 + ["2024-02-30", "rubbish", None], "date", "month")
    assert groups.names == ("2024-01", MISSING)
    assert groups.counts.tolist() == [20, 3]
    assert groups.notes == (
        "Values of 'date' without a date: 2, such as '2024-02-30'. They count as missing.",
        "1 documents without a value of 'date' are the group (missing).",
    )


@pytest.mark.parametrize("kind", [datetime.date, datetime.datetime])
def test_a_text_late_in_a_column_of_dates(kind: type) -> None:
    groups = Groups.of([*(kind(2024, 1 + i % 2, 3) for i in range(1200)), "unknown"], "date", "month")
    assert groups.names == ("2024-01", "2024-02", MISSING)
    assert groups.counts.tolist() == [600, 600, 1]


def test_equal_readings_of_a_date_are_not_doubtful() -> None:
    assert not any("possible too" in note for note in Groups.of(["1 Mar 2024", "2 Apr 2024"], "date").notes)
    assert any("possible too" in note for note in Groups.of(["01/03/2024", "02/04/2024"], "date").notes)
