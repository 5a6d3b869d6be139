"""A folder of text files to documents."""

from __future__ import annotations

from pathlib import Path

from topicsteer.corpora.documents import Documents
from topicsteer.corpora.read_report import BadRow, OnError, ReadError, ReadReport
from topicsteer.corpora.readers.files import check_encoding, read_text


def read_folder(
    path: str | Path,
    *,
    pattern: str = "*.txt",
    labels_from_folders: bool = False,
    encoding: str | None = None,
    on_error: OnError = "skip",
) -> Documents:
    """Read a folder of text files, one document each, with all folders inside it.

    Parameters
    ----------
    path : path
        The folder.
    pattern : str, default="*.txt"
        Which files to read; the same names followed by .gz are read too. ``"*"`` reads all.
    labels_from_folders : bool, default=False
        Label each document with the names of the folders it lies in; files at the top are unlabelled.
    encoding : str, optional
        Default: found for each file, as in `read_table`.
    on_error : {"skip", "raise"}, default="skip"
        Leave out files that are empty or cannot be decoded and list them in the report, or raise one error
        that lists them.

    Returns
    -------
    Documents
        Ids are the names of the files inside the folder, sorted.

    Raises
    ------
    ReadError
        If there is no such folder, no such file in it, or there are bad files and they are to be fatal.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     (Path(folder) / "weather").mkdir()
    ...     _ = (Path(folder) / "weather" / "monday.txt").write_text("rain at noon")
    ...     documents = read_folder(folder, labels_from_folders=True)
    >>> documents.ids, documents.texts, documents.labels
    (['weather/monday.txt'], ['rain at noon'], [['weather']])
    """
    folder = Path(path)
    if not folder.is_dir():
        raise ReadError(f"{folder}: there is no such folder")
    if encoding is not None:
        check_encoding(encoding)
    ids, texts, labels, bad = [], [], [], []
    for file in sorted(file for file in {*folder.rglob(pattern), *folder.rglob(f"{pattern}.gz")} if file.is_file()):
        inside = file.relative_to(folder)
        try:
            text = read_text(file, encoding)
        except ReadError as error:
            bad.append(BadRow(inside.as_posix(), str(error).removeprefix(f"{file}: ")))
            continue
        if text.strip():
            ids.append(inside.as_posix())
            texts.append(text)
            labels.append(list(dict.fromkeys(inside.parts[:-1])) if labels_from_folders else [])
        else:
            bad.append(BadRow(inside.as_posix(), "empty text"))
    report = ReadReport(str(folder), bad_rows=tuple(bad)).settle(on_error)
    if not ids:
        raise ReadError(f"{folder}: no file called {pattern} could be read\n{report}".rstrip())
    return Documents(ids, texts, labels, report=report)
