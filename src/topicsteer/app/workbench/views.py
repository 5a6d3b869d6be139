"""What the pages show, as plain values: one document, many, the topics, the progress."""

from collections.abc import Callable, Hashable
from dataclasses import asdict, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from topicsteer.analysis.suggest import Doubt, doubt_sentence
from topicsteer.app.workbench.decisions import Decision, Refused
from topicsteer.app.workbench.fitted import Fitted
from topicsteer.app.workbench.log import PERMITTED, SKIPPED, WHOLE
from topicsteer.app.workbench.session import LabelSession
from topicsteer.report.topic_layout import lay_out
from topicsteer.system.safe_text import visible
from topicsteer.system.types import Array

SHOWN = 20_000  # characters of a document at first,
PIECE = 200_000  # and with each further request
PAGE = 50
STRONG, WEAK = 0.8, 0.12
Rows = NDArray[np.int64]
Mask = NDArray[np.bool_]


class Selection(NamedTuple):
    """Some of the documents.

    Parameters
    ----------
    who : str
        For whom.
    query : str
        Words that must occur.
    filter : str
        "all", "labelled", "unlabelled", "strong", "uncertain", "disagreement" (of label and model), "people" (who
        differ), "skipped" (by this person).
    topic, free : int, optional
        Only documents of this known or free topic: labelled so, or so in the model's view.
    """

    who: str
    query: str = ""
    filter: str = "all"
    topic: int | None = None
    free: int | None = None


class Views:
    """Read-only answers about a session and its fitted model.

    Parameters
    ----------
    session : LabelSession
        The state.
    """

    def __init__(self, session: LabelSession) -> None:
        self.session = session
        self.project = session.project
        self.fitted: Fitted | None = None
        self.search = lru_cache(maxsize=32)(lambda query: np.asarray(self.project.search(query), dtype=np.int64))

    def free_share(self, free: int | None) -> Array:
        """Share of a free topic in each document."""
        if self.fitted is None or free is None or not 0 <= free < self.fitted.n_free:
            raise Refused("This free topic is no longer there; the last fit made others.")
        return self.fitted.result.proportions[:, self.fitted.n_known + free]

    def checks(self) -> list[Doubt]:
        """Labels that look wrong, as far as they still stand, strongest first, and why under the names of now."""
        topics, found = self.session.topics, []
        for check in self.fitted.checks if self.fitted else ():
            decision = self.session.decisions.get(check.row, Decision())
            held = decision.permitted if check.given == PERMITTED else decision.forbidden
            if check.topic in held and not topics[check.topic].gone:
                rival = None if check.rival is None else topics[check.rival].name
                said = (check.given, topics[check.topic].name, check.probability, rival, check.rival_probability)
                found.append(replace(check, why=check.why or doubt_sentence(*said, check.only)))
        return found

    # --- one document ---

    def document(self, row: int, who: str) -> dict[str, Any]:
        """A document with its words marked, labels, weights and reasons."""
        name, text, extra = self._document(row)
        head, fitted = text[:SHOWN], self.fitted
        pieces: list[tuple[str, int | str | None, float]] = [(visible(head, 8 * SHOWN), None, 0)]
        shares: list[dict[str, Any]] = []
        if fitted is not None:
            explanation = fitted.model.explain(head)
            refs = [fitted.ref(fitted.result.names.index(name)) for name in explanation.names]
            pieces = [
                (visible(piece, 8 * SHOWN), refs[k] if k is not None and strength > WEAK else None, round(strength, 2))
                for piece, k, strength in explanation.marked()
                if piece
            ]
            found = zip(refs, map(float, explanation.shares), strict=True)
            shares = [{"ref": ref, "share": round(share, 3)} for ref, share in found if share >= 0.01][:8]
        extra = {visible(k, 60): visible(v, 300) for k, v in extra.items() if v is not None}
        whole = {"row": row, "id": visible(name, 200), "extra": extra, "shown": len(head), "length": len(text)}
        return whole | {"pieces": pieces, "shares": shares, "likely": self._likely(row, 6)} | self.labels(row, who)

    def text(self, row: int, begin: int) -> dict[str, Any]:
        """A further part of a long document, without marks."""
        _, text, _ = self._document(row)
        begin = min(max(begin, 0), len(text))
        return {"text": visible(text[begin : begin + PIECE], 8 * PIECE), "end": min(begin + PIECE, len(text))}

    def labels(self, row: int, who: str) -> dict[str, Any]:
        """What is said of a document: by this person, by others, and where people differ."""
        with self.session.lock:
            said = self.session.said(row)
            decision = self.session.decisions.get(row, Decision())
            return {
                "mine": {str(t): s for t, s in said.get(who, {}).items()},
                "others": {p: {str(t): s for t, s in states.items()} for p, states in said.items() if p != who},
                "differing": sorted(decision.differing),
                "permitted": sorted(decision.permitted),
            }

    def _document(self, row: int) -> tuple[Hashable, str, dict[str, Any]]:
        if not 0 <= row < self.session.n:
            raise Refused(f"There is no document number {row}.")
        return self.project.document(row)

    def _likely(self, row: int, n: int) -> list[dict[str, Any]]:
        """The known topics of a document, strongest first, with the model's probability."""
        fitted = self.fitted
        if fitted is None or not fitted.n_known:
            return []
        P = fitted.memberships[row]
        order = [k for k in np.argsort(-P, kind="stable")[: 2 * n] if not self.session.topics[fitted.keys[k]].gone]
        return [
            {"topic": fitted.keys[k], "p": round(float(P[k]), 3), "yes": bool(P[k] >= fitted.thresholds[k])}
            for k in order[:n]
            if P[k] >= 0.01
        ]

    # --- many documents ---

    def documents(self, chosen: Selection, *, sort: str = "order", page: int = 0) -> dict[str, Any]:
        """A page of documents, with the labels of the person who asks.

        Parameters
        ----------
        chosen : Selection
            Which ones.
        sort : str
            "order" (of the table), "strength", "uncertainty" or "recent" (labels).
        page : int
            Counted from 0.
        """
        with self.session.lock:
            rows = self._sorted(self._select(chosen), chosen, sort)
            checks = self.checks() if chosen.filter == "disagreement" else []
            pages = max(-(-len(rows) // PAGE), 1)
            page = min(max(page, 0), pages - 1)
            shown = [int(row) for row in rows[page * PAGE : (page + 1) * PAGE]]
            labels = {row: self.labels(row, chosen.who) for row in shown}
        topics = self.session.topics
        checked = {c.row: f"{topics[c.topic].name}: label {c.given}, model {c.probability:.0%}" for c in checks}
        listed = []
        for row, (name, text) in self.project.beginnings(shown).items():
            entry = {"row": row, "id": visible(name, 80), "text": visible(" ".join(text.split()), 240)}
            listed.append(entry | {"likely": self._likely(row, 3), "check": checked.get(row)} | labels[row])
        return {"documents": listed, "total": len(rows), "page": page, "pages": pages}

    def rows(self, chosen: Selection) -> list[int]:
        """All rows of a selection, to label them at once."""
        with self.session.lock:
            return [int(row) for row in self._select(chosen)]

    def _select(self, chosen: Selection) -> Rows:
        keep = self._filtered(chosen)
        if query := chosen.query.strip():
            keep = keep & self._mask(self.search(query))
        if chosen.topic is not None:
            keep = keep & self._of_topic(self.session.live_topic(chosen.topic).key)
        if chosen.free is not None:
            keep = keep & (self.free_share(chosen.free) >= 0.2)
        return np.flatnonzero(keep)

    def _mask(self, rows: Rows | list[int]) -> Mask:
        mask = np.zeros(self.session.n, dtype=np.bool_)
        mask[rows] = True
        return mask

    def _of_topic(self, topic: int) -> Mask:
        fitted = self.fitted
        own = self._mask([])
        if fitted is not None and topic in fitted.column:
            own |= fitted.has[:, fitted.column[topic]]
        for row, decision in self.session.decisions.items():
            own[row] = topic in decision.permitted or (own[row] and topic not in decision.forbidden)
        return own

    def _filtered(self, chosen: Selection) -> Mask:
        session = self.session
        # Without a model no document is strong, nor uncertain.
        strength = np.zeros(session.n) if self.fitted is None else self.fitted.strength(chosen.topic)
        said = ((row, session.said(row).get(chosen.who, {})) for row in np.flatnonzero(session.touched).tolist())
        filters: dict[str, Callable[[], Mask]] = {
            "all": lambda: ~self._mask([]),
            "labelled": lambda: session.labelled,
            "unlabelled": lambda: ~session.labelled,
            "strong": lambda: strength >= STRONG,
            "uncertain": lambda: (np.abs(strength - 0.5) <= 0.25) & ~session.labelled,
            "disagreement": lambda: self._mask([check.row for check in self.checks()]),
            "people": lambda: session.differing,
            "skipped": lambda: self._mask([row for row, states in said if states.get(WHOLE) == SKIPPED]),
        }
        if chosen.filter not in filters:
            raise Refused(f"there is no filter {chosen.filter!r}.")
        return filters[chosen.filter]()

    def _sorted(self, rows: Rows, chosen: Selection, sort: str) -> Rows:
        fitted = self.fitted
        rank: NDArray[np.floating | np.integer]
        if sort == "recent":
            rank = self.session.touched
        elif sort == "order" or fitted is None:
            return rows
        elif sort == "uncertainty":
            rank = fitted.doubt
        else:
            rank = fitted.strength(chosen.topic) if chosen.free is None else self.free_share(chosen.free)
        return rows[np.argsort(-rank[rows], kind="stable")]

    # --- topics ---

    def topics(self) -> dict[str, Any]:
        """Known and free topics with what the last fit says of them."""
        fitted, known = self.fitted, []
        for topic in self.session.live:
            k = fitted.column.get(topic.key) if fitted else None
            entry: dict[str, Any] = topic.stored() | {"labels": self.session.counts[topic.key], "fitted": k is not None}
            if fitted is not None and k is not None:
                entry |= self._found(fitted, k)
                entry |= {
                    "documents": int(fitted.has[:, k].sum()),
                    "took effect": bool(fitted.effects["took effect"][k]),
                    "obeyed": round(float(fitted.effects["obeyed"][k]), 3),
                }
            known.append(entry)
        if fitted is None:
            return {"known": known, "free": []}
        numbers = range(fitted.n_known, len(fitted.result))
        free = [{"free": k - fitted.n_known, "name": self._name(fitted, k), **self._found(fitted, k)} for k in numbers]
        return {"known": known, "free": free}

    def _found(self, fitted: Fitted, k: int) -> dict[str, Any]:
        """What a fit found of a topic, and which topics are like it."""
        likeness = fitted.result.similarity[k].copy()
        likeness[k] = -1
        near = [int(other) for other in np.argsort(-likeness)[:4] if likeness[other] > 0.05]
        near = [other for other in near if other >= fitted.n_known or not self.session.topics[fitted.keys[other]].gone]
        return {
            "terms": [[visible(term, 60), round(strength, 3)] for term, strength in fitted.terms[k]],
            "share": round(float(fitted.result.share[k]), 4),
            "nearest": [{"name": self._name(fitted, o), "likeness": round(float(likeness[o]), 2)} for o in near[:2]],
        }

    def _name(self, fitted: Fitted, k: int) -> str:
        """What a topic of the model is called now."""
        if k < fitted.n_known:
            return self.session.topics[fitted.keys[k]].name
        return visible(fitted.result.names[k], 100)

    # --- progress ---

    def progress(self) -> dict[str, Any]:
        """How far the labelling is: for the bar on every page."""
        session, fitted = self.session, self.fitted
        with session.lock:
            labelled, differing = int(session.labelled.sum()), int(session.differing.sum())
            fresh = session.fresh(fitted.meta["seq"]) if fitted else labelled
            counts = {"labelled": labelled, "differing": differing, "fresh": fresh}
            return counts | {"documents": session.n, "target": session.target}

    def curve(self) -> list[dict[str, Any]]:
        """The learning curve: for each fit that was judged, labelled documents and how hidden labels were found."""
        judged = ((at, meta.get("judged")) for _, at, meta in self.project.models.finished())
        return [{"at": at, **scores} for at, scores in judged if isinstance(scores, dict)]

    def advice(self) -> str:
        """What to do next, in a sentence or two."""
        live, curve = self.session.live, self.curve()
        if not live:
            return "Make two topics or more and label a few documents of each; or fit first, and name what comes out."
        bare = [topic.name for topic in live if self.session.counts[topic.key] < 3]
        if bare:
            some = ", ".join(bare[:5]) + (f" and {len(bare) - 5} more" if len(bare) > 5 else "")
            return f"These topics have fewer than three labels: {some}. Search for their documents and label some."
        if self.fitted is None:
            return "Fit now: the topics will follow the labels, and suggestions will come."
        if len(curve) >= 4:
            last, before = curve[-1], curve[-4]
            growth = last["documents"] / max(before["documents"], 1)
            if growth >= 1.2 and last["micro"] - before["micro"] < 0.01:
                return (
                    f"More labels have stopped paying: from {before['documents']} to {last['documents']} labelled "
                    f"documents agreement with hidden labels went from {before['micro']:.0%} to {last['micro']:.0%}. "
                    "Check the labels that look wrong, or stop here."
                )
        if self.fitted.meta.get("outlook"):
            return str(self.fitted.meta["outlook"])
        if curve and curve[-1]["micro"] < 0.6:
            return "Hidden labels are not yet found well: go on with the suggested documents."
        return "Go on with the suggested documents; they bring most."

    def map(self, width: int, height: int) -> dict[str, Any]:
        """Circles and names of the topic map."""
        fitted = self.fitted
        if fitted is None or len(fitted.result) < 2:
            return {"topics": [], "width": width, "height": height}
        topics = fitted.renamed(self.session.topics)
        drawn = lay_out(topics, width, height, longest=30 if width > 500 else 18)
        listed = []
        for k, (centre, radius, label) in enumerate(zip(drawn.centres, drawn.radii, drawn.labels, strict=True)):
            topic = self.session.topics[fitted.keys[k]] if k < fitted.n_known else None
            place = dict(zip("xyr", (round(float(value), 1) for value in (*centre, radius)), strict=True))
            entry: dict[str, Any] = {"ref": fitted.ref(k), "name": visible(topics.names[k], 100), **place}
            entry |= {"colour": topic.colour if topic else "", "gone": topic is not None and topic.gone}
            entry |= {"share": round(float(topics.share[k]), 4), "label": None if label is None else asdict(label)}
            listed.append(entry)
        return {"topics": listed, "width": width, "height": height}

    # --- documents by group or date ---

    def groups(self, column: str) -> dict[str, Any]:
        """For each value of a column the number of documents and the share of each known topic in them."""
        if column not in self.project.groups:
            raise Refused(f"There is no column {column!r} with groups.")
        names, code = self.project.groups[column]
        sizes = np.bincount(code[code >= 0], minlength=len(names))
        fitted, rows = self.fitted, []
        for key, k in fitted.column.items() if fitted else ():
            topic = self.session.topics[key]
            if fitted is not None and not topic.gone:
                counts = np.bincount(code[fitted.has[:, k] & (code >= 0)], minlength=len(names))
                shares = [round(float(v), 4) for v in counts / np.maximum(sizes, 1)]
                rows.append({"topic": key, "name": topic.name, "colour": topic.colour, "shares": shares})
        return {"column": column, "groups": [visible(n, 60) for n in names], "sizes": sizes.tolist(), "topics": rows}
