"""Read Excel workbooks (.xlsx): one sheet, row by row, without a further package.

A workbook is a zip archive of XML. Its parts are unpacked piece by piece, and their sizes are added up on the way.
"""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from typing import Any
from xml.parsers import expat

from topicsteer.corpora.read_report import ReadError
from topicsteer.corpora.readers.limits import check_bytes, check_cells
from topicsteer.corpora.readers.table_file import ROW_COST, Table, TableFile, column_names, local_copy

# Number of bytes of a part to unpack at once.
PIECE = 1 << 18
# Bytes of memory per cell while rows are read, without its text.
CELL_COST = 64
# Greatest number of columns and rows of a sheet.
COLUMNS = 1 << 14
ROWS = 1 << 20
# Number formats of Excel for dates and times that a workbook does not define itself.
DATE_FORMATS = {*range(14, 23), *range(27, 37), *range(45, 48), *range(50, 59)}
# Of these, the ones with a time.
TIME_FORMATS = {18, 19, 20, 21, 22, 32, 33, 34, 35, 45, 46, 47, 55, 56}
# First bytes of an old .xls file and of a workbook with a password.
OLE_MAGIC = b"\xd0\xcf\x11\xe0"
# Errors of a damaged file: of the archive, of its XML, or of an unknown encoding or method.
DAMAGE = (zipfile.BadZipFile, zlib.error, expat.ExpatError, EOFError, LookupError, RuntimeError, ValueError)
# Parts of a number format that are not codes: quoted text, escaped characters, colours, conditions and languages.
_NO_CODES = re.compile(r'"[^"]*"|\\.|_.|\*.|\[(?!h+\]|m+\]|s+\])[^\]]*\]', re.IGNORECASE)
# A character that XML cannot hold, as Excel writes it.
_ESCAPED = re.compile("_x([0-9A-Fa-f]{4})_")
_REFERENCE = re.compile("([A-Z]{1,3})[0-9]+")


def read_excel(file: TableFile, size: float) -> Iterator[Table]:
    """Yield the blocks of one sheet of a workbook: the named one, or else the first visible one with rows."""
    with local_copy(file.path, ".xlsx") as local:
        try:
            with zipfile.ZipFile(local) as archive:
                yield from _blocks(_Workbook(file.path, archive), file, size)
        except ReadError:
            raise
        except DAMAGE as error:
            with open(local, "rb") as stream:
                old = stream.read(4) == OLE_MAGIC
            why = "it is an old .xls file, or has a password" if old else str(error)
            advice = "open it in a spreadsheet program, and save it as .xlsx without a password"
            raise ReadError(f"{file.path}: not an Excel workbook that can be read ({why}); {advice}") from None


def _blocks(book: _Workbook, file: TableFile, size: float) -> Iterator[Table]:
    sheet, others = _choose(book, file.sheet)
    rows = book.rows(sheet)
    last, header = next(rows, (0, {}))
    more = f"; other sheets: {', '.join(map(repr, others))}"
    guesses = (f"the sheet is {sheet!r}{more}",) if others and file.sheet is None else ()
    filled, empty = list[tuple[int, Mapping[int, object]]](), list[int]()
    room, width = size, max(header, default=-1) + 1
    count = content = 0
    for number, cells in rows:
        empty.extend(range(last + 1, number))
        filled.append((number, cells))
        last = number
        count, width = count + 1, max(width, max(cells) + 1)
        characters = sum(len(cell) for cell in cells.values() if isinstance(cell, str))
        content += characters + CELL_COST * len(cells)  # many cells may share one long text
        check_cells(file.path, count, width)
        check_bytes(file.path, content)
        room -= characters + ROW_COST
        if room <= 0:
            yield _table(file.path, header, filled, empty, width, guesses)
            filled, empty, room = [], [], size
    yield _table(file.path, header, filled, empty, width, guesses)


def _table(
    path: str,
    header: Mapping[int, object],
    rows: Sequence[tuple[int, Mapping[int, object]]],
    empty: Sequence[int],
    width: int,
    guesses: tuple[str, ...],
) -> Table:
    names = column_names([_plain(header.get(k)) for k in range(width)])
    columns = {name: [cells.get(k) for _, cells in rows] for k, name in enumerate(names)}
    return Table(path, columns, [number for number, _ in rows], "row", guesses, dict.fromkeys(empty, "empty row"))


def _plain(cell: object) -> str:
    return "" if cell is None else str(cell)


def _choose(book: _Workbook, wanted: str | None) -> tuple[str, list[str]]:
    """The sheet to read, and the other visible ones."""
    listed = ", ".join(map(repr, book.sheets)) or "none"
    if wanted is not None:
        if wanted not in book.sheets:
            raise ReadError(f"{book.path}: there is no sheet {wanted!r}; the sheets are {listed}")
        return wanted, []
    shown = [name for name, sheet in book.sheets.items() if sheet.visible] or list(book.sheets)
    if not shown:
        raise ReadError(f"{book.path}: the workbook has no sheet with cells")
    chosen = next((name for name in shown if next(book.rows(name), None) is not None), shown[0])
    return chosen, [name for name in shown if name != chosen]


@dataclass(frozen=True)
class _Sheet:
    part: str
    visible: bool


@dataclass
class _Row:
    """A row while it is read: its number, its cells by column, and the cell that is open."""

    number: int = 0
    cells: dict[int, object] = field(default_factory=dict)
    column: int = -1
    kind: str = ""
    style: int = 0


class _Text:
    """The text of an open element, without the pronunciation of Japanese characters."""

    def __init__(self, *names: str) -> None:
        self._names, self._found = names, list[str]()
        self._keep = self._phonetic = False

    def start(self, name: str) -> None:
        """An element begins."""
        self._phonetic = self._phonetic or name == "rPh"
        self._keep = name in self._names and not self._phonetic

    def end(self, name: str) -> None:
        """An element ends."""
        self._phonetic, self._keep = self._phonetic and name != "rPh", False

    def add(self, characters: str) -> None:
        """Characters of the open element."""
        if self._keep:
            self._found.append(characters)

    def take(self) -> str:
        """The text since the last call."""
        text = "".join(self._found)
        self._found.clear()
        return text


class _Workbook:
    """Sheets, shared texts and number formats of a workbook."""

    def __init__(self, path: str, archive: zipfile.ZipFile) -> None:
        self.path, self._archive, self._parts = path, archive, set(archive.namelist())
        main, self.sheets, self._first_day = "xl/workbook.xml", dict[str, _Sheet](), datetime(1899, 12, 30)
        for name, given in self._starts("_rels/.rels"):
            if name == "Relationship" and given.get("Type", "").endswith("/officeDocument"):
                main = given.get("Target", "").lstrip("/")
        folder, _, last = main.rpartition("/")
        targets, texts, styles = dict[str, str](), "", ""
        for name, given in self._starts(f"{folder}/_rels/{last}.rels".lstrip("/")):
            if name != "Relationship" or given.get("TargetMode") == "External":
                continue
            target = given.get("Target", "")
            target = target[1:] if target.startswith("/") else f"{folder}/{target}".lstrip("/")
            targets[given.get("Id", "")] = target
            texts = target if given.get("Type", "").endswith("/sharedStrings") else texts
            styles = target if given.get("Type", "").endswith("/styles") else styles
        for name, given in self._starts(main):
            if name == "workbookPr" and given.get("date1904") in ("1", "true"):
                self._first_day = datetime(1904, 1, 1)
            part = targets.get(next((value for key, value in given.items() if key.endswith(":id")), ""), "")
            if name == "sheet" and "/worksheets/" in f"/{part}" and part in self._parts:
                self.sheets[given.get("name", part)] = _Sheet(part, given.get("state", "visible") == "visible")
        self._texts, self._formats = self._shared_texts(texts), self._date_formats(styles)

    def rows(self, sheet: str) -> Iterator[tuple[int, dict[int, object]]]:
        """Yield the number of each row with values, and its cells by column."""
        row, text, done = _Row(), _Text("v", "t"), list[tuple[int, dict[int, object]]]()

        def start(name: str, given: Mapping[str, str]) -> None:
            name = _local(name)
            text.start(name)
            if name == "row":
                row.number, row.cells, row.column = _whole(given.get("r"), row.number + 1), {}, -1
                if row.number > ROWS:
                    raise ReadError(f"row {row.number}: a sheet has at most {ROWS:,} rows")
            elif name == "c":
                row.column = _column(given.get("r"), row.column + 1)
                row.kind, row.style = given.get("t", "n"), _whole(given.get("s"), 0)
                text.take()

        def end(name: str) -> None:
            name = _local(name)
            text.end(name)
            if name == "c" and (value := self._value(row.kind, row.style, text.take())) is not None:
                row.cells[row.column] = value
            elif name == "row" and row.cells:
                done.append((row.number, row.cells))

        for _ in self._parse(self.sheets[sheet].part, start, end, text.add):
            yield from done
            done.clear()

    def _value(self, kind: str, style: int, text: str) -> object:
        """The value of a cell: text, number, truth value, date or time; None if it is empty or an error."""
        if kind in ("inlineStr", "str"):
            return _unescaped(text) or None
        text = text.strip()
        if not text or kind == "e":
            return None
        try:
            if kind == "s":
                return self._texts[int(text)] or None
            if kind == "b":
                return text in ("1", "true")
            if kind == "d":
                return datetime.fromisoformat(text)
            number = float(text)
            moment = self._formats.get(style)
            if moment is not None:
                return self._moment(number, moment)
            whole = number.is_integer() and abs(number) < 1 << 53
            return int(number) if whole else number
        except (ValueError, IndexError, OverflowError):
            return text

    def _moment(self, number: float, with_time: bool) -> date | time | datetime:
        """The date and time of a number of days."""
        days, rest = divmod(number, 1)
        if days == 0 and with_time:
            seconds = timedelta(milliseconds=round(rest * 86_400_000))
            return (datetime(2000, 1, 1, tzinfo=UTC) + seconds).time()
        if self._first_day.year == 1899 and days < 60:  # Excel has a 29th of February 1900
            days += 1
        moment = self._first_day + timedelta(days=days, milliseconds=round(rest * 86_400_000))
        return moment if with_time or rest else moment.date()

    def _shared_texts(self, part: str) -> list[str]:
        text, texts = _Text("t"), list[str]()

        def end(name: str) -> None:
            text.end(_local(name))
            if _local(name) == "si":
                texts.append(_unescaped(text.take()))

        for _ in self._parse(part, lambda name, _: text.start(_local(name)), end, text.add):
            check_cells(self.path, len(texts), CELL_COST // 8)
        return texts

    def _date_formats(self, part: str) -> dict[int, bool]:
        """Styles of cells with dates, and whether they have a time."""
        own, styles, inside, number = dict[int, str](), dict[int, bool](), False, 0
        for name, given in self._starts(part):
            if name == "numFmt":
                own[_whole(given.get("numFmtId"), -1)] = _NO_CODES.sub("", given.get("formatCode", "")).lower()
            inside = name == "cellXfs" or (inside and name not in ("cellStyles", "dxfs", "cellStyleXfs"))
            if name == "xf" and inside:
                key = _whole(given.get("numFmtId"), 0)
                codes = own.get(key)
                if codes is None and key in DATE_FORMATS:
                    styles[number] = key in TIME_FORMATS
                elif codes is not None and "[" not in codes and re.search("[dmyhs]", codes) and codes != "general":
                    styles[number] = "h" in codes or "s" in codes
                number += 1
        return styles

    def _starts(self, part: str) -> Iterator[tuple[str, Mapping[str, str]]]:
        """Yield each element of a part, with its attributes."""
        found = list[tuple[str, Mapping[str, str]]]()
        for _ in self._parse(part, lambda name, given: found.append((_local(name), given))):
            yield from found
            found.clear()

    def _parse(self, part: str, start: Any, end: Any = None, text: Any = None) -> Iterator[None]:
        """Parse a part piece by piece; a part that is missing has no elements."""
        if part not in self._parts:
            return
        parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartDoctypeDeclHandler = self._refuse  # entities of a document type can grow without bounds
        parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = start, end, text
        n_bytes = 0
        with self._archive.open(part) as stream:
            while piece := stream.read(PIECE):
                n_bytes += len(piece)
                check_bytes(self.path, n_bytes)
                parser.Parse(piece, False)
                yield
            parser.Parse(b"", True)
            yield

    def _refuse(self, *_: object) -> None:
        raise ReadError(f"{self.path}: has a document type, which no Excel workbook has; it is not read")


def _local(name: str) -> str:
    """The name of an element without its prefix."""
    return name.rpartition(":")[2]


def _unescaped(text: str) -> str:
    """The text of a cell with the characters that XML cannot hold; lines end as in Python."""
    if "_x" in text:
        text = _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text).replace("\r\n", "\n")
    return text


def _whole(value: str | None, default: int) -> int:
    return int(value) if value is not None and value.isascii() and value.isdigit() and len(value) < 10 else default


def _column(reference: str | None, following: int) -> int:
    """The column of a cell, counted from 0."""
    found = _REFERENCE.fullmatch(reference or "")
    column = following
    if found is not None:
        column = 0
        for letter in found[1]:
            column = 26 * column + ord(letter) - 64
        column -= 1
    if not 0 <= column < COLUMNS:
        raise ReadError(f"cell {reference}: a sheet has at most {COLUMNS:,} columns")
    return column
