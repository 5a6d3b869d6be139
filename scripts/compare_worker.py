"""One side of `compare_commits.py`: compute all values of one checkout on one corpus.

Only names that both versions have are used. `reach` finds a method on the model or in one of its namespaces. A value
that a version does not have is reported as gone.
"""

import gzip
import html
import importlib
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import time
import traceback
import warnings
import zipfile
import zlib
from functools import cached_property
from pathlib import Path

import numpy as np
from compare_session import program, run_session
from compare_values import Values

# Share of documents with labels.
LABELLED = 0.1
# Documents of a label session, and of tables for commands.
SESSION, TABLE = 700, 2000
NAMESPACES = ("edit", "labels", "findings")
STORY = re.compile(r"<REUTERS (.*?)>(.*?)</REUTERS>", re.DOTALL)


class Gone(Exception):
    """A name that a version does not have."""


# --- corpora ---


def read_corpus(name):
    """Return ids, texts, labels and one group per document."""
    if name == "built-in":
        from topicsteer.corpora import load_docstrings

        corpus = load_docstrings()
        return corpus.ids, corpus.texts, corpus.labels, corpus.columns["package"]
    folder = Path(os.environ["TOPICSTEER_DATA"])
    rows = list({"reuters": read_reuters, "newsgroups": read_newsgroups}[name](folder))
    return tuple(map(list, zip(*rows, strict=True)))


def read_reuters(folder):
    """Yield the stories of Reuters-21578 with a topic; the group is the month."""
    with tarfile.open(folder / "reuters21578.tar.gz") as archive:
        for member in sorted(archive.getmembers(), key=lambda member: member.name):
            content = archive.extractfile(member).read().decode("latin-1") if member.name.endswith(".sgm") else ""
            for attributes, story in STORY.findall(content):
                topics = re.findall(r"<D>(.*?)</D>", between("TOPICS", story))
                number = re.search(r'NEWID="(\d+)"', attributes)[1]
                if topics and 'LEWISSPLIT="NOT-USED"' not in attributes:
                    text = f"{between('TITLE', story)}\n{between('BODY', story)}"
                    yield number, text, topics, between("DATE", story).partition("-")[2][:8]


def between(tag, story):
    """Return the content of a tag without control characters."""
    found = re.search(rf"<{tag}\b.*?>(.*?)</{tag}>", story, re.DOTALL)
    return re.sub(r"[\x00-\x08\x0b-\x1f]", "", html.unescape(found[1])).strip() if found else ""


def read_newsgroups(folder):
    """Yield the posts of 20 Newsgroups; the group is the first part of the label."""
    with gzip.open(folder / "20newsgroups" / "20news-bydate.jsonl.gz", "rt", encoding="utf-8") as file:
        for post in map(json.loads, file):
            yield f"{post['label']}/{post['id']}", post["text"], [post["label"]], post["label"].partition(".")[0]


# --- reaching the package ---


def reach(model, *names):
    """Return the first attribute that exists, in a namespace or on the model itself."""
    for name in names:
        for place in (*NAMESPACES, ""):
            found = model
            try:
                for part in [*filter(None, [place]), *name.split(".")]:
                    found = getattr(found, part)
            except AttributeError:
                continue
            return found
    raise Gone(" or ".join(names))


def command_line(checkout, words, folder):
    """Run a command in a process of its own, and return its output and its messages."""
    command = [*program(checkout), *map(str, words)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, encoding="utf-8", check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, words))}: code {done.returncode}\n{done.stderr}")
    messages = [line for line in done.stderr.splitlines() if not line.startswith("working for")]
    return done.stdout, "\n".join(messages)


# --- one side ---


class Side:
    """The corpus, the folder and the values of one checkout.

    A planted side alters one thing per kind: a word of a text, a name, a number of an embedding, some labels, or one
    action. All values of a kind that depend on it must then differ.
    """

    def __init__(self, checkout, corpus, folder, planted):
        self.checkout, self.folder, self.planted = checkout, Path(folder), planted
        self.values = Values(folder)
        ids, texts, labels, groups = read_corpus(corpus)
        keep = [row for row, text in enumerate(texts) if text.strip() and len(text) < 100_000]
        draw = np.random.default_rng(0).random(len(keep)) < LABELLED
        self.ids, self.texts, self.groups = ([column[row] for row in keep] for column in (ids, texts, groups))
        self.all_labels = [list(map(str, labels[row])) for row in keep]
        self.labels = [own if drawn else [] for own, drawn in zip(self.all_labels, draw, strict=True)]
        self.names = sorted({name for own in self.all_labels for name in own})
        self.values.items("corpus/ids", self.ids)
        self.values.items("corpus/texts", self.texts)
        self.values.items("corpus/labels", self.all_labels)
        if planted:
            self.texts[0] += " planted words of another document"
        cut = int(0.9 * len(self.texts))
        self.known, self.late, self.new = slice(0, cut), slice(cut, None), self.texts[-200:]

    # --- models ---

    def take(self, key, work):
        """Keep a value, or the reason why the model refuses it, or note that this version does not have it."""
        try:
            work(key)
            self.values.text(f"{key}/answer", "given")
        except Gone as error:
            self.values.gone[f"{key}/answer"] = f"no {error}"
        except ValueError as error:
            self.values.text(f"{key}/answer", f"refused: {error}")

    def keep(self, kind, model, **vectors):
        """Keep all results of a model; ``vectors`` are the embeddings of new documents."""
        v, topics = self.values, model.topics
        v.table(f"{kind}/topics", topics)
        n_known = topics["kind"].to_list().count("known")

        def memberships(key, *new, **more):
            table = reach(model, "memberships")(*new, **more)
            numbers = table.drop("id").to_numpy()
            v.items(f"{key}/columns", table.columns)
            v.array(key, numbers[:, :n_known])
            v.array(f"{key}/free and none", numbers[:, n_known:])

        self.take(f"{kind}/memberships", memberships)
        self.take(f"{kind}/new", lambda key: memberships(key, self.new, **vectors))
        self.take(f"{kind}/weights", lambda key: v.array(key, reach(model, "document_topics").drop("id").to_numpy()))
        self.take(f"{kind}/transformed", lambda key: v.array(key, reach(model, "transform")(self.new, **vectors)))
        self.take(f"{kind}/predicted", lambda key: v.items(key, reach(model, "predict")(self.new, **vectors)))
        self.take(f"{kind}/belief", lambda key: v.text(key, reach(model, "belief")))
        ways = {"H": "components", "W": "document_topics", "objective": "objectives"}
        for name, way in ways.items():
            before = f"estimator_.{'objective_history' if name == 'objective' else way}_"
            self.take(
                f"{kind}/{name}",
                lambda key, names=(f"state_.{way}", before): v.array(key, np.asarray(reach(model, *names))),
            )
        self.take(f"{kind}/thresholds", lambda key: v.array(key, reach(model, "thresholds_")))
        if any(topics["labelled"].to_list()):
            self.take(f"{kind}/audit", lambda key: v.table(key, reach(model, "audit")(200)))

    def keep_advice(self, kind, model, by=None):
        """Keep suggestions, explanations, shares and advice of a model of this session."""
        v = self.values
        self.take(f"{kind}/suggest", lambda key: v.table(key, reach(model, "suggest")(20)))
        self.take(f"{kind}/shares", lambda key: v.table(key, reach(model, "prevalence")(by).table()))
        self.take(f"{kind}/advice", lambda key: v.text(key, str(reach(model, "advice", "stopping_advice")())))
        self.take(f"{kind}/explain", lambda key: v.text(key, str(reach(model, "explain")(self.new[0]))))

    def model(self, *given, **options):
        """Return a new model."""
        from topicsteer import TopicModel

        return TopicModel(*given, **options)

    def flat(self):
        """Known topics in memory: a fit, a fit after another, save, load, update, and the paper's method."""
        texts, labels = self.texts[self.known], self.labels[self.known]
        model = self.model().fit(texts, labels)
        self.keep("flat/fit", model)
        self.keep_advice("flat/fit", model)
        self.keep("flat/after", self.model().fit(texts, labels, after=model))
        model.save(self.folder / "flat")
        loaded = type(model).load(self.folder / "flat")
        self.keep("flat/loaded", loaded)
        self.keep("flat/updated", loaded.update(self.texts[self.late], self.labels[self.late]))
        self.keep("flat/plain", self.model(5, complete=False).fit(texts, labels))

    def large(self):
        """Known topics on disk and on Dask."""
        from distributed import Client, LocalCluster

        table, (texts, labels) = self.folder / "large.csv", (self.texts[self.known], self.labels[self.known])
        self.write(table, range(len(texts)), labels)
        columns = {"id": "id", "text": "text", "memory": 1 << 20, "folder": self.folder / "disk"}
        self.keep("large/disk", self.model().fit(table, "labels", **columns))
        local = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
        with LocalCluster(**local) as cluster, Client(cluster) as client:
            self.keep("large/dask", self.model().fit(texts, labels, folder=self.folder / "dask", client=client))

    def tree(self):
        """A tree of topics: from paths, and from parents; both are saved, loaded and updated."""
        paths, texts = self.paths(self.labels), self.texts[self.known]
        model = self.model(path_separator="/").fit(texts, paths[self.known])
        self.keep("tree/paths", model)
        self.keep_advice("tree/paths", model)
        model.save(self.folder / "tree")
        loaded = type(model).load(self.folder / "tree")
        self.keep("tree/updated", loaded.update(self.texts[self.late], paths[self.late]))
        parents = {name: self.names[3 * (k // 3)] for k, name in enumerate(self.names[:12]) if k % 3}
        self.keep("tree/parents", self.model(parents=parents).fit(texts, self.labels[self.known]))

    def paths(self, labels):
        """Return labels as paths below the group of each document."""
        return [[f"{group}/{name}" for name in own] for own, group in zip(labels, self.groups, strict=True)]

    def open(self):
        """An open world: every second topic has no label. It is found by the model, and declared."""
        some = set(self.names[::2])
        labels = [[name for name in own if name in some] for own in self.labels]
        model = self.model().fit(self.texts, labels)
        self.keep("open/found", model)
        self.keep_advice("open/found", model)
        marked = [own or (["(none)"] if every else []) for own, every in zip(labels, self.labels, strict=True)]
        self.keep("open/declared", self.model(20, world="open").fit(self.texts, marked))
        self.keep("open/closed", self.model(world="closed").fit(self.texts, labels))

    def names_only(self):
        """Names without labels, with words, and with labels of some of them."""
        names = self.names[::2]
        words = {names[0]: ["file", "market"]}
        model = self.model(topics=names).fit(self.texts)
        self.keep("names/bare", model)
        self.keep_advice("names/bare", model)
        self.keep("names/words", self.model(topics=names, keywords=words).fit(self.texts))
        labels = [own if set(own) & set(self.names[:4]) else [] for own in self.labels]
        self.keep("names/some labels", self.model(topics=self.names).fit(self.texts, labels))

    def embeddings(self):
        """Embeddings given as an array: with labels, with names only, and in an open world."""
        E = projected(self.texts)
        labels, some = self.labels, set(self.names[::2])
        model = self.model().fit(self.texts, labels, embeddings=E)
        self.keep("embeddings/labels", model, embeddings=E[-200:])
        self.keep("embeddings/names", self.model(topics=self.names).fit(self.texts, embeddings=E), embeddings=E[-200:])
        labels = [[name for name in own if name in some] for own in labels]
        self.keep("embeddings/open", self.model().fit(self.texts, labels, embeddings=E), embeddings=E[-200:])

    def edits(self):
        """Edits of a model in an open world: rename, merge, adopt, move."""
        some = set(self.names[::2])
        labels = [[name for name in own if name in some] for own in self.labels]
        model = self.model().fit(self.texts, labels)
        first, second, third, *_ = sorted(some)
        reach(model, "rename")(first, "renamed")
        self.keep("edits/rename", model)
        reach(model, "merge")([second, third], "merged")
        self.keep("edits/merge known", model)
        free = [name for name, kind in zip(model.topics["topic"], model.topics["kind"], strict=True) if kind == "free"]
        reach(model, "adopt")(free[0], "adopted")
        self.keep("edits/adopt", model)
        reach(model, "merge")(free[1:3], "merged free")
        self.keep("edits/merge free", model)
        reach(model, "move")("adopted", "merged")
        self.keep("edits/move", model)

    # --- commands ---

    def write(self, path, rows, labels):
        """Write some documents to a table."""
        import polars as pl

        columns = {"id": [f"d{k}" for k in range(len(rows))], "text": [self.texts[row] for row in rows]}
        columns |= {"labels": ["|".join(own) for own in labels], "group": [self.groups[row] for row in rows]}
        pl.DataFrame(columns).write_csv(path)

    @cached_property
    def fitted(self):
        """Fit a flat model and a tree by the command line; return table and model of each."""
        rows = np.sort(np.random.default_rng(1).permutation(len(self.texts))[:TABLE])
        found = {}
        for form in ("flat", "tree"):
            labels = self.labels if form == "flat" else self.paths(self.labels)
            own = [list(labels[row]) for row in rows]
            if self.planted:  # three documents get the labels of three others
                some = [k for k, names in enumerate(own) if names]
                own[some[0]], own[some[1]], own[some[2]] = own[some[-1]], own[some[-2]], own[some[-3]]
            table, model = self.folder / f"{form}.csv", self.folder / f"{form}-model"
            self.write(table, rows, own)
            words = ["--path-separator", "/"] if form == "tree" else []
            self.command(f"fit/{form}", ["fit", table, "--labels", "labels", "--text", "text", "--out", model, *words])
            found[form] = table, model
        return found

    def command(self, key, words, out=None):
        """Run a command, and keep its file, its output and its messages."""
        path = None if out is None else self.folder / out
        more = [] if path is None else ["--out", path]
        output, messages = command_line(self.checkout, [*words, *more], self.folder)
        self.values.text(f"{key}/messages", messages)
        if path is not None:
            self.values.file(f"{key}/{path.name}", path.name, path.read_bytes())
        return output

    def predict(self):
        """The files of `predict`."""
        for form, (table, model) in self.fitted.items():
            self.command(f"predict/{form}", ["predict", model, table], f"predict-{form}.csv")
        few = self.folder / "few.csv"
        few.write_text("".join(table.read_text("utf-8").splitlines(keepends=True)[:1]) + 'x,"a matrix and a file",,\n')
        for form, (_, model) in self.fitted.items():
            self.values.csv(f"predict/{form} few", self.command(f"predict/{form} few", ["predict", model, few]))

    def prevalence(self):
        """The files of `prevalence`: all documents, groups, and differences of groups."""
        for form, (table, model) in self.fitted.items():
            words = ["prevalence", model, table]
            self.command(f"prevalence/{form}", words, f"shares-{form}.csv")
            self.command(f"prevalence/{form} groups", [*words, "--by", "group"], f"groups-{form}.csv")
        differences = [*words, "--by", "group", "--table", "differences"]
        self.command("prevalence/differences", differences, "differences.csv")

    def topics(self):
        """The file and the JSON of `topics`."""
        for form, (_, model) in self.fitted.items():
            self.command(f"topics/{form}", ["topics", model], f"topics-{form}.csv")
            found = self.command(f"topics/{form} json", ["topics", model, "--json"])
            self.values.json(f"topics/{form} json", json.loads(found))

    def evaluate(self):
        """The output of `evaluate --json`, and its file."""
        for form, (table, model) in self.fitted.items():
            found = self.command(f"evaluate/{form}", ["evaluate", model, table, "--json"], f"evaluation-{form}.csv")
            self.values.json(f"evaluate/{form} json", json.loads(found))

    def report(self):
        """The page of `report`."""
        for form, (table, model) in self.fitted.items():
            self.command(f"report/{form}", ["report", model, table], f"report-{form}.html")

    # --- sessions ---

    def session(self):
        """A label session of 200 actions on a list of topics, with all exports."""
        self.label("session", tree=False)

    def tree_session(self):
        """A label session of 200 actions on a tree of topics, with all exports."""
        self.label("tree-session", tree=True)

    def label(self, kind, tree):
        """Label documents in a session, and keep requests, answers and exports."""
        rows = np.sort(np.random.default_rng(2).permutation(len(self.texts))[:SESSION])
        truth = [self.all_labels[row] for row in rows]
        folder = self.folder / kind
        folder.mkdir()
        table = folder / "texts.csv"
        self.write(table, rows, [[] for _ in rows])
        run_session(self, kind, table, truth, tree)

    def keep_archive(self, key, data):
        """Keep the results of an exported model."""
        from topicsteer import TopicModel

        folder = Path(tempfile.mkdtemp(dir=self.folder))
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            archive.extractall(folder)
        self.keep(key, TopicModel.load(folder / "model"))


def projected(texts, size=64):
    """Return a seeded random projection of the words of each text."""
    directions = np.random.default_rng(3).standard_normal((4096, size)).astype(np.float32)
    found = np.zeros((len(texts), size), dtype=np.float32)
    for row, text in enumerate(texts):
        places = np.array([zlib.crc32(word.encode()) % 4096 for word in re.findall(r"\w+", text.lower())], dtype=int)
        counts = np.bincount(places, minlength=4096)
        used = np.flatnonzero(counts)
        found[row] = (np.sqrt(counts[used])[:, None].astype(np.float32) * directions[used]).sum(axis=0)
    return found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-6)


KINDS = {
    "flat": Side.flat,
    "large": Side.large,
    "tree": Side.tree,
    "open": Side.open,
    "names": Side.names_only,
    "embeddings": Side.embeddings,
    "edits": Side.edits,
    "predict": Side.predict,
    "prevalence": Side.prevalence,
    "topics": Side.topics,
    "evaluate": Side.evaluate,
    "report": Side.report,
    "session": Side.session,
    "tree-session": Side.tree_session,
}


def main(checkout, corpus, kinds, path, planted):
    """Compute the values of some kinds, and write them; a kind that fails leaves its traceback."""
    package = Path(importlib.import_module("topicsteer").__file__).resolve()
    if Path(checkout).resolve() not in package.parents:
        sys.exit(f"{package} is not part of {checkout}.")
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        side = Side(checkout, corpus, folder, planted)
        for kind in kinds:
            began = time.monotonic()
            try:
                KINDS[kind](side)
            except Exception:
                side.values.lines[f"{kind}/FAILED"] = traceback.format_exc().splitlines()
            print(f"  {kind}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    side.values.save(path)


if __name__ == "__main__":
    main(*json.loads(sys.argv[1]))
