"""Groups of documents from any column of their table: values as they are, dates by week, month, quarter or year."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from topicsteer.labels.spelling import near_miss
from topicsteer.system.templates import visible
from topicsteer.system.values import ALL, is_missing, whole

if TYPE_CHECKING:
    import polars as pl


# Name of the group of documents without a value.
MISSING = "(missing)"
# Periods of time, with the duration that polars truncates dates to; the order is from fine to coarse.
PERIODS = {"day": "1d", "week": "1w", "month": "1mo", "quarter": "1q", "year": "1y"}
# Days in a period, for the choice of a period from the range of dates.
DAYS = {"day": 1, "week": 7, "month": 30.4, "quarter": 91.3, "year": 365.25}
# The period is the finest one with at most this many periods in the range.
MOST_PERIODS = 26
# A column is read as dates if at least this share of its values can be read as such.
DATES = 0.9
# Values per column that are examined to recognise dates.
SAMPLE = 1000
# Written forms of a date; polars recognises ISO forms by itself.
FORMS = (
    *("%Y-%m-%d", "%Y-%m", "%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%d %b %Y", "%d %B %Y", "%b %d, %Y"),
    *("%d-%b-%Y", "%d-%b-%Y %H:%M:%S%.f", "%a, %d %b %Y %H:%M:%S %z"),  # newswires, mail
)
# A column with more distinct values than this is no group.
MOST_GROUPS = 1000
# A column without dates looks like groups up to this number of values.
FEW_GROUPS = 24


@dataclass(frozen=True, eq=False)
class Groups:
    """A group for each document.

    Parameters
    ----------
    column : str
        The column, as given by the user.
    names : tuple of str
        Names of the groups in order: by time, by number, or by name; ``(missing)`` is last.
    codes : array of int (n_documents,)
        Number of the group of each document; -1 = left out.
    period : str or None
        "day", "week", "month", "quarter" or "year" if the groups are periods of time.
    notes : tuple of str
        Sentences about guesses and about documents without a value.
    starts : tuple of datetime.date
        First day of each period; empty for other groups. The group ``(missing)`` has none.

    Examples
    --------
    >>> groups = Groups.of(["b", "a", None, "b"], "region")
    >>> groups.names, groups.codes.tolist(), groups.counts.tolist()
    (('a', 'b', '(missing)'), [1, 0, 2, 1], [1, 2, 1])
    >>> Groups.of(["2024-01-03", "2024-02-09"], "date", period="month").names
    ('2024-01', '2024-02')
    """

    column: str
    names: tuple[str, ...]
    codes: NDArray[np.int64]
    period: str | None = None
    notes: tuple[str, ...] = ()
    starts: tuple[datetime.date, ...] = ()

    @property
    def counts(self) -> NDArray[np.int64]:
        """Number of documents of each group."""
        return np.bincount(self.codes[self.codes >= 0], minlength=len(self.names))

    @classmethod
    def none(cls, n: int) -> Groups:
        """Return no groups of n documents."""
        return cls("", (), np.full(n, -1, dtype=np.int64))

    @classmethod
    def of(cls, values: Sequence[Any], column: str, period: str | None = None) -> Groups:
        """Return groups from the values of a column.

        Parameters
        ----------
        values : sequence
            One value per document: text, numbers, dates; None and blanks are missing.
        column : str
            Name of the column.
        period : {"day", "week", "month", "quarter", "year"}, optional
            Read the values as dates. Default: if nearly all of them are dates, by a period that fits their range.
        """
        if period is not None and period not in PERIODS:
            raise ValueError(f"{column}:{period}: expected one of {', '.join(PERIODS)} after the colon.")
        none = np.array([is_missing(value) for value in values], dtype=np.bool_)
        if none.all():
            raise ValueError(f"the column {column!r} has no values: choose another column.")
        dates, notes = _dates(values, none, column, period)
        if dates is None:
            return cls._plain(values, none, column)
        guessed, period = period is None, period or _period(dates)
        names, codes, starts = _periods(dates, period)
        if guessed:
            notes.append(
                f"Dates of {column!r} are shown by {period}; {column}:year and the like choose another period."
            )
        other = np.flatnonzero((codes < 0) & ~none)
        if other.size:
            first = visible(str(values[other[0]]), 30)
            notes.append(
                f"Values of {column!r} without a date: {other.size:,}, such as {first!r}. They count as missing."
            )
        return _closed(cls(column, names, codes, period, tuple(notes), starts), none)

    @classmethod
    def _plain(cls, values: Sequence[Any], none: NDArray[np.bool_], column: str) -> Groups:
        """Return groups of equal values."""
        text = [None if gone else _text(value) for value, gone in zip(values, none, strict=True)]
        names = sorted({value for value in text if value is not None}, key=_order)
        if len(names) > MOST_GROUPS:
            raise ValueError(
                f"the column {column!r} has {len(names):,} different values, and {MOST_GROUPS:,} groups are the most: "
                "choose another column, or a period of a date such as date:month."
            )
        number = {name: k for k, name in enumerate(names)} | {None: -1}
        codes = np.array([number[value] for value in text], dtype=np.int64)
        return _closed(cls(column, tuple(names), codes), none)


def named_column(columns: Mapping[str, Sequence[Any]], name: str, role: str) -> Sequence[Any]:
    """Return a column by its name, or raise ValueError with the names of all columns."""
    if name not in columns:
        known = ", ".join(map(visible, columns)) or "none, so pass the table of the documents too"
        near = near_miss(name, list(columns))
        hint = f" Did you mean {near!r}?" if near else ""
        raise ValueError(f"there is no column {name!r} {role}; the further columns are: {known}.{hint}")
    return columns[name]


def column_groups(columns: Mapping[str, Sequence[Any]], by: str) -> Groups:
    """Return groups by a column; ``date:month`` names the period of a date.

    Examples
    --------
    >>> column_groups({"year": [2023, 2024]}, "year").names
    ('2023', '2024')
    """
    column, period = by, None
    if by not in columns and ":" in by:
        column, _, period = by.rpartition(":")
    return Groups.of(named_column(columns, column, "to group by"), column, period)


def likely_groups(name: str, values: Sequence[object]) -> Groups | None:
    """Return groups by value or by period; None if most values are missing, or if there are too many or one."""
    filled = [value for value in values if not is_missing(value)]
    if len(filled) < max(2, len(values) // 2) or len(set(map(str, filled))) < 2:
        return None
    with suppress(ValueError):  # too many values
        groups = Groups.of(values, name)
        known = len(groups.starts) if groups.period else len(set(map(str, filled)))
        return groups if known > 1 and (groups.period is not None or known <= FEW_GROUPS) else None
    return None


def _closed(groups: Groups, none: NDArray[np.bool_]) -> Groups:
    """Return the groups with one for documents without a value, which ``none`` marks, or without a date."""
    if not (groups.codes < 0).any():
        return groups
    codes = np.where(groups.codes < 0, len(groups.names), groups.codes)
    note = f"{none.sum():,} documents without a value of {groups.column!r} are the group {MISSING}."
    notes = (*groups.notes, note) if none.any() else groups.notes
    return replace(groups, names=(*groups.names, MISSING), codes=codes, notes=notes)


def _text(value: object) -> str:
    """Return the name of a value; the names of our own groups get quotes."""
    text = str(whole(value)).strip()
    return f'"{text}"' if text in (ALL, MISSING) else text


def _order(name: str) -> tuple[int, float, str]:
    """Sort key: numbers by size, then text."""
    try:
        number = float(name)
    except ValueError:
        return 1, 0.0, name
    return (0, number, name) if np.isfinite(number) else (1, 0.0, name)


def _dates(
    values: Sequence[Any], none: NDArray[np.bool_], column: str, period: str | None
) -> tuple[pl.Series | None, list[str]]:
    """Return the values as dates, None if they are no dates, and notes on forms that could mean another date."""
    import polars as pl

    some = [value for value, gone in zip(values, none, strict=True) if not gone]
    if all(isinstance(value, datetime.date) for value in some):  # a datetime is a date
        days = [None if gone else datetime.date(v.year, v.month, v.day) for v, gone in zip(values, none, strict=True)]
        return pl.Series(days, dtype=pl.Date), []
    shown = [None if gone else _text(value) for value, gone in zip(values, none, strict=True)]
    text = pl.Series(shown, dtype=pl.String)
    if period is None and text.drop_nulls().head(SAMPLE).str.contains(r"^\d+$").mean() == 1:
        return None, []  # plain numbers, such as years, are groups as they are
    if text.drop_nulls().str.contains(r"^(\d\d|\d{4})$").all():
        text = "01.01." + text
    parsed = [(form, _parsed(text, form)) for form in FORMS]
    form, raw = max(parsed, key=lambda one: one[1].count())  # the first of equal ones
    best = _with_century(raw)
    if best.count() < DATES * text.count():
        if period is not None:
            first = visible(next(v for v in text.to_list() if v is not None), 30)
            raise ValueError(f"the column {column!r} has few dates (such as {first!r}): write them as 2024-03-31.")
        return None, []
    rivals = [name for name, days in parsed if days.count() == raw.count() and not days.equals(raw)]
    notes = [f"Dates of {column!r} were read as {form} ({rivals[0]} is possible too)."] if rivals else []
    if (raw.dt.year() < 100).any():
        notes.append(f"Two-digit years of {column!r} were read as 1970 to 2069.")
    return best, notes


def _with_century(days: pl.Series) -> pl.Series:
    """The dates with years of two digits as 1970 to 2069, and without years of three digits."""
    import polars as pl

    year, offset = days.dt.year(), days.dt.offset_by
    two = pl.when(year < 70).then(offset("2000y")).when(year < 100).then(offset("1900y"))
    return pl.select(two.when(year >= 1000).then(days)).to_series()


def _parsed(text: pl.Series, form: str) -> pl.Series:
    """Dates of one written form; the time of the day does not count."""
    import polars as pl

    if form == "%Y-%m-%d":
        text = text.str.extract(r"^(\d{4}[-/]\d{1,2}[-/]\d{1,2})(?:[T ].*)?$", 1).str.replace_all("/", "-")
    if form == "%Y-%m":
        text = pl.select(pl.when(text.str.contains(r"^\d{4}-\d{1,2}$")).then(text + "-01")).to_series()
        form = "%Y-%m-%d"
    return text.str.to_date(form, strict=False)


def _period(dates: pl.Series) -> str:
    """Return the finest period of at least a week with few enough periods in the range of the dates."""
    numbers = dates.drop_nulls().to_physical().to_numpy()
    days = float(numbers.max() - numbers.min())
    fitting = (name for name in ("week", "month", "quarter", "year") if days / DAYS[name] <= MOST_PERIODS)
    return next(fitting, "year")


def _periods(dates: pl.Series, period: str) -> tuple[tuple[str, ...], NDArray[np.int64], tuple[datetime.date, ...]]:
    """Names of the periods with a document, the number of the period of each date, and the first days of periods."""
    starts = dates.dt.truncate(PERIODS[period])
    first = starts.drop_nulls().unique().sort()
    number = {day: k for k, day in enumerate(first.to_list())} | {None: -1}
    codes = np.array([number[day] for day in starts.to_list()], dtype=np.int64)
    days = tuple(first.to_list())
    return tuple(_period_name(day, period) for day in days), codes, days


def _period_name(day: datetime.date, period: str) -> str:
    if period == "week":
        year, week, _ = day.isocalendar()
        return f"{year}-W{week:02}"
    if period == "quarter":
        return f"{day.year}-Q{(day.month + 2) // 3}"
    return day.isoformat()[: {"day": 10, "month": 7, "year": 4}[period]]
