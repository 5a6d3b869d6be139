"""What the pages show, as plain values: the next document, one document, many, the topics, the progress."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topicsteer.app.workbench.fitted import Fitted
from topicsteer.app.workbench.project import PERMITTED, SKIPPED, WHOLE
from topicsteer.app.workbench.session import LabelSession, Refused
from topicsteer.report.topic_layout import lay_out
from topicsteer.system.safe_text import visible

SHOWN = 20_000  # characters of a document at first,
PIECE = 200_000  # and with each further request
PAGE = 50
STRONG, WEAK = 0.8, 0.12
GROUPS = 24  # most groups of a column
HELD = 600.0  # seconds for which a document is kept from the others
MODES = ("suggested", "random", "search", "topic", "free", "check")
Rows = NDArray[np.int64]


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
        rng = np.random.default_rng(0)
        self._shuffled = rng.permutation(session.n)
        self._held: dict[str, tuple[int, float]] = {}
        self._search = lru_cache(maxsize=32)(lambda query: np.asarray(self.project.search(query), dtype=np.int64))

    # --- the next document ---

    def next(
        self,
        who: str,
        mode: str = "suggested",
        *,
        query: str = "",
        topic: int | None = None,
        seen: Sequence[int] = (),
    ) -> dict[str, Any]:
        """The next document for a person and why; ``row`` is None with a reason when there is none.

        Parameters
        ----------
        who : str
            Documents that this person labelled or skipped do not come again.
        mode : str
            "suggested", "random", "search" (with a query), "topic" (with its number), "free" (the same for free
            topics) or "check" (labels that look wrong).
        query, topic
            For the modes that need them.
        seen : sequence of int
            Documents that are on the person's own pile: they come again only by going back.
        """
        if mode not in MODES:
            raise Refused(f"documents come in one of the ways {', '.join(MODES)}.")
        with self.session.lock:
            rows, reasons = self._queue(mode, query, topic)
            done = self._finished(who, mode)
            done[[row for row in seen if 0 <= row < len(done)]] = True
            done[[row for other, (row, at) in self._held.items() if other != who and _recent(at)]] = True
            left = np.flatnonzero(~done[rows])
            if not len(left):
                return {"row": None, "why": self._nothing_left(mode, query, topic), "left": 0}
            place = int(left[0])
            row = int(rows[place])
            self._held[who] = (row, time.monotonic())
            return {"row": row, "why": reasons(place, row), "left": len(left)}

    def _queue(self, mode: str, query: str, topic: int | None) -> tuple[Rows, Any]:
        """Rows in their order, and a function from place and row to the reason."""
        fitted, session = self.fitted, self.session
        unlabelled = int((~session.labelled).sum())
        if mode == "suggested" and fitted is not None and fitted.meta.get("suggestions"):
            why = {s["row"]: s["why"] for s in fitted.meta["suggestions"]}
            rows = np.fromiter(why, dtype=np.int64)
            rest = self._shuffled[~np.isin(self._shuffled, rows)]
            spent = "At random: the suggestions of the last fit are used up; fit again for new ones."
            return np.concatenate([rows, rest]), lambda place, row: why.get(row, spent)
        if mode in ("suggested", "random"):
            waiting = "Suggestions come with the first fit." if fitted is None else "Suggestions are being worked out."
            first = f" {waiting}" if mode == "suggested" else ""
            return self._shuffled, lambda place, row: f"At random, of {unlabelled:,} without a label.{first}"
        if mode == "search":
            rows = self._search(query.strip())
            return rows, lambda place, row: f"Match {place + 1:,} of {len(rows):,} for “{query.strip()}”."
        if mode == "check":
            doubts: dict[int, str] = {}
            for check in self._checks():
                doubts.setdefault(check["row"], check["why"])  # the strongest one of each document
            rows = np.fromiter(doubts, dtype=np.int64)
            return rows, lambda place, row: f"{doubts[row][0].upper()}{doubts[row][1:]}."
        if fitted is None:
            return np.empty(0, dtype=np.int64), None
        if mode == "topic":
            name = self._live_name(topic)
            if topic not in fitted.column:
                return np.empty(0, dtype=np.int64), None
            strength: Any = fitted.memberships[:, fitted.column[topic]]
        else:
            if topic is None or not 0 <= topic < fitted.n_free:
                raise Refused("This free topic is no longer there; the last fit made others.")
            name, strength = fitted.result.names[fitted.n_known + topic], fitted.free_share(topic)
        rows = np.argsort(-strength, kind="stable")[:5_000]
        rows = rows[strength[rows] > 0.01]
        return rows, lambda place, row: f"One of the strongest documents of “{name}” ({strength[row]:.0%})."

    def _finished(self, who: str, mode: str) -> NDArray[np.bool_]:
        """Documents a person need not see again: theirs, or (suggested and random) with anybody's label."""
        session, none = self.session, np.zeros(self.session.n, dtype=np.bool_)
        if mode == "check":
            return none
        return session.spoken.get(who, none) | (session.labelled if mode in ("suggested", "random") else none)

    def _nothing_left(self, mode: str, query: str, topic: int | None) -> str:
        if mode == "search":
            return f"No more documents match “{query.strip()}”." if query.strip() else "Type what to search for."
        if mode == "check":
            return "No label looks wrong to the model."
        if mode in ("topic", "free"):
            return "No more documents of this topic." if self.fitted else "Topics have documents after the first fit."
        return "All documents are labelled."

    def _checks(self) -> list[dict[str, Any]]:
        """Labels that look wrong, as far as they still stand, under the names of now."""
        fitted = self.fitted
        if fitted is None:
            return []
        index = dict(zip(fitted.result.names, fitted.keys, strict=False))
        found = []
        for check in fitted.meta.get("checks", ()):
            key = index.get(check["topic"])
            decision = self.session.decisions.get(check["row"])
            if key is None or decision is None or self.session.topics[key].gone:
                continue
            stands = key in (decision.permitted if check["given"] == PERMITTED else decision.forbidden)
            if stands:
                name = self.session.topics[key].name
                why = check["why"].replace(f"labelled {check['topic']}", f"labelled {name}", 1)
                found.append({**check, "topic": name, "why": why, "key": key})
        return found

    # --- one document ---

    def document(self, row: int, who: str) -> dict[str, Any]:
        """A document with its words marked, labels, weights and reasons."""
        name, text, extra = self._document(row)
        head = text[:SHOWN]
        fitted = self.fitted
        pieces: list[list[Any]] = [[visible(head, 8 * SHOWN), None, 0]]
        shares: list[dict[str, Any]] = []
        if fitted is not None:
            explanation = fitted.model.explain(head)
            refs = [self._ref(fitted.result.names.index(n)) for n in explanation.names]
            pieces = [
                [visible(piece, 8 * SHOWN), refs[k] if k is not None and strength > WEAK else None, round(strength, 2)]
                for piece, k, strength in explanation.marked()
                if piece
            ]
            shares = [
                {"ref": ref, "name": self._name(ref), "share": round(float(share), 3)}
                for ref, share in zip(refs, explanation.shares, strict=True)
                if share >= 0.01
            ][:8]
        return {
            "row": row,
            "id": visible(name, 200),
            "pieces": pieces,
            "shown": len(head),
            "length": len(text),
            "extra": {visible(k, 60): visible(v, 300) for k, v in extra.items() if v is not None},
            "shares": shares,
            "likely": self._likely(row, 6),
            **self.labels(row, who),
        }

    def text(self, row: int, begin: int) -> dict[str, Any]:
        """A further part of a long document, without marks."""
        _, text, _ = self._document(row)
        begin = min(max(begin, 0), len(text))
        return {"text": visible(text[begin : begin + PIECE], 8 * PIECE), "end": min(begin + PIECE, len(text))}

    def labels(self, row: int, who: str) -> dict[str, Any]:
        """What is said of a document: by this person, by others, and where people differ."""
        with self.session.lock:
            said = self.session.said(row)
            decision = self.session.decisions.get(row)
            return {
                "mine": {str(t): s for t, s in said.get(who, {}).items()},
                "others": {p: {str(t): s for t, s in states.items()} for p, states in said.items() if p != who},
                "differing": sorted(decision.differing) if decision else [],
                "permitted": sorted(decision.permitted) if decision else [],
            }

    def _document(self, row: int) -> Any:
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
            {"topic": fitted.keys[k], "p": round(float(P[k]), 3), "yes": bool(P[k] >= fitted.cuts[k])}
            for k in order[:n]
            if P[k] >= 0.01
        ]

    # --- many documents ---

    def documents(
        self,
        who: str,
        *,
        query: str = "",
        filter: str = "all",
        topic: int | None = None,
        free: int | None = None,
        sort: str = "order",
        page: int = 0,
    ) -> dict[str, Any]:
        """A page of documents.

        Parameters
        ----------
        who : str
            For their own labels.
        query : str
            Words that must occur.
        filter : str
            "all", "labelled", "unlabelled", "strong", "uncertain", "disagreement" (of label and model), "people" (who
            differ), "skipped" (by this person).
        topic, free : int, optional
            Only documents of this known or free topic: labelled so, or so in the model's view.
        sort : str
            "order" (of the table), "strength", "uncertainty" or "recent" (labels).
        page : int
            Counted from 0.
        """
        with self.session.lock:
            rows, checked = self._select(who, query, filter, topic, free)
            rows = self._sorted(rows, sort, topic, free)
            pages = max(-(-len(rows) // PAGE), 1)
            page = min(max(page, 0), pages - 1)
            shown = [int(row) for row in rows[page * PAGE : (page + 1) * PAGE]]
            labels = {row: self.labels(row, who) for row in shown}
        texts = self.project.beginnings(shown)
        listed = []
        for row in shown:
            name, text = texts[row]
            listed.append(
                {
                    "row": row,
                    "id": visible(name, 80),
                    "text": visible(" ".join(text.split()), 240),
                    "likely": self._likely(row, 3),
                    "check": checked.get(row),
                    **labels[row],
                }
            )
        return {"documents": listed, "total": len(rows), "page": page, "pages": pages}

    def rows(self, who: str, *, query: str, filter: str, topic: int | None, free: int | None) -> list[int]:
        """All rows of a selection, to label them at once."""
        with self.session.lock:
            return [int(row) for row in self._select(who, query, filter, topic, free)[0]]

    def _select(
        self, who: str, query: str, filter: str, topic: int | None, free: int | None
    ) -> tuple[Rows, dict[int, str]]:
        session, fitted = self.session, self.fitted
        keep = np.ones(session.n, dtype=np.bool_)
        checked: dict[int, str] = {}
        if query.strip():
            keep = np.zeros(session.n, dtype=np.bool_)
            keep[self._search(query.strip())] = True
        if topic is not None:
            self._live_name(topic)
            own = np.zeros(session.n, dtype=np.bool_)
            if fitted is not None and topic in fitted.column:
                own |= fitted.has[:, fitted.column[topic]]
            for row, decision in session.decisions.items():
                own[row] = topic in decision.permitted or (own[row] and topic not in decision.forbidden)
            keep &= own
        if free is not None:
            if fitted is None or not 0 <= free < fitted.n_free:
                raise Refused("This free topic is no longer there; the last fit made others.")
            keep &= fitted.free_share(free) >= 0.2
        if filter == "labelled":
            keep &= session.labelled
        elif filter == "unlabelled":
            keep &= ~session.labelled
        elif filter in ("strong", "uncertain"):
            if fitted is None:
                return np.empty(0, dtype=np.int64), {}
            strength = fitted.top if topic not in fitted.column else fitted.memberships[:, fitted.column[topic]]
            sure = strength >= STRONG
            keep &= sure if filter == "strong" else (np.abs(strength - 0.5) <= 0.25) & ~session.labelled
        elif filter == "disagreement":
            checked = {
                c["row"]: f"{c['topic']}: label {c['given']}, model {c['probability']:.0%}" for c in self._checks()
            }
            mask = np.zeros(session.n, dtype=np.bool_)
            mask[list(checked)] = True
            keep &= mask
        elif filter == "people":
            keep &= session.differing
        elif filter == "skipped":
            mask = np.zeros(session.n, dtype=np.bool_)
            for touched in np.flatnonzero(session.touched):
                mask[touched] = session.said(int(touched)).get(who, {}).get(WHOLE) == SKIPPED
            keep &= mask
        elif filter != "all":
            raise Refused(f"there is no filter {filter!r}.")
        return np.flatnonzero(keep), checked

    def _sorted(self, rows: Rows, sort: str, topic: int | None, free: int | None) -> Rows:
        fitted = self.fitted
        if sort == "recent":
            return rows[np.argsort(-self.session.touched[rows], kind="stable")]
        if sort == "order" or fitted is None:
            return rows
        if sort == "uncertainty":
            return rows[np.argsort(-fitted.doubt[rows], kind="stable")]
        if free is not None:
            strength = fitted.free_share(free)
        elif topic in fitted.column:
            strength = fitted.memberships[:, fitted.column[topic]]
        else:
            strength = fitted.top
        return rows[np.argsort(-strength[rows], kind="stable")]

    # --- topics ---

    def topics(self) -> dict[str, Any]:
        """Known and free topics with what the last fit says of them."""
        with self.session.lock:
            live, counts, fitted = self.session.live, dict(self.session.counts), self.fitted
            topics = self.session.topics
        known = []
        for topic in live:
            entry: dict[str, Any] = {
                "topic": topic.topic,
                "name": topic.name,
                "description": topic.description,
                "colour": topic.colour,
                "pinned": list(topic.pinned),
                "banned": list(topic.banned),
                "labels": counts.get(topic.topic, 0),
                "fitted": fitted is not None and topic.topic in fitted.column,
            }
            if fitted is not None and topic.topic in fitted.column:
                k = fitted.column[topic.topic]
                effects = fitted.effects
                entry |= {
                    "terms": [[visible(t, 60), round(s, 3)] for t, s in fitted.terms[k]],
                    "share": round(float(fitted.result.share[k]), 4),
                    "documents": int(fitted.has[:, k].sum()),
                    "took effect": bool(effects["took effect"][k]),
                    "obeyed": round(float(effects["obeyed"][k]), 3),
                    "nearest": self._nearest(fitted, k, topics),
                }
            known.append(entry)
        free = []
        if fitted is not None:
            for k in range(fitted.n_free):
                place = fitted.n_known + k
                free.append(
                    {
                        "free": k,
                        "name": visible(fitted.result.names[place], 100),
                        "terms": [[visible(t, 60), round(s, 3)] for t, s in fitted.terms[place]],
                        "share": round(float(fitted.result.share[place]), 4),
                        "nearest": self._nearest(fitted, place, topics),
                    }
                )
        return {"known": known, "free": free}

    def _nearest(self, fitted: Fitted, k: int, topics: Any) -> list[dict[str, Any]]:
        likeness = fitted.result.similarity[k].copy()
        likeness[k] = -1
        found: list[dict[str, Any]] = []
        for other in np.argsort(-likeness)[:4]:
            gone = other < fitted.n_known and topics[fitted.keys[other]].gone
            if likeness[other] > 0.05 and not gone and len(found) < 2:
                found.append({"name": self._name(self._ref(int(other))), "likeness": round(float(likeness[other]), 2)})
        return found

    def _ref(self, k: int) -> Any:
        """How the page refers to a topic of the model: the number of a known one, "free-3" of a free one."""
        fitted = self.fitted
        assert fitted is not None  # noqa: S101
        return fitted.keys[k] if k < fitted.n_known else f"free-{k - fitted.n_known}"

    def _name(self, ref: Any) -> str:
        if isinstance(ref, int):
            return self.session.topics[ref].name
        assert self.fitted is not None  # noqa: S101
        return visible(self.fitted.result.names[self.fitted.n_known + int(ref.removeprefix("free-"))], 100)

    def _live_name(self, topic: int | None) -> str:
        found = self.session.topics.get(topic or 0)
        if found is None or found.gone:
            raise Refused("This topic is no longer there; somebody may have deleted or merged it.")
        return found.name

    # --- progress ---

    def progress(self) -> dict[str, Any]:
        """How far the labelling is: for the bar on every page."""
        with self.session.lock:
            labelled = int(self.session.labelled.sum())
            since = self.session.fresh(self.fitted.meta["seq"]) if self.fitted else labelled
            return {
                "labelled": labelled,
                "documents": self.session.n,
                "target": self.session.target,
                "fresh": since,
                "differing": int(self.session.differing.sum()),
            }

    def curve(self) -> list[dict[str, Any]]:
        """The learning curve: for each fit that was judged, labelled documents and how hidden labels were found."""
        return [
            {"at": at, **meta["judged"]}
            for _, at, meta in self.project.models()
            if isinstance(meta.get("judged"), dict)
        ]

    def coverage(self) -> list[dict[str, Any]]:
        """Labels of each topic."""
        with self.session.lock:
            return [
                {"topic": t.topic, "name": t.name, "colour": t.colour, "labels": self.session.counts.get(t.topic, 0)}
                for t in self.session.live
            ]

    def advice(self) -> str:
        """What to do next, in a sentence or two."""
        coverage, curve = self.coverage(), self.curve()
        if not coverage:
            return "Make two topics or more and label a few documents of each; or fit first, and name what comes out."
        bare = [c["name"] for c in coverage if c["labels"] < 3]
        if bare:
            some = ", ".join(bare[:5]) + (f" and {len(bare) - 5} more" if len(bare) > 5 else "")
            return f"These topics have fewer than three labels: {some}. Search for their documents and label some."
        if self.fitted is None:
            return "Fit now: the topics will follow the labels, and suggestions will come."
        if len(curve) >= 4:
            last, before = curve[-1], curve[-4]
            growth = last["documents"] / max(before["documents"], 1)
            gain = last["micro"] - before["micro"]
            if growth >= 1.2 and gain < 0.01:
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
            ref = self._ref(k)
            listed.append(
                {
                    "ref": ref,
                    "name": visible(topics.names[k], 100),
                    "colour": self.session.topics[ref].colour if isinstance(ref, int) else "",
                    "gone": isinstance(ref, int) and self.session.topics[ref].gone,
                    "share": round(float(topics.share[k]), 4),
                    "x": round(float(centre[0]), 1),
                    "y": round(float(centre[1]), 1),
                    "r": round(float(radius), 1),
                    "label": None
                    if label is None
                    else {"x": label.x, "y": label.y, "text": label.text, "anchor": label.anchor, "line": label.line},
                }
            )
        return {"topics": listed, "width": width, "height": height}

    # --- documents by group or date ---

    def columns(self) -> list[str]:
        """Columns of the table that make groups: few values, or dates."""
        return list(self._groups())

    def groups(self, column: str) -> dict[str, Any]:
        """For each value of a column the number of documents and the share of each known topic in them."""
        found = self._groups()
        if column not in found:
            raise Refused(f"There is no column {column!r} with groups.")
        names, code = found[column]
        sizes = np.bincount(code[code >= 0], minlength=len(names))
        fitted = self.fitted
        rows = []
        if fitted is not None:
            live = [k for k, key in enumerate(fitted.keys) if not self.session.topics[key].gone]
            for k in live:
                has = fitted.has[:, k]
                counts = np.bincount(code[has & (code >= 0)], minlength=len(names))
                topic = self.session.topics[fitted.keys[k]]
                shares = [round(float(v), 4) for v in counts / np.maximum(sizes, 1)]
                rows.append({"topic": topic.topic, "name": topic.name, "colour": topic.colour, "shares": shares})
        return {"column": column, "groups": [visible(n, 60) for n in names], "sizes": sizes.tolist(), "topics": rows}

    def _groups(self) -> dict[str, tuple[list[str], NDArray[np.int64]]]:
        if not hasattr(self, "_columns"):
            extras = self.project.extras()
            self._columns = {}
            for name in extras[0] if extras else ():
                made = _grouped([extra.get(name) for extra in extras])
                if made is not None:
                    self._columns[name] = made
        return self._columns


def _grouped(values: list[Any]) -> tuple[list[str], NDArray[np.int64]] | None:
    """Groups of a column: its values if they are few, months or years if they are dates, else None."""
    filled = [v for v in values if v is not None and v != ""]
    if len(filled) < max(2, len(values) // 2):
        return None
    labels: list[str | None] = [None if v is None or v == "" else str(v) for v in values]
    distinct = set(filter(None, labels))
    if len(distinct) > GROUPS:
        dates = [_date(v) for v in filled[:50]]
        if not all(dates):
            return None
        stamps = [_date(v) if v else None for v in labels]
        for length in (10, 7, 4):
            labels = [None if s is None else s[:length] for s in stamps]
            distinct = set(filter(None, labels))
            if len(distinct) <= GROUPS:
                break
        else:
            return None
    if not 2 <= len(distinct) <= GROUPS:
        return None
    names = sorted(distinct)
    place = {name: k for k, name in enumerate(names)}
    return names, np.array([-1 if label is None else place[label] for label in labels], dtype=np.int64)


def _date(value: Any) -> str | None:
    """A date as 2026-01-31, if it is one."""
    text = str(value).strip()
    try:
        return datetime.fromisoformat(text).date().isoformat()
    except ValueError:
        pass
    for form in ("%d-%b-%Y %H:%M:%S.%f", "%d-%b-%Y", "%d.%m.%Y", "%d/%m/%Y", "%Y/%m/%d", "%a, %d %b %Y %H:%M:%S %z"):
        try:
            return datetime.strptime(text, form).date().isoformat()
        except ValueError:
            continue
    return text if text.isdigit() and len(text) == 4 else None


def _recent(at: float) -> bool:
    return time.monotonic() - at < HELD
