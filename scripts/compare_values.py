"""Values of a run for `compare_commits.py`: arrays and lines of text by key, and readers of files into them."""

import csv
import io
import json
import re
import zipfile
from datetime import date
from pathlib import Path

import numpy as np

# Ending of the key of a whole table. It is compared only if both tables have the same columns.
WHOLE = "#whole"
# Numbers of one run: seconds, and random keys of elements.
SECONDS = re.compile(r"\b\d+(\.\d+)? (s|seconds?)\b")
GUID = re.compile(r"\b[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b")
VERSION = re.compile(r"(?i)(topicsteer[ /_-]v?|topicsteer\"?,? ?version[\": ]*)\d+\.\d+(\.\d+)?[\w.+-]*")
# Fields of answers and of reports that differ between runs.
FIELDS = {"seconds", "version", "folder", "when", "at"}
DAY = date.today()
DAYS = (DAY.isoformat(), f"{DAY:%d %B %Y}", f"{DAY.day} {DAY:%B %Y}", f"{DAY:%B} {DAY.day}, {DAY.year}")
DATES = re.compile(
    "(" + "|".join(map(re.escape, DAYS)) + r")([T ,]*(at )?\d\d:\d\d(:\d\d(\.\d+)?)?)?(Z|[+-]\d\d:\d\d| UTC)?"
)


def clean(text, folder=""):
    """Return a text without the version, today's date, seconds, random keys and the folder of the run."""
    if folder:
        text = text.replace(str(folder), "FOLDER")
    text = DATES.sub("DATE", VERSION.sub(r"\1VERSION", text))
    return GUID.sub("GUID", SECONDS.sub("N s", text))


class Values:
    """Arrays and lists of lines by key; ``gone`` has the reason for each value that this version does not have."""

    def __init__(self, folder=""):
        self.arrays, self.lines, self.gone, self.folder = {}, {}, {}, str(folder)

    def save(self, path):
        """Write all values to two files."""
        np.savez(f"{path}.npz", **self.arrays)
        Path(f"{path}.json").write_text(json.dumps([self.lines, self.gone]), encoding="utf-8")

    @classmethod
    def load(cls, path):
        """Read the values that `save` wrote."""
        found = cls()
        with np.load(f"{path}.npz", allow_pickle=False) as arrays:
            found.arrays = {key: arrays[key] for key in arrays.files}
        found.lines, found.gone = json.loads(Path(f"{path}.json").read_text(encoding="utf-8"))
        return found

    def array(self, key, values):
        """Keep an array of numbers."""
        self.arrays[key] = np.ascontiguousarray(values)

    def text(self, key, text):
        """Keep a text as cleaned lines."""
        self.lines[key] = clean(text, self.folder).splitlines()

    def items(self, key, values):
        """Keep a list of plain values, one per line."""
        self.lines[key] = [clean(json.dumps(value, ensure_ascii=False, default=str), self.folder) for value in values]

    def table(self, key, frame):
        """Keep each column of a table, and the order of the columns."""
        import polars as pl

        frame = frame if isinstance(frame, pl.DataFrame) else pl.DataFrame(frame, infer_schema_length=None)
        self.items(f"{key}:columns{WHOLE}", frame.columns)
        for name in frame.columns:
            column = frame[name]
            if column.dtype.is_numeric() and not column.null_count():
                self.array(f"{key}:{name}", column.to_numpy())
            else:
                self.items(f"{key}:{name}", column.to_list())

    def csv(self, key, text):
        """Keep each column of a CSV file, and its text."""
        rows = list(csv.reader(io.StringIO(text)))
        names = rows[0] if rows else []
        for position, name in enumerate(names):
            if name not in FIELDS:
                self.items(f"{key}:{name}", [row[position] if position < len(row) else None for row in rows[1:]])
        if not FIELDS.intersection(names):
            self.text(f"{key}:text{WHOLE}", text)

    def json(self, key, value):
        """Keep the values of a JSON document: one list per path, in which positions in lists are left out.

        Each line begins with these positions, so that a value in another place differs.
        """
        found = {}
        _flatten("", (), value, found)
        for path, lines in found.items():
            self.lines[f"{key}{path}"] = [clean(line, self.folder) for line in lines]

    def html(self, key, text):
        """Keep a page in four parts: text, data, scripts and styles."""
        parts = {"data": [], "script": [], "style": []}

        def move(found):
            kind = found[1].lower()
            part = "data" if kind == "script" and re.search(r"type=.?application/", found[2]) else kind
            parts[part].append(found[3])
            return f"<{kind}{found[2]}></{kind}>"

        rest = re.sub(r"(?is)<(script|style)\b([^>]*)>(.*?)</\1>", move, text)
        self.text(f"{key}:text", re.sub(r">\s*<", ">\n<", rest))
        for part, found in parts.items():
            for number, one in enumerate(found):
                try:
                    self.json(f"{key}:{part}{number}", json.loads(one))
                except ValueError:
                    self.text(f"{key}:{part}{number}", one)

    def workbook(self, key, data):
        """Keep the cells and formats of a workbook, without its properties."""
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for name in sorted(archive.namelist()):
                if not name.startswith("docProps"):
                    self.text(f"{key}:{name}", re.sub(r">\s*<", ">\n<", archive.read(name).decode("utf-8")))

    def file(self, key, name, data):
        """Keep a file by its suffix."""
        suffix = Path(name).suffix
        if suffix == ".xlsx":
            self.workbook(key, data)
            return
        text = data.decode("utf-8-sig")
        if suffix == ".csv":
            self.csv(key, text)
        elif suffix == ".json":
            self.json(key, json.loads(text))
        elif suffix == ".jsonl":
            self.json(key, [json.loads(line) for line in text.splitlines()])
        elif suffix == ".html":
            self.html(key, text)
        else:
            self.text(key, re.sub(r">\s*<", ">\n<", text))


def _flatten(path, positions, value, found):
    """Add the values of a JSON document to lists by path, and the form of each inner object and list."""
    form = json.dumps(value, ensure_ascii=False)
    if isinstance(value, dict | list):
        form = f"[{len(value)}]" if isinstance(value, list) else "{…}" if value else "{}"
    found.setdefault(path, []).append(f"{'.'.join(map(str, positions))} {form}")
    if isinstance(value, dict):
        for name, inner in value.items():
            if name not in FIELDS:
                # Keys of topics and rows are positions, and not names.
                number = name.removeprefix("free-").isdigit()
                step = (f"{path}.{{}}", (*positions, name)) if number else (f"{path}.{name}", positions)
                _flatten(*step, inner, found)
    elif isinstance(value, list):
        for position, inner in enumerate(value):
            _flatten(f"{path}[]", (*positions, position), inner, found)


def compare(old, new):
    """Yield key, size and verdict of each value of two runs; the verdict is "" if both are the same.

    New columns alone, and lost columns alone, are no difference. A table with both has other names, and differs.
    """
    only = {}
    for key, size, verdict in _compare(old, new):
        if ":" in key and verdict.startswith("only"):
            table, _, column = key.partition(":")
            only.setdefault(table, {"old": [], "new": []})[verdict.split()[1]].append(column)
        yield key, size, verdict
    for table, columns in only.items():
        if columns["old"] and columns["new"]:
            yield f"{table}:names", "", f"DIFFERENT names: {columns['old'][:5]} and {columns['new'][:5]}"


def _compare(old, new):
    for key in sorted({*old.arrays, *new.arrays, *old.lines, *new.lines, *old.gone, *new.gone}):
        a = old.arrays.get(key, old.lines.get(key))
        b = new.arrays.get(key, new.lines.get(key))
        if key.endswith(WHOLE) and _other_columns(old, new, key):
            continue
        if a is None and b is None:
            yield key, "", f"in neither: {old.gone.get(key) or new.gone.get(key)}"
        elif a is None or b is None:
            side, other = ("new", old) if a is None else ("old", new)
            reason = other.gone.get(key, "")
            yield key, _size(b if a is None else a), f"only {side}" + (f" ({reason})" if reason else "")
        else:
            yield key, _size(b), difference(a, b)


def difference(a, b):
    """Describe the difference of two values: "" if they are the same, bit for bit."""
    if isinstance(a, list) != isinstance(b, list):
        return "DIFFERENT kind: an array and lines"
    if isinstance(a, list):
        if a == b:
            return ""
        for number, (one, other) in enumerate(zip(a, b, strict=False)):
            if one != other:
                return f"DIFFERENT line {number + 1}: {_around(one, other)}{_deviation(a, b)}"
        return f"DIFFERENT length: {len(a)} and {len(b)} lines"
    if a.dtype != b.dtype or a.shape != b.shape:
        return f"DIFFERENT form: {_size(a)} and {_size(b)}"
    if a.tobytes() == b.tobytes():
        return ""
    unequal = ~((a == b) | ((a != a) & (b != b)))
    with np.errstate(all="ignore"):
        largest = np.nanmax(np.abs(a.astype(float) - b.astype(float)), initial=0.0)
    return f"DIFFERENT {int(unequal.sum())} of {a.size} values, max deviation {largest:.3g}"


def _deviation(a, b):
    """Describe the largest deviation of lines that end in numbers; else return ""."""
    try:
        numbers = [[float(line.rpartition(" ")[2].strip('"')) for line in lines] for lines in (a, b)]
    except ValueError:
        return ""
    if len(a) != len(b):
        return ""
    return f", max deviation {max(abs(x - y) for x, y in zip(*numbers, strict=True)):.3g}"


def _around(one, other, width=60):
    """Show two lines from a little before their first difference."""
    first = next((k for k, (x, y) in enumerate(zip(one, other, strict=False)) if x != y), min(len(one), len(other)))
    start = max(0, first - 20)
    return f"{one[start : start + width]!r} and {other[start : start + width]!r}"


def _other_columns(old, new, key):
    """Return whether two tables have other columns."""
    prefix = key.rpartition(":")[0] + ":"
    own = [{one for one in (*side.arrays, *side.lines) if one.startswith(prefix)} for side in (old, new)]
    return own[0] != own[1]


def _size(value):
    return f"{len(value)} lines" if isinstance(value, list) else f"{'×'.join(map(str, value.shape))} {value.dtype}"
