"""Compare the results of two versions, bit for bit: `python scripts/compare_commits.py OLD NEW [CORPUS ...]`.

OLD and NEW are checkouts of the repository. Each runs in its own process, on the built-in corpus, Reuters and 20
Newsgroups, or on the corpora named. It fits in memory, from disk and on Dask, updates, saves, loads and predicts. The
script compares every array and every name, and exits with 1 if anything differs.

The script uses only public names that both versions have.
"""

import json
import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np

# Corpora that are compared by default.
CORPORA = ("built-in", "reuters", "newsgroups")
# Share of documents with labels.
LABELLED = 0.1


def documents_of(name):
    """Return texts and labels of a corpus; a seeded random tenth is labelled."""
    from topicsteer.corpora import load_docstrings, load_newsgroups, load_reuters

    corpus = {"built-in": load_docstrings, "reuters": load_reuters, "newsgroups": load_newsgroups}[name]()
    keep = [row for row, text in enumerate(corpus.texts) if text.strip() and len(text) < 100_000]
    draw = np.random.default_rng(0).random(len(keep)) < LABELLED
    labels = [list(corpus.labels[row]) if drawn else [] for row, drawn in zip(keep, draw, strict=True)]
    return [corpus.texts[row] for row in keep], labels


def results(model, new):
    """Return the results of a model as arrays of numbers and names."""
    topics = model.topics
    tables = {"memberships": model.memberships(), "weights": model.document_topics, "new": model.memberships(new)}
    found = {name: table.drop("id").to_numpy() for name, table in tables.items()}
    for name in ("memberships", "new"):  # later versions have further columns
        found[name] = found[name][:, : model.result_.n_known]
    found |= {"names": np.array(topics["topic"].to_list()), "terms": np.array(topics["terms"].to_list())}
    found |= {"H": model.estimator_.components_, "transformed": model.transform(new)}
    found |= {"objective": model.estimator_.objective_history_, "W": np.asarray(model.estimator_.document_topics_)}
    found["predicted"] = np.array(["|".join(names) for names in model.predict(new)])
    if model.guide_ is not None:
        found["audited"] = model.audit(200)["probability"].to_numpy()
    return found


def work(name, path):
    """Write all results on one corpus to a file of arrays."""
    import polars as pl

    from topicsteer import TopicModel

    warnings.simplefilter("ignore")
    texts, labels = documents_of(name)
    known, late, new = slice(0, int(0.9 * len(texts))), slice(int(0.9 * len(texts)), len(texts)), texts[-200:]
    found = {}

    def keep(kind, model):
        found.update({f"{kind}/{key}": value for key, value in results(model, new).items()})

    model = TopicModel().fit(texts[known], labels[known])
    keep("memory", model)
    found["memory/suggested"] = np.array(model.suggest(20)["id"].to_list())
    keep("after", TopicModel().fit(texts[known], labels[known], after=model))
    with tempfile.TemporaryDirectory() as folder:
        model.save(folder)
        loaded = TopicModel.load(folder)
        keep("loaded", loaded)
        keep("updated", loaded.update(texts[late], labels[late]))
    keep("plain", TopicModel(5, guidance=None, complete=False).fit(texts[known], labels[known]))
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "texts.csv"
        joined = ["|".join(map(str, names)) for names in labels[known]]
        pl.DataFrame({"id": range(len(joined)), "text": texts[known], "labels": joined}).write_csv(table)
        keep("disk", TopicModel().fit(table, "labels", id="id", text="text", memory=1 << 20, folder=f"{folder}/work"))
        from distributed import Client, LocalCluster

        local = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
        with LocalCluster(**local) as cluster, Client(cluster) as client:
            keep("dask", TopicModel().fit(texts[known], labels[known], folder=f"{folder}/dask", client=client))
    np.savez(path, **found)


def main(old, new, *names):
    """Run both checkouts on some corpora, compare their results, and return the exit code."""
    different = 0
    for checkout in (old, new):
        if not (Path(checkout) / "src" / "topicsteer").is_dir():  # else both would be the installed version
            sys.exit(f"{checkout} is not a checkout: pass a folder, such as one made by `git worktree add`.")
    with tempfile.TemporaryDirectory() as folder:
        for name in names or CORPORA:
            answers = []
            for side, checkout in (("old", old), ("new", new)):
                path = Path(folder) / f"{side}.npz"
                environment = {**os.environ, "PYTHONPATH": str(Path(checkout) / "src")}
                order = json.dumps([name, str(path)])
                subprocess.run([sys.executable, __file__, "--work", order], check=True, env=environment)
                with np.load(path, allow_pickle=False) as arrays:
                    answers.append({key: arrays[key] for key in arrays.files})
            before, after = answers
            for key in sorted({*before, *after}):
                a, b = before.get(key), after.get(key)
                missing = a is None or b is None
                same = not missing and a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
                different += not same
                size = "missing" if missing else f"{'×'.join(map(str, b.shape))} {b.dtype}"
                print(f"{name:12} {key:24} {size:24} {'same' if same else 'DIFFERENT'}", flush=True)
    print(f"{different} arrays differ" if different else "All arrays are the same, bit for bit.")
    return 1 if different else 0


if __name__ == "__main__":
    if sys.argv[1] == "--work":
        work(*json.loads(sys.argv[2]))
    else:
        sys.exit(main(*sys.argv[1:]))
