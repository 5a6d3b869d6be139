"""Read and write topics files with the readers and writers of tables."""

import math
from pathlib import Path

from topicsteer.corpora import ReadError, ReadOptions
from topicsteer.corpora.readers import TableFile, open_table, read_delimited
from topicsteer.labels.codebook import topic_columns
from topicsteer.labels.codebook_files import LARGEST, TopicsFile, parse_codebook, parse_topics
from topicsteer.model.topic_model import TopicModel
from topicsteer.report.table_files import write_table


def read_topics(path: str | Path, *, encoding: str | None = None, delimiter: str | None = None) -> TopicsFile:
    r"""Read a topics file: a table with the columns topic, parent, description and keywords.

    Parameters
    ----------
    path : path
        A .csv, .tsv, .jsonl, .json or .parquet file. See `topicsteer.labels.codebook_files` for its columns.
        A .qdc file is a codebook of NVivo, QualCoder, Taguette or another program that writes REFI-QDA.
    encoding, delimiter : str, optional
        Default: guessed.

    Returns
    -------
    TopicsFile
        ``codebook`` is an argument of ``TopicModel(topics=...)``; ``notes`` lists probable mistakes.

    Raises
    ------
    ReadError
        If the file cannot be read, or has no topic.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "themes.csv"
    ...     _ = path.write_text("topic,keywords\nprice,cheap; cost\ndelivery,late; courier\n")
    ...     found = read_topics(path)
    >>> found.codebook.names
    ('price', 'delivery')
    """
    if Path(path).suffix.lower() == ".qdc":
        try:
            with open(path, "rb") as codebook:
                return parse_codebook(codebook.read(LARGEST + 1))
        except ValueError as error:
            raise ReadError(f"{path}: {error}.") from None
    file = TableFile(str(path), encoding, delimiter)
    ragged: list[str] = []
    if file.kind in (".csv", ".tsv", ".tab"):  # people write these by hand
        table = next(read_delimited(file, math.inf, ragged))
    else:
        table = next(open_table(path, ReadOptions(encoding=encoding, delimiter=delimiter))(math.inf))
    if not table.columns:
        raise ReadError(f"{path}: the file is empty. Expected a header with a column 'topic', and one row per topic.")
    broken = [f"{table.unit} {place}: {problem}. It is not used." for place, problem in sorted(table.problems.items())]
    try:
        found = parse_topics(table.columns, [f"{table.unit} {place}" for place in table.places])
    except ValueError as error:
        raise ReadError(" ".join([f"{path}: {error}", *broken])) from None
    guessed = [f"The {guess}." for guess in table.guesses]
    return TopicsFile(found.codebook, (*guessed, *ragged, *broken, *found.notes))


def write_topics(model: TopicModel, path: Path) -> None:
    """Write the known topics of a model, with proposed keywords, as a topics file: .csv, .jsonl or .parquet."""
    import polars as pl

    write_table(pl.DataFrame(topic_columns(model.codebook, model.labels.proposed_keywords())), path)
