"""Tables as Excel workbooks: text stays text, numbers stay numbers, dates stay dates."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Collection, Iterable
from datetime import date, datetime, time
from typing import TYPE_CHECKING, Any

from topicsteer.analysis.column_formats import Column
from topicsteer.system.failures import warn_user
from topicsteer.system.files import Scratch, replacing, through
from topicsteer.system.templates import FORMULA, revealed

if TYPE_CHECKING:
    import polars as pl
    from xlsxwriter.format import Format
    from xlsxwriter.worksheet import Worksheet


# Limits of an Excel sheet: rows with the header, columns, characters of a cell.
ROWS, MOST_COLUMNS, CELL = 1 << 20, 1 << 14, 32_767
# Larger whole numbers would lose digits in a cell.
LARGEST = 10**15
# Excel has no earlier dates that other programs agree on.
FIRST_DATE = date(1900, 3, 1)
# Narrowest and widest column that is set, in characters.
WIDTHS = 9, 60
# Rows that decide on the width of a column.
MEASURED = 200
# Ends of lines other than the one that Excel uses.
_LINE_ENDS = re.compile("\r\n|[\r\x0b\x0c]")
_FORMULA = re.compile(FORMULA)


def write_workbook(table: pl.DataFrame, path: str | os.PathLike[str], columns: Iterable[Column] = ()) -> None:
    """Write a table as the only sheet of an .xlsx file; an old file stays until the new one is complete.

    Cells that look like formulas are text. Text that is longer than a cell can be is cut, and a warning counts these
    cells. Whole numbers of more than 15 digits, times with a zone and dates before March 1900 are written as text.
    Hidden characters appear as their code points.

    Parameters
    ----------
    table : polars.DataFrame
    path : path
        The file to write. Its folder must exist.
    columns : iterable of Column
        Columns of the kind "share" are shown in percent; their values are unchanged.

    Raises
    ------
    ValueError
        If the table has more rows or columns than a sheet can hold.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import polars as pl
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_workbook(pl.DataFrame({"id": ["=1+1"], "share": [0.5]}), folder + "/drinks.xlsx")
    ...     [file.name for file in Path(folder).iterdir()]
    ['drinks.xlsx']
    """
    import xlsxwriter

    for found, most, what in ((len(table) + 1, ROWS, "rows"), (table.width, MOST_COLUMNS, "columns")):
        if found > most:
            raise ValueError(
                f"{os.fspath(path)}: the table has {found:,} {what}, and an Excel sheet holds {most:,}: "
                "write a .csv, .jsonl or .parquet file instead."
            )
    with Scratch() as folder, replacing(through(path)) as part, open(part, "wb") as file:
        # Rows go to a temporary file at once, so memory holds one of them.
        options = {"constant_memory": True, "tmpdir": str(folder), "use_zip64": True, "strings_to_formulas": False}
        workbook = xlsxwriter.Workbook(file, options)
        write = _CellWriter(workbook.add_format, {column.name for column in columns if column.kind == "share"})
        try:
            write.table(workbook.add_worksheet("table"), table)
            workbook.close()
        except BaseException:
            for sheet in workbook.worksheets():
                sheet.row_data_fh.close()
            raise
    if write.cut:
        number, names = sum(write.cut.values()), ", ".join(map(repr, write.cut))
        warn_user(
            f"{os.fspath(path)}: texts were cut in {number:,} cell{'s' * (number != 1)} of column {names}, because "
            f"Excel permits {CELL:,} characters. A .csv, .jsonl or .parquet file holds the whole texts."
        )


class _CellWriter:
    """Writes tables cell by cell, and counts cells that had to be cut, by column."""

    def __init__(self, add_format: Callable[[dict[str, Any]], Format], shares: Collection[str]) -> None:
        self.cut: dict[str, int] = {}
        self._shares, self._percent = shares, add_format({"num_format": "0.0%"})
        self._head = add_format({"bold": True, "bottom": 1})
        self._guarded_head = add_format({"bold": True, "bottom": 1, "quote_prefix": True})
        # Excel keeps such a cell as text when a person edits it.
        self._guarded = add_format({"quote_prefix": True})
        self._date = add_format({"num_format": "yyyy-mm-dd"})
        self._moment = add_format({"num_format": "yyyy-mm-dd hh:mm:ss"})
        self._time = add_format({"num_format": "hh:mm:ss"})

    def table(self, sheet: Worksheet, table: pl.DataFrame) -> None:
        """Write a table with a header that stays visible and filters."""
        sheet.freeze_panes(1, 0)
        large = {column for column in table.columns if _too_large(table[column])}
        first = table.head(MEASURED)
        for k, column in enumerate(table.columns):
            longest = max((len(str(value)) for value in (column, *first[column])), default=0)
            sheet.set_column(k, k, min(max(longest + 2, WIDTHS[0]), WIDTHS[1]))
            self._text(sheet, 0, k, column, column, self._head, self._guarded_head)
        for number, row in enumerate(table.iter_rows(), start=1):
            for k, (column, value) in enumerate(zip(table.columns, row, strict=True)):
                self._cell(sheet, number, k, str(value) if column in large else value, column)
        if table.width:
            sheet.autofilter(0, 0, len(table), table.width - 1)

    def _cell(self, sheet: Worksheet, row: int, k: int, value: Any, place: str) -> None:
        match value:
            case None:
                return
            case bool():
                sheet.write_boolean(row, k, value)
            case int() | float() if math.isfinite(value):
                sheet.write_number(row, k, value, self._percent if place in self._shares else None)
            case float() if math.isnan(value):
                return
            case datetime() if value.tzinfo is None and value.date() >= FIRST_DATE:
                sheet.write_datetime(row, k, value, self._moment)
            case date() if not isinstance(value, datetime) and value >= FIRST_DATE:
                sheet.write_datetime(row, k, value, self._date)
            case time():
                sheet.write_datetime(row, k, value, self._time)
            case list():
                self._text(sheet, row, k, "; ".join(map(str, value)), place, None, self._guarded)
            case _:
                self._text(sheet, row, k, str(value), place, None, self._guarded)

    def _text(
        self,
        sheet: Worksheet,
        row: int,
        k: int,
        text: str,
        place: str,
        style: Format | None,
        guarded: Format,
    ) -> None:
        shown, risky = revealed(_LINE_ENDS.sub("\n", text)), bool(_FORMULA.match(text))
        if len(shown) > CELL // 2 and len(units := shown.encode("utf-16-le")) > 2 * CELL:  # Excel counts these units
            shown = units[: 2 * (CELL - 1)].decode("utf-16-le", "ignore") + "…"
            self.cut[place] = self.cut.get(place, 0) + 1
        sheet.write_string(row, k, shown, guarded if risky else style)


def _too_large(column: pl.Series) -> bool:
    """Return whether a column has whole numbers that a cell cannot hold exactly."""
    if not column.dtype.is_integer():
        return False
    extremes: list[Any] = [column.min(), column.max()]
    return any(value is not None and abs(value) >= LARGEST for value in extremes)
