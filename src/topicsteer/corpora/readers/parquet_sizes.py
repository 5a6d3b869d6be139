"""Unpacked size of a Parquet file, from its footer and page headers: nothing is unpacked.

polars unpacks a page at once, into as many bytes as its header states, up to 2 GB. A page that unpacks to more than
its header states is refused by polars. Footer and headers are in the compact protocol of Thrift.
"""

import os
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

# First and last bytes of a Parquet file.
MAGIC = b"PAR1"
# Bytes of memory per byte of the footer, which becomes many small objects.
FOOTER = 16
# Bytes of memory per page, in addition to its content.
PAGE = 1024
# Bytes of memory per value: a few bytes of a page can stand for a million equal values.
VALUE = 8
# Longest page header that is read; statistics of long texts can take some kilobytes.
LONGEST_HEADER = 1 << 20
# Greatest depth of nested structures; Parquet's own have seven levels.
DEEPEST = 16

# Kinds of values in the compact protocol.
_STOP, _TRUE, _FALSE, _BYTE, _DOUBLE, _TEXT, _LIST, _SET, _MAP, _STRUCT = 0, 1, 2, 3, 7, 8, 9, 10, 11, 12
_WHOLE_NUMBERS = (4, 5, 6)


class Malformed(ValueError):
    """The bytes are not what Parquet prescribes."""


class Page(NamedTuple):
    """A page header: bytes of the header, packed and unpacked bytes of the page, number of values."""

    header: int
    packed: int
    unpacked: int
    values: int


def sizes(path: str | os.PathLike[str]) -> Iterator[int]:
    """Yield bytes of memory that parts of a file take when it is read: of its footer, then of each page.

    Raises
    ------
    Malformed
        If the footer or a page header cannot be read, or names an impossible place.
    """
    with open(path, "rb") as file:
        end = file.seek(0, os.SEEK_END)
        length = _footer_length(file, end)
        yield FOOTER * length
        file.seek(end - 8 - length)
        try:
            footer = _Compact(file.read(length)).struct()
        except IndexError:
            raise Malformed("its footer does not end") from None
        for group in _items(footer, 4):
            for chunk in _items(group, 1):
                for page in _pages(file, end, chunk.get(3)):
                    yield page.unpacked + VALUE * page.values + PAGE


def _footer_length(file: BinaryIO, end: int) -> int:
    file.seek(max(end - 8, 0))
    tail = file.read(8)
    length = int.from_bytes(tail[:4], "little")
    if tail[4:] != MAGIC or length > end - 12:
        raise Malformed("it does not end with a footer")
    return length


def _pages(file: BinaryIO, end: int, column: Any) -> Iterator[Page]:
    """Yield the headers of the pages of a column chunk."""
    if not isinstance(column, dict):
        raise Malformed("a column is in another file")
    start, first = _number(column, 9), column.get(11)
    if isinstance(first, int) and first > 0:
        if first > start:
            raise Malformed("a dictionary follows its data")
        start = first
    stop = start + _number(column, 7)
    if stop > end:
        raise Malformed("a column is longer than the file")
    while start < stop:
        file.seek(start)
        page = _page(file)
        yield page
        start += page.header + page.packed


def _page(file: BinaryIO) -> Page:
    reader = _Compact(file.read(256))
    while True:
        try:
            header = reader.struct()
            break
        except IndexError:  # the header is longer
            known = len(reader.data)
            more = file.read(known)
            if not more or known > LONGEST_HEADER:
                raise Malformed("a page header does not end") from None
            reader = _Compact(reader.data + more)
    kinds = [header[key] for key in (5, 7, 8) if isinstance(header.get(key), dict)]
    values = sum(_number(kind, 1) for kind in kinds)
    return Page(reader.at, _number(header, 3), _number(header, 2), values)


def _number(struct: dict[int, Any], key: int) -> int:
    value = struct.get(key)
    if not isinstance(value, int) or value < 0:
        raise Malformed(f"field {key} is {value!r}, which is no size")
    return value


def _items(struct: dict[int, Any], key: int) -> list[dict[int, Any]]:
    value = struct.get(key, [])
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise Malformed(f"field {key} is no list of structures")
    return value


class _Compact:
    """Reads structures from bytes; IndexError at their end. Texts are skipped, so they are None."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def struct(self, depth: int = 0) -> dict[int, Any]:
        """The fields of a structure, by number."""
        if depth > DEEPEST:
            raise Malformed("structures are nested too deeply")
        found: dict[int, Any] = {}
        number = 0
        while (head := self._byte()) != _STOP:
            number = number + (head >> 4) if head >> 4 else self._signed()
            kind = head & 15
            found[number] = kind == _TRUE if kind in (_TRUE, _FALSE) else self._value(kind, depth)
        return found

    def _value(self, kind: int, depth: int) -> Any:
        if kind in _WHOLE_NUMBERS:
            return self._signed()
        if kind == _STRUCT:
            return self.struct(depth + 1)
        if kind in (_LIST, _SET):
            return self._list(depth + 1)
        if kind == _TEXT:
            return self._skip(self._varint())
        if kind == _DOUBLE:
            return self._skip(8)
        if kind in (_BYTE, _TRUE, _FALSE):  # a boolean in a list takes one byte
            return self._skip(1)
        raise Malformed(f"values of kind {kind} do not occur in Parquet")

    def _list(self, depth: int) -> list[Any]:
        head = self._byte()
        length = head >> 4
        if length == 15:
            length = self._varint()
        if length > len(self.data):  # each item takes at least one byte
            raise IndexError
        return [self._value(head & 15, depth) for _ in range(length)]

    def _byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def _skip(self, length: int) -> None:
        self.at += length
        if self.at > len(self.data):
            raise IndexError

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7
            if shift > 63:
                raise Malformed("a number is too long")

    def _signed(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)
