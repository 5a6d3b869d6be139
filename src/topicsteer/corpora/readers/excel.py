"""Read one sheet of an Excel workbook (.xlsx) with fastexcel, after a check of its size."""

from __future__ import annotations

import logging
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import date, datetime, time
from typing import TYPE_CHECKING, Any
from xml.parsers import expat

from topicsteer.corpora.documents import ReadError
from topicsteer.corpora.readers.table_file import Table, TableFile, check_bytes, check_cells, column_names, local_copy

if TYPE_CHECKING:
    import fastexcel
    import polars as pl

# Number of bytes of a part to unpack at once.
PIECE = 1 << 18
# Bytes of memory per cell of the rectangle around all cells, which fastexcel fills.
CELL_COST = 32
# First bytes of an old .xls file and of a workbook with a password.
OLE_MAGIC = b"\xd0\xcf\x11\xe0"
# Errors of a damaged archive, or of an unknown encoding or method.
DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, LookupError, RuntimeError, ValueError)
# Days of a cell with a time and no date, in the two calendars of Excel.
NO_DAYS = (date(1899, 12, 30), date(1899, 12, 31), date(1904, 1, 1))
# A moment as fastexcel writes it into a column with texts: at midnight, and without a day.
MIDNIGHT = r"^(\d{4}-\d\d-\d\d) 00:00:00$"
NO_DAY = r"^(?:1899-12-3[01]|1904-01-01) (\d\d:\d\d:\d\d(?:\.\d+)?)$"


def read_excel(file: TableFile, size: float) -> Iterator[Table]:
    """Yield one sheet of a workbook as one block: the named one, or else the first visible one with rows."""
    import fastexcel

    logging.getLogger("fastexcel").setLevel(logging.ERROR)  # a column without values is no news
    with local_copy(file.path, ".xlsx") as local:
        try:
            _Extent(file.path).check(local)
            table = _table(file, fastexcel.read_excel(local))
        except (fastexcel.FastExcelError, *DAMAGE) as error:
            if isinstance(error, ReadError):
                raise
            with open(local, "rb") as stream:
                old = stream.read(4) == OLE_MAGIC
            why = "it is an old .xls file, or has a password" if old else str(error).splitlines()[0]
            advice = "open it in a spreadsheet program, and save it as .xlsx without a password"
            raise ReadError(f"{file.path}: not an Excel workbook that can be read ({why}); {advice}") from None
    yield table


def _table(file: TableFile, book: fastexcel.ExcelReader) -> Table:
    """Return the rows below the first row with a value, which is the header."""
    import polars as pl

    sheet, others = _choose(file, book)
    # Row numbers of the sheet: fastexcel leaves out empty rows at the top unless it skips 0 rows.
    texts = book.load_sheet(sheet, header_row=None, skip_rows=0, dtypes="string").to_polars()
    filled = texts.select(pl.any_horizontal(pl.all().fill_null("") != "")).to_series() if texts.width else pl.Series()
    numbers = filled.arg_true().to_list()
    first = numbers[0] if numbers else 0
    cells = pl.DataFrame()
    if numbers:
        cells = book.load_sheet(sheet, header_row=first, schema_sample_rows=None).to_polars()
    header = texts.row(first) if numbers else ()
    names = column_names([text or "" for text in header])
    kept = [number - first - 1 for number in numbers[1:]]
    columns = {
        name: _plain(column.gather(kept))
        for name, title, column in zip(names, header, cells.get_columns(), strict=True)
        if title or column.null_count() < len(column)
    }
    places = [number + 1 for number in numbers[1:]]
    empty = sorted(set(range(first + 2, max(places, default=0))) - set(places))
    guess = f"the sheet is {sheet!r}; other sheets: {', '.join(map(repr, others))}"
    return Table(file.path, columns, places, "row", (guess,) if others else (), dict.fromkeys(empty, "empty row"))


def _choose(file: TableFile, book: fastexcel.ExcelReader) -> tuple[str, list[str]]:
    """Return the sheet to read, and the other visible ones if nobody named it."""
    if file.sheet is not None:
        if file.sheet not in book.sheet_names:
            listed = ", ".join(map(repr, book.sheet_names)) or "none"
            raise ReadError(f"{file.path}: there is no sheet {file.sheet!r}; the sheets are {listed}")
        return file.sheet, []
    if len(book.sheet_names) == 1:
        return book.sheet_names[0], []
    sheets = [book.load_sheet(name, header_row=None, dtypes="string") for name in book.sheet_names]
    shown = [sheet for sheet in sheets if sheet.visible == "visible"] or sheets
    if not shown:
        raise ReadError(f"{file.path}: the workbook has no sheet with cells")
    chosen = next((sheet.name for sheet in shown if sheet.height), shown[0].name)
    return chosen, [sheet.name for sheet in shown if sheet.name != chosen]


def _plain(column: pl.Series) -> list[object]:
    """Return the cells of a column as whole numbers, dates and times where they are; None for empty ones."""
    import polars as pl

    if column.dtype == pl.String:
        texts = column.str.replace(MIDNIGHT, "$1").str.replace(NO_DAY, "$1")
        return texts.str.replace_all("\r\n", "\n", literal=True).replace("", None).to_list()
    cells = column.to_list()
    found = [cell for cell in cells if cell is not None]
    if column.dtype == pl.Float64:
        return [int(cell) if cell is not None and cell.is_integer() and abs(cell) < 1 << 53 else cell for cell in cells]
    if all(isinstance(cell, datetime) for cell in found):
        if all(cell.date() in NO_DAYS for cell in found):
            return [None if cell is None else cell.time() for cell in cells]
        if all(cell.time() == time() for cell in found):
            return [None if cell is None else cell.date() for cell in cells]
    return cells


class _Extent:
    """The memory that a workbook takes, counted while its parts are unpacked piece by piece.

    fastexcel keeps a rectangle around all cells of a sheet, and a copy of a shared text per cell.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.unpacked = 0
        self.lengths: list[int] = []
        self.uses: Counter[int] = Counter()
        self.rows = self.columns = 0
        self.row = self.column = 0
        self.kind = ""
        self.text: list[str] = []

    def check(self, local: str) -> None:
        """Raise ReadError if the content takes more memory than a file of this size may."""
        with zipfile.ZipFile(local) as archive:
            for part in archive.infolist():
                part.file_size = 1 << 62  # the stated size may be false
                with archive.open(part) as stream:
                    self._scan(part.filename, stream)
                check_cells(self.path, self.rows * CELL_COST // 8, self.columns)
        shared = sum(count * self.lengths[k] for k, count in self.uses.items() if k < len(self.lengths))
        check_bytes(self.path, shared)

    def _scan(self, name: str, stream: Any) -> None:
        parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartDoctypeDeclHandler = self._refuse  # entities of a document type can grow without bounds
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self.text.append
        self.row = self.column = 0
        well_formed = True
        while piece := stream.read(PIECE):
            self.unpacked += len(piece)
            check_bytes(self.path, self.unpacked)
            try:
                if well_formed:
                    parser.Parse(piece, False)
            except expat.ExpatError as error:
                well_formed = False
                if name.lower().endswith((".xml", ".rels")):
                    raise ValueError(f"{name}: {error}") from None
            if not well_formed and b"sheetData" in piece:
                raise ValueError(f"{name}: not well-formed")

    def _start(self, name: str, given: Mapping[str, str]) -> None:
        name = name.rpartition(":")[2]
        if name == "row":
            self.row = _whole(given.get("r", ""), self.row + 1)
            self.column = 0
        elif name == "c":
            place = given.get("r", "")
            letters = place.rstrip("0123456789")
            self.column = _column(letters) if letters else self.column + 1
            self.kind = given.get("t", "")
            self.rows = max(self.rows, self.row, _whole(place[len(letters) :], 0))
            self.columns = max(self.columns, self.column)
        if name in ("c", "si"):
            self.text.clear()

    def _end(self, name: str) -> None:
        name = name.rpartition(":")[2]
        if name == "si":
            self.lengths.append(sum(map(len, self.text)))
        elif name == "c" and self.kind == "s":
            self.uses[_whole("".join(self.text).strip(), -1)] += 1

    def _refuse(self, *_: object) -> None:
        raise ReadError(f"{self.path}: has a document type, which no Excel workbook has; it is not read")


def _whole(text: str, default: int) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else default


def _column(letters: str) -> int:
    """Return the number of a column, counted from 1."""
    number = 0
    for letter in letters[:4].upper():
        number = 26 * number + ord(letter) - 64
    return number
