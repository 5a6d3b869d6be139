"""Run all checks and print one line per package; packages that are not installed are reported and skipped.

doccano needs other versions of shared packages. It has an environment of its own, and the check exchanges
files with it.
"""

import importlib.util
import subprocess
import sys
import tempfile
import traceback
import warnings
from importlib.metadata import version
from pathlib import Path

from experiments.shared import internals
from topicsteer import TopicModel
from topicsteer.corpora import Documents, read_labels, read_table

# Folder of the scripts that run in other environments.
HERE = Path(__file__).parent
# Texts on three topics.
TEXTS = ["green tea leaves", "black tea leaves", "roast coffee beans", "a roast of coffee", "cow milk", "cream of milk"]
# Labels of the texts.
LABELS = ["tea", None, "coffee", None, "milk", None]
# The documents as plain rows.
ROWS = [{"id": f"d{i}", "text": text, "label": LABELS[i % 6]} for i, text in enumerate(TEXTS * 4)]
# Topics of the rows.
NAMES = ("coffee", "milk", "tea")
# Texts of the exports of the workbench.
DRINKS = ["Green tea leaves; größer", 'Roast "coffee"\nwith milk', "Warm milk"]
# Topics of the exports with parent and documents: a list, and a tree whose last document is hot and nothing below.
FLAT = [("tea", None, [0]), ("coffee", None, [1]), ("milk, warm", None, [1, 2])]
TREE = [("hot", None, []), ("tea", 1, [0]), ("coffee", 1, [1]), ("milk, warm", None, [1])]
# Topics of the exports and the labels that come back, by id.
EXPORTS = (
    (FLAT, {"a": {"tea"}, "=b": {"coffee", "milk, warm"}, "3": {"milk, warm"}}),
    (TREE, {"a": {"hot/tea"}, "=b": {"hot/coffee", "milk, warm"}, "3": {"hot/(none)"}}),
)


def same(source, **options):
    """Check that a source gives the documents, labels and topics of the plain rows."""
    model = TopicModel(free_topics=0).fit(source, **options)
    assert model.state_.topics.names == NAMES, model.state_.topics.names
    assert model.state_.supervision.labelled.sum() == 12
    assert model.predict(["roast coffee"]) == [["coffee"]]
    return model


def check_pandas(folder):
    import pandas as pd
    import pyarrow as pa

    frame = pd.DataFrame(ROWS)
    kinds = ["object", "category", "string[pyarrow]", "string[python]", pd.ArrowDtype(pa.string())]
    for table in (frame, frame.convert_dtypes(dtype_backend="pyarrow"), *(frame.astype(kind) for kind in kinds)):
        model = same(table)
        for out in (model.topics, model.memberships(), model.top_documents("tea")):
            assert isinstance(out, pd.DataFrame)
        assert model.memberships()["id"].tolist() == frame["id"].tolist()
    assert same(frame.set_index("id")).state_.topics.ids[0] == "d0"
    same(frame["text"], labels=frame["label"])
    lists = pd.Series([[name] if name else [] for name in LABELS * 4], dtype=pd.ArrowDtype(pa.list_(pa.string())))
    same(frame.assign(label=lists))


def check_polars(folder):
    import polars as pl

    frame = pl.DataFrame(ROWS)
    for table in (frame, frame.lazy(), frame.to_arrow(), frame.with_columns(pl.col("label").cast(pl.Categorical))):
        model = same(table)
        assert isinstance(model.topics, pl.DataFrame)
    same(frame["text"], labels=frame["label"])
    same(frame.with_columns(pl.concat_list("label").list.drop_nulls()))


def exported(folder, topics, *kinds):
    """Exports of the workbench: one document has two labels, one was labelled by two people."""
    path = folder / f"{len(topics)}.steer"
    Workbench = internals.workbench()
    actions = internals.workbench_actions()
    Workbench.make(path, Documents(["a", "=b", 3], DRINKS))
    workbench = Workbench(path)
    try:
        for name, parent, rows in topics:
            actions.apply(workbench.session, "ann", actions.NewTopic(name=name, parent=parent, documents=rows))
        tea = [name for name, *_ in topics].index("tea") + 1
        actions.apply(workbench.session, "bob", actions.Label(documents=[0], key=tea, state="permitted"))
        if topics is TREE:
            actions.apply(workbench.session, "ann", actions.Label(documents=[2], key=1, state="rest"))
        return [workbench.exporter.export(kind) for kind in kinds]
    finally:
        workbench.close()


def comes_back(path, want, *, ids=True, **options):
    """Check our labels after a trip through another tool: by id, and with other ids by text."""
    found = {}
    for record in read_labels(path, **options).records:
        found.setdefault(str(record.id), set()).update(record.labels)
    if ids:
        assert found == want, found
    others = [{"id": f"other {i}", "text": text} for i, text in enumerate(DRINKS)]
    labels = read_table(others, label_file=path, **options).labels
    assert [set(names) for names in labels] == list(want.values()), labels


def check_doccano(folder):
    for topics, want in EXPORTS:
        (path,) = exported(folder, topics, "jsonl")
        out = folder / f"out-{len(topics)}"
        elsewhere("doccano", "in_doccano.py", path, out)
        comes_back(out / "all.jsonl", want)
        comes_back(out / "all.csv", want, separator="#")


def elsewhere(tool, script, *paths):
    python = Path(sys.prefix) / tool / "bin" / "python"
    done = subprocess.run(
        [python, "-W", "ignore", HERE / script, *paths], stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-3000:]


def version_of(package):
    """Version of a package, here or in its own environment; None if it is in neither."""
    python = Path(sys.prefix) / package / "bin" / "python"
    if python.exists():
        code = f"from importlib.metadata import version; print(version({package!r}))"
        return subprocess.run([python, "-c", code], capture_output=True, text=True).stdout.strip() or None
    return version(package) if importlib.util.find_spec(package) else None


# Checks by package.
CHECKS = {
    "pandas": check_pandas,
    "polars": check_polars,
    "doccano": check_doccano,
}


def main():
    wanted, failed = sys.argv[1:] or list(CHECKS), 0
    for package in wanted:
        found = version_of(package)
        if found is None:
            print(f"{package}: not installed, not checked", flush=True)
            continue
        try:
            with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(action="ignore"):
                CHECKS[package](Path(folder))
            print(f"{package} {found}: ok", flush=True)
        except Exception:
            failed += 1
            print(f"{package} {found}: FAILED\n{traceback.format_exc()}", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
