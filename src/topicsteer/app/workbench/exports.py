"""Exports: labels in several formats, the event log, memberships, the model, a report and a codebook."""

import json
import re
import zipfile
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import numpy as np

from topicsteer.analysis.map_layout import Layout
from topicsteer.app.workbench.agreement_view import agreement_frame
from topicsteer.app.workbench.current_model import CurrentModel
from topicsteer.app.workbench.event_log import NOTE, ORIGIN, PRESENT, REST
from topicsteer.app.workbench.map_view import MapMaker
from topicsteer.app.workbench.progress_view import breakdowns
from topicsteer.app.workbench.project import read_documents
from topicsteer.app.workbench.refusals import DECISION, FILE, Conflict, Invalid, is_person
from topicsteer.app.workbench.session import Decision
from topicsteer.app.workbench.topic_tree import Tree
from topicsteer.app.workbench.views import Views
from topicsteer.corpora.cells import is_plain_name
from topicsteer.corpora.label_files import COMPLETE, LABELLED_BY, PATH_SEPARATOR
from topicsteer.labels.codebook import Codebook
from topicsteer.labels.codebook_files import write_codebook
from topicsteer.labels.origin import CHOSEN
from topicsteer.model.reports import report_data
from topicsteer.model.topic_model import TopicModel
from topicsteer.report import page, workbook
from topicsteer.report import table_files as sheets
from topicsteer.report.page import CodedDocument, Entry, ReportData, render_codebook
from topicsteer.report.workbook import write_workbook
from topicsteer.system.files import Scratch, replacing
from topicsteer.system.values import NONE

if TYPE_CHECKING:
    import polars as pl

# Typical and borderline documents per topic of the codebook.
EXAMPLES = 4
# Names of files, and names that Windows reserves.
_NAME = re.compile(r"[^\W.][\w .()-]{0,79}")
_DEVICES = re.compile(r"(?i)(con|prn|aux|nul|com\d|lpt\d)(\..*)?")


class Exporter:
    """Writes files into the export folder next to the project.

    Parameters
    ----------
    views : Views
        The session and its fitted model.
    maps : MapMaker, optional
        The layout of the document map. Default: the report has no document map.
    """

    def __init__(self, views: Views, maps: MapMaker | None = None) -> None:
        self.views = views
        self.maps = maps
        self.session = views.session
        path = views.project.path
        self.folder = path.with_name(f"{path.stem}-export")
        self.kinds: dict[str, tuple[str, Callable[[Path], None]]] = {
            "jsonl": ("labels.jsonl", self._labels_jsonl),
            "doccano": ("doccano.jsonl", self._doccano),
            "label-studio": ("label-studio.json", self._label_studio),
            "label-studio-config": ("label-studio.xml", self._label_studio_config),
            "model": ("model.zip", self._model),
            "report": ("report.html", self._report),
            "workbook": ("report.xlsx", self._workbook),
            "codebook": ("codebook.html", self._codebook),
            "codebook-refi-qda": ("codebook.qdc", self._refi_qda),
            "methods": ("methods.html", self._methods),
        }
        tables = {"labels": self._labels, "labels-by-person": self._labels_by_person}
        tables |= {"log": self._log, "memberships": self._memberships}
        for name, table in (tables | {"agreement": partial(agreement_frame, self.session)}).items():
            self.kinds[name] = (f"{name}.csv", partial(_write_csv, table))
            self.kinds[f"{name}-excel"] = (f"{name}.xlsx", partial(_write_excel, name, table))

    def export(self, kind: str, name: str | None = None) -> Path:
        """Write a file into the export folder, whole or not at all.

        Parameters
        ----------
        kind : str
            One of `kinds`.
        name : str, optional
            Name of the file. A name that leads out of the folder is refused.

        Returns
        -------
        Path
        """
        if kind not in self.kinds:
            raise Invalid(f"There is no export {kind!r}. The exports are {', '.join(self.kinds)}.")
        default, write = self.kinds[kind]
        path = self.path_of(name or default, Path(default).suffix)
        self.folder.mkdir(exist_ok=True)
        with replacing(path, durable=True) as part:
            write(part)
        return path

    def path_of(self, name: str, suffix: str | None = None) -> Path:
        """Return the path of a file in the export folder; a name that leads elsewhere is refused."""
        if not _NAME.fullmatch(name) or _DEVICES.fullmatch(name) or name.endswith((" ", ".")):
            raise Invalid("A file name consists of letters, digits, spaces, dots and hyphens, without a folder.")
        if suffix is not None and Path(name).suffix.lower() != suffix:
            name += suffix
        path = self.folder / name
        if path.resolve().parent != self.folder.resolve():  # a link that leads out
            raise Invalid(f"{name} is not in the export folder.")
        return path

    # --- labels ---

    def _open_rows(self) -> set[int]:
        """Return the rows of documents that have a topic and leave others open, such as after a question."""
        excluded, decided = self.session.tree.excluded, self.session.decisions.items()
        return {row for row, d in decided if d.permitted and not excluded(d.permitted) <= d.forbidden}

    @property
    def _separator(self) -> str | None:
        """The separator of paths in exports; None if topics form no tree."""
        return self.session.tree.separator(self.session.settings.path_separator)

    def _paths(self, has: Iterable[int], lacks: Collection[int]) -> list[tuple[str, ...]]:
        """Return the paths of the deepest topics; "(none)" is below a topic if the document has nothing below it."""
        tree, separator, found = self.session.tree, self.session.settings.path_separator, []
        for key in tree.deepest(has):
            below = tree.below(key)
            found.append((*tree.path(key, separator), *([NONE] if below and {*lacks}.issuperset(below) else [])))
        return found

    def _labelled(self) -> Iterator[tuple[int, Any, str, list[tuple[str, ...]], list[str]]]:
        """Yield row, id, text, labels as paths and forbidden topics of every labelled document.

        A document with none of the topics has the label "(none)". A forbidden topic is a path with separators.
        """
        training, separator, tree = self.session.training(), self._separator, self.session.tree
        key_of, own = {topic.name: topic.key for topic in training.topics}, self.session.settings.path_separator
        for row in sorted({*training.labels, *training.forbidden}):
            name, text, _ = self.views.project.document(row)
            has, lacks = training.labels.get(row, []), [key_of[one] for one in training.forbidden.get(row, [])]
            paths = self._paths((key_of[one] for one in has), lacks)
            if not has and len(lacks) == len(training.topics):
                paths, lacks = [(NONE,)], []
            ended = {key for one in has for key in tree.below(key_of[one]) if {*tree.below(key_of[one])} <= {*lacks}}
            written = ((separator or "").join(tree.path(key, own)) for key in lacks if key not in ended)
            yield row, name, text, paths, list(written)

    def _joined(self, paths: Iterable[Sequence[str]]) -> list[str]:
        """Return paths as names with separators."""
        separator = self._separator or ""
        return [separator.join(path) for path in paths]

    def _labels(self) -> "pl.DataFrame":
        rows, levels = list(self._labelled()), self._level_names()
        every = (name for *_, has, lacks in rows for name in (*self._joined(has), *lacks))
        lists = not all(map(is_plain_name, every))

        def cell(names: list[str]) -> str:
            return (json.dumps(names, ensure_ascii=False) if names else "") if lists else "; ".join(names)

        def label_cells(path: tuple[str, ...]) -> list[str]:
            return [cell([name]) for name in path] + [""] * (len(levels) - len(path))

        names, open_rows = ["id", *(levels or ["labels"]), "forbidden"], self._open_rows()
        # One row per document; in a tree one row per label, with one column per level.
        split = [(row, label) for row in rows for label in (row[3] or [()] if levels else [()])]
        cells = [
            [str(n), *(label_cells(label) if levels else [cell(self._joined(has))]), cell(lacks)]
            for (_, n, _, has, lacks), label in split
        ]
        people = {row: self._people(row) for row, *_ in rows}
        chosen, separator = self.session.chosen(), self._separator
        more: dict[str, Callable[[int], str]] = {
            LABELLED_BY: lambda row: _people_cell(people[row]),
            COMPLETE: lambda row: "no" if row in open_rows else "yes",
            CHOSEN: lambda row: chosen.get(row, ""),
            PATH_SEPARATOR: lambda row: separator or "",
        }
        wanted = (any(people.values()), bool(open_rows), bool(chosen), separator is not None)
        for (name, value), given in zip(more.items(), wanted, strict=True):
            if given:
                names.append(name)
                for ((row, *_), _), own in zip(split, cells, strict=True):
                    own.append(value(row))
        return _frame(names, cells)

    def _level_names(self) -> list[str]:
        """Return the names of the columns of a tree: one more than levels, if a label means "nothing below"."""
        if self.session.tree.forest.flat:
            return []
        deepest = max((len(has) for *_, labels, _ in self._labelled() for has in labels), default=0)
        return [f"level {k + 1}" for k in range(max(deepest, self.session.tree.levels))]

    def _labels_jsonl(self, path: Path) -> None:
        open_rows, chosen, paths = self._open_rows(), self.session.chosen(), self._stated_separator()
        _lines(
            path,
            (
                {"id": name, "text": text, "labels": self._joined(has), "forbidden": lacks}
                | ({COMPLETE: False} if row in open_rows else {})
                | ({CHOSEN: chosen[row]} if row in chosen else {})
                | {LABELLED_BY: self._people(row)}
                | paths
                for row, name, text, has, lacks in self._labelled()
            ),
        )

    def _stated_separator(self) -> dict[str, str]:
        """Return the field with the separator of paths; none for a flat list of topics."""
        return {} if (separator := self._separator) is None else {PATH_SEPARATOR: separator}

    def _doccano(self, path: Path) -> None:
        records, paths = (record for record in self._labelled() if record[3]), self._stated_separator()
        _lines(
            path,
            (
                {"id": n, "text": t, "label": self._joined(has), LABELLED_BY: self._people(r)} | paths
                for r, n, t, has, _ in records
            ),
        )

    def _people(self, row: int) -> list[str]:
        """Return the people whose labels are the decision on a document; people who differ are not among them."""
        decision = self.session.decisions.get(row, Decision())
        agreed = dict.fromkeys(decision.permitted, True) | dict.fromkeys(decision.forbidden, False)
        return [p for p, votes in self.session.votes_of(row).items() if is_person(p) and votes == agreed]

    def _labels_by_person(self) -> "pl.DataFrame":
        """One row per document and person; decisions on disagreements have an owner of their own."""
        import polars as pl

        topics, ids, rows = self.session.live, self.views.project.ids(), []
        tree, own, separator = self.session.tree, self.session.settings.path_separator, self._separator
        for row in sorted(self.session.decisions):
            for who, votes in self.session.votes_of(row).items():
                if who.startswith(FILE):
                    continue
                has, lacks = ([t.key for t in topics if votes.get(t.key) is side] for side in (True, False))
                paths, excluded = self._paths(has, lacks), tree.excluded(frozenset(has))
                whole = excluded <= {*lacks} if has else len(lacks) == len(topics)
                rest = [key for key in lacks if not (whole and (not has or key in excluded))]
                ended = {key for path_key in tree.deepest(has) for key in tree.below(path_key)}
                rest = [key for key in rest if not (key in ended and ended <= {*lacks})]
                cells = self._joined(paths) or ([NONE] if whole else []), self._joined(tree.path(k, own) for k in rest)
                written = (json.dumps(names, ensure_ascii=False) if names else "" for names in cells)
                rows.append((str(ids[row]), *written, _people_cell([who]), "yes" if whole else "no"))
        frame = _frame(("id", "labels", "forbidden", LABELLED_BY, COMPLETE), rows)
        return frame if separator is None else frame.with_columns(pl.lit(separator).alias(PATH_SEPARATOR))

    def _label_studio(self, path: Path) -> None:
        """Write one task per document and one annotation per person, so that differing labels stay separate.

        Label Studio accepts only its own users as ``completed_by``, so the names are in the data.
        """
        tasks, tree = [], self.session.tree
        for row, name, text, _, _ in self._labelled():
            annotations, people = [], self.session.labels_of(row)
            outsider_for = self.session.outsider_for(row)
            for person, states in people.items():
                keys = [key for key, state in states.items() if state in PRESENT]
                ended = [key for state_key, state in states.items() if state == REST for key in tree.below(state_key)]
                paths = [(NONE,)] if person in outsider_for else self._paths(keys, ended)
                annotations.append({"result": [_label_studio_result(paths, tree)] if paths else []})
            owners = ["" if person.startswith(FILE) else person for person in people]  # a file is no person
            data = {"id": name, "text": text, LABELLED_BY: owners}
            tasks.append(json.dumps({"data": data, "annotations": annotations}, ensure_ascii=False))
        path.write_text("[\n" + ",\n".join(tasks) + "\n]\n", encoding="utf-8")

    def _label_studio_config(self, path: Path) -> None:
        """Write the labelling interface of Label Studio: choices, or a taxonomy with "(none)" below each parent."""
        tree, own = self.session.tree, self.session.settings.path_separator
        view = ElementTree.Element("View")
        ElementTree.SubElement(view, "Text", name="text", value="$text")
        kind, more = ("Choices", {"choice": "multiple"}) if tree.forest.flat else ("Taxonomy", {})
        top = ElementTree.SubElement(view, kind, {"name": "topic", "toName": "text"} | more)
        nodes: dict[int | None, ElementTree.Element] = {None: top}
        for key in tree.order:
            above = nodes[tree.parents[key]]
            nodes[key] = ElementTree.SubElement(above, "Choice", value=tree.own_name(key, own))
        for place, node in nodes.items():
            if place is None or len(node):
                ElementTree.SubElement(node, "Choice", value=NONE)
        ElementTree.indent(view)
        path.write_text(ElementTree.tostring(view, encoding="unicode") + "\n", encoding="utf-8")

    def _log(self) -> "pl.DataFrame":
        ids = self.views.project.ids()
        name = {key: topic.name for key, topic in self.session.topics.items()}
        name |= {ORIGIN: "(its choice)", NOTE: "(note)"}
        rows = [
            (at, who, kind, person, str(ids[document]), name.get(key, "(the document)"), state)
            for at, who, kind, person, document, key, state in self.views.project.log.history()
        ]
        return _frame(("when", "who", "how", "label of", "id", "topic", "state"), rows)

    # --- the fitted model ---

    def _loaded(self) -> TopicModel:
        """Return a copy of the model under the current names of the topics."""
        fitted = self.views.fitted
        if fitted is None:
            raise Conflict("There is no fitted model yet. Fit first, then export.")
        now = fitted.renamed(self.session.topics).names
        names, taken = list(now), set(now[fitted.n_known :])
        for k in range(fitted.n_known):
            names[k] = f"{now[k]} ({k + 1})" if now[k] in taken else now[k]
            taken.add(names[k])
        return TopicModel.load(fitted.folder).edit.rename_all(names)

    def _memberships(self) -> "pl.DataFrame":
        table: pl.DataFrame = self._loaded().memberships()
        return table

    def _model(self, path: Path) -> None:
        with Scratch() as folder:
            self._loaded().save(folder / "model")
            with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
                for file in sorted((folder / "model").glob("[!.]*")):
                    archive.write(file, f"model/{file.name}")

    def _report_data(self, map: bool | Layout) -> ReportData:
        model = self._loaded().attach(read_documents(self.views.project.path))
        data = report_data(model, title=f"Topics of {self.views.project.path.stem}", map=map)
        return replace(data, shares=breakdowns(self.views))

    def _report(self, path: Path) -> None:
        layout = self.maps.made if self.maps else None
        page.write(self._report_data(layout or False), path)

    def _workbook(self, path: Path) -> None:
        workbook.write(self._report_data(False), path)

    def _methods(self, path: Path) -> None:
        """The paper trail with the shares, and with the number of documents that each person labelled."""
        model = self._loaded().attach(read_documents(self.views.project.path))
        rows = [row for row, d in self.session.decisions.items() if d.permitted or d.forbidden]
        people = Counter(person for row in rows for person in self.session.votes_of(row) if person != DECISION)
        title = f"Methods of {self.views.project.path.stem}"
        text = model.findings.methods(
            as_html=True, shares=model.findings.prevalence(), people=dict(people.most_common()), title=title
        )
        path.write_text(text, encoding="utf-8")

    def _codebook(self, path: Path) -> None:
        """Topics, descriptions, terms, typical and borderline documents, as one page without a script."""
        fitted, entries = self.views.fitted, []
        for topic in self.views.topics().known:
            facts, documents = [f"{topic.labels:,} labels"], {}
            lists = {"Keywords": topic.keywords, "Banned words": topic.banned}
            if fitted is not None and topic.fit is not None and topic.effect is not None:
                facts += [f"{topic.effect.documents:,} documents", f"{topic.fit.share:.1%} share"]
                lists["Terms"] = tuple(term for term, _ in topic.fit.terms)
                documents = self._coded(fitted, fitted.column[topic.key])
            entries.append(Entry(topic.name, topic.description, facts, lists, documents))
        book = render_codebook(f"Codebook of {self.views.project.path.stem}", entries)
        path.write_text(book, encoding="utf-8")

    def _refi_qda(self, path: Path) -> None:
        """The topics for NVivo, QualCoder, Taguette and others."""
        topics = self.session.live
        book = Codebook(tuple(topic.plain() for topic in topics))
        path.write_text(write_codebook(book, {topic.key: topic.colour for topic in topics}), encoding="utf-8")

    def _coded(self, fitted: CurrentModel, k: int) -> dict[str, list[CodedDocument]]:
        """Typical documents of a topic, and unlabelled documents near its threshold."""
        P = fitted.memberships[:, k]
        typical = np.argsort(-P, kind="stable")[:EXAMPLES]
        near = np.where(fitted.model.state_.supervision.labelled, np.inf, np.abs(P - fitted.thresholds[k]))
        border = [row for row in np.argsort(near, kind="stable")[:EXAMPLES] if near[row] < 0.25]
        documents = {}
        for title, rows in (("Typical documents", typical), ("Borderline documents", border)):
            texts = self.views.project.beginnings([int(row) for row in rows if P[row] > 0])
            documents[title] = [
                CodedDocument(name, " ".join(text.split()), float(P[row])) for row, (name, text) in texts.items()
            ]
        return documents


def _label_studio_result(paths: Sequence[tuple[str, ...]], tree: Tree) -> dict[str, Any]:
    """The labels of one person as Label Studio writes them: choices, or paths of a taxonomy."""
    kind = "choices" if tree.forest.flat else "taxonomy"
    value: list[Any] = [path[0] for path in paths] if tree.forest.flat else [list(path) for path in paths]
    return {"type": kind, "from_name": "topic", "to_name": "text", "value": {kind: value}}


def _people_cell(people: Sequence[str]) -> str:
    """Names of people in one cell: with semicolons, or as JSON if a name has one."""
    plain = not any(";" in name or name.startswith("[") for name in people)
    return "; ".join(people) if plain else json.dumps(people, ensure_ascii=False)


def _frame(names: Sequence[str], rows: Sequence[Sequence[str]]) -> "pl.DataFrame":
    """A table of texts."""
    import polars as pl

    return pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row")


def _write_csv(table: "Callable[[], pl.DataFrame]", path: Path) -> None:
    """Write a table as CSV, with formulas disarmed."""
    sheets.guarded(table()).write_csv(path, float_precision=4)


def _write_excel(name: str, table: "Callable[[], pl.DataFrame]", path: Path) -> None:
    """Write a table as a workbook with one sheet."""
    write_workbook({name: table()}, path)


def _lines(path: Path, records: Iterator[dict[str, Any]]) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
