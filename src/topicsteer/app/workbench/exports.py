"""Exports: labels in several formats, the event log, memberships, the model, a report and the topics."""

import json
import zipfile
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from topicsteer.app.workbench.errors import DECISION, FILE, Invalid, NotFound, is_person
from topicsteer.app.workbench.map_view import MapMaker
from topicsteer.app.workbench.progress_view import breakdowns
from topicsteer.app.workbench.project import NOTE, ORIGIN, read_documents
from topicsteer.app.workbench.session import Decision, Training, training_labels
from topicsteer.app.workbench.views import Views
from topicsteer.corpora.columns import is_plain_name
from topicsteer.corpora.label_files import COMPLETE, LABELLED_BY, PATH_SEPARATOR
from topicsteer.labels.codebook import Codebook
from topicsteer.labels.codebook_files import write_codebook
from topicsteer.labels.supervision import CHOSEN, PROBABILITY
from topicsteer.model.findings import report_data
from topicsteer.model.topic_model import TopicModel
from topicsteer.report import page
from topicsteer.report import table_files as sheets
from topicsteer.system.files import Scratch, replacing
from topicsteer.system.values import NONE

if TYPE_CHECKING:
    import polars as pl


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
            "model": ("model.zip", self._model),
            "report": ("report.html", self._report),
            "codebook-refi-qda": ("codebook.qdc", self._refi_qda),
            "methods": ("methods.md", self._methods),
        }
        tables: dict[str, Callable[[], pl.DataFrame]] = {
            "labels": self._labels,
            "labels-by-person": self._labels_by_person,
            "log": self._log,
            "memberships": lambda: self._loaded().memberships(),
        }
        for name, table in tables.items():
            self.kinds[name] = (f"{name}.csv", partial(_write_csv, table))

    def export(self, kind: str) -> Path:
        """Write the file of one of `kinds` into the export folder, whole or not at all; return its path."""
        if kind not in self.kinds:
            raise Invalid(f"There is no export {kind!r}. The exports are {', '.join(self.kinds)}.")
        name, write = self.kinds[kind]
        self.folder.mkdir(exist_ok=True)
        path = self.folder / name
        with replacing(path, durable=True) as part:
            write(part)
        return path

    def written(self, name: str) -> Path:
        """Return the path of an export; other names, and links to other places, are refused."""
        path = self.folder / name
        exports = {file for file, _ in self.kinds.values()}
        if name not in exports or not path.is_file() or path.is_symlink():
            raise NotFound("This file is not in the export folder. Create it again on the page Export.")
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

    def _labelled(self, training: Training) -> Iterator[tuple[int, Any, str, list[tuple[str, ...]], list[str]]]:
        """Yield row, id, text, labels as paths and forbidden topics of every labelled document.

        A document with none of the topics has the label "(none)". A forbidden topic is a path with separators.
        """
        separator, tree = self._separator, self.session.tree
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

    def _records(self) -> list[dict[str, Any]]:
        """Return one record per labelled document; topics of a tree are paths, whose separator each record states."""
        open_rows, chosen, records = self._open_rows(), self.session.chosen(), list[dict[str, Any]]()
        probability = self.session.origins.probabilities(self.session.labelled)
        separator = {} if self._separator is None else {PATH_SEPARATOR: self._separator}
        for row, name, text, has, lacks in self._labelled(self.session.training()):
            record = {"id": name, "text": text, "labels": self._joined(has), "forbidden": lacks}
            if row in open_rows:
                record[COMPLETE] = False
            if row in chosen:
                record[CHOSEN] = chosen[row]
            if row in probability:
                record[PROBABILITY] = probability[row]
            records.append(record | {LABELLED_BY: self._people(row)} | separator)
        return records

    def _labels(self) -> "pl.DataFrame":
        """One row per document; columns without content are left out."""
        records = self._records()
        lists = not all(is_plain_name(name) for one in records for name in (*one["labels"], *one["forbidden"]))

        def cell(names: list[str]) -> str:
            if not lists:
                return "; ".join(names)
            return json.dumps(names, ensure_ascii=False) if names else ""

        columns = {
            "id": [str(one["id"]) for one in records],
            "labels": [cell(one["labels"]) for one in records],
            "forbidden": [cell(one["forbidden"]) for one in records],
        }
        more = {
            LABELLED_BY: [_people_cell(one[LABELLED_BY]) for one in records],
            COMPLETE: ["yes" if one.get(COMPLETE, True) else "no" for one in records],
            CHOSEN: [one.get(CHOSEN, "") for one in records],
            PROBABILITY: [str(one.get(PROBABILITY, "")) for one in records],
            PATH_SEPARATOR: [one.get(PATH_SEPARATOR, "") for one in records],
        }
        columns |= {name: values for name, values in more.items() if {*values} - {"yes" if name == COMPLETE else ""}}
        return _frame(list(columns), list(zip(*columns.values(), strict=True)))

    def _labels_jsonl(self, path: Path) -> None:
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(record, ensure_ascii=False) + "\n" for record in self._records())

    def _people(self, row: int) -> list[str]:
        """Return the people whose labels are the decision on a document; people who differ are not among them."""
        decision = self.session.decisions.get(row, Decision())
        agreed = dict.fromkeys(decision.permitted, True) | dict.fromkeys(decision.forbidden, False)
        return [p for p, votes in self.session.votes_of(row).items() if is_person(p) and votes == agreed]

    def _labels_by_person(self) -> "pl.DataFrame":
        """One row per document and person; decisions on disagreements have an owner of their own."""
        import polars as pl

        topics, rows, separator = self.session.live, list[tuple[str, ...]](), self._separator
        for row in sorted(self.session.decisions):
            for who, votes in self.session.votes_of(row).items():
                if who.startswith(FILE):
                    continue
                has, lacks = (frozenset(key for key, yes in votes.items() if yes is side) for side in (True, False))
                training = training_labels(topics, {row: Decision(has, lacks)}, 0, self.session.tree)
                ((_, name, _, paths, forbidden),) = self._labelled(training)
                whole = training.complete if has else paths == [(NONE,)]
                cells = (
                    json.dumps(names, ensure_ascii=False) if names else "" for names in (self._joined(paths), forbidden)
                )
                rows.append((str(name), *cells, _people_cell([who]), "yes" if whole else "no"))
        frame = _frame(("id", "labels", "forbidden", LABELLED_BY, COMPLETE), rows)
        return frame if separator is None else frame.with_columns(pl.lit(separator).alias(PATH_SEPARATOR))

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
        fitted = self.views.fitted_or_refuse()
        now = fitted.renamed(self.session.topics).names
        names, taken = list(now), set(now[fitted.n_known :])
        for k in range(fitted.n_known):
            names[k] = f"{now[k]} ({k + 1})" if now[k] in taken else now[k]
            taken.add(names[k])
        return TopicModel.load(fitted.folder).edit.rename_all(names)

    def _model(self, path: Path) -> None:
        with Scratch() as folder:
            self._loaded().save(folder / "model")
            with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
                for file in sorted((folder / "model").glob("[!.]*")):
                    archive.write(file, f"model/{file.name}")

    def _report(self, path: Path) -> None:
        model = self._loaded().attach(read_documents(self.views.project.path))
        layout = self.maps.made if self.maps else None
        title = f"Topics of {self.views.project.path.stem}"
        page.write(report_data(model, title=title, shares=breakdowns(self.views), map=layout or False), path)

    def _methods(self, path: Path) -> None:
        """The paper trail with the shares, and with the number of documents that each person labelled."""
        model = self._loaded().attach(read_documents(self.views.project.path))
        rows = [row for row, d in self.session.decisions.items() if d.permitted or d.forbidden]
        people = Counter(person for row in rows for person in self.session.votes_of(row) if person != DECISION)
        title = f"Methods of {self.views.project.path.stem}"
        shares = model.findings.shares()
        text = model.findings.methods(shares=shares, people=dict(people.most_common()), title=title)
        path.write_text(text, encoding="utf-8")

    def _refi_qda(self, path: Path) -> None:
        """The topics for NVivo, QualCoder, Taguette and others."""
        topics = self.session.live
        book = Codebook(tuple(topic.plain() for topic in topics))
        path.write_text(write_codebook(book, {topic.key: topic.colour for topic in topics}), encoding="utf-8")


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
