"""The document map of a project: laid out once in a process of its own, coloured by the present labels and model."""

from __future__ import annotations

import base64
import threading
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topicsteer.analysis import map_layout as maps
from topicsteer.app.workbench.current_model import NONE_OF_THESE, OUTSIDE, CurrentModel
from topicsteer.app.workbench.fit_process import AnyReport, Ended, Failed, FitProcess, LaidOut, MapOrder, Progressed
from topicsteer.app.workbench.responses import MapPoints, MapStatus, PointTopic
from topicsteer.app.workbench.views import Views
from topicsteer.report.map_page import UNITS, packed, short_form
from topicsteer.system.templates import visible

# The name of the layout among the settings of a project.
STORED = "document map"


class MapMaker:
    """Lays out the documents of a project, once: the layout is stored in the project.

    Parameters
    ----------
    views : Views
        The session and its fitted model.
    on_change : callable
        Called with each status, in a separate thread.
    """

    def __init__(self, views: Views, on_change: Callable[[MapStatus], None]) -> None:
        self.views = views
        self.on_change = on_change
        self.status = MapStatus("missing")
        # Whether documents can be laid out by their words, and the process that does it.
        self.by_words = maps.can_lay_out() and views.session.n >= maps.FEWEST
        self.process = FitProcess(self.on_report)
        self._lock = threading.Lock()
        self._chosen: maps.Rows | None = None
        stored = views.project.settings().get(STORED)
        # The layout by words, once it is made.
        self.made = None if stored is None else restored_layout(stored, views.session.n)

    def layout(self) -> maps.Layout | None:
        """The layout; None while it is being made, which the first call starts, and where it cannot be made.

        Without umap-learn, and for a tiny corpus, documents lie around the topics of the last fit.
        """
        if self.made is not None:
            return self.made
        if self.by_words:
            self._start()
            return None
        return self._around_topics()

    def close(self) -> None:
        """Kill the process."""
        self.process.close()

    def _rows(self) -> maps.Rows:
        """The documents on the map, chosen once: pages know them by their numbers."""
        if self._chosen is None:
            self._chosen = maps.chosen_rows(self.views.session.n, self.views.session.labelled)
        return self._chosen

    def _around_topics(self) -> maps.Layout | None:
        fitted = self.views.fitted
        if fitted is None:
            self.status = MapStatus("missing")
            return None
        rows = self._rows()
        places = maps.around_topics(fitted.at_fit[rows], fitted.result.positions)
        self.status = MapStatus("ready")
        return maps.Layout(rows, places, 1.6, "topics", self.views.session.n)

    def _start(self) -> None:
        """Start the process, unless it runs or has failed."""
        with self._lock:
            if self.status.state in ("making", "failed"):
                return
            self.status = MapStatus("making", 0, self.views.session.n)
        self.process.start(MapOrder(str(self.views.project.path.resolve()), self._rows().tolist()))

    def on_report(self, report: AnyReport) -> None:
        """Handle a report of the process; it ends with the layout. The other pages go on without a map."""
        try:
            match report:
                case Progressed(done=done, total=total):
                    self._set(MapStatus("making", done, total or self.views.session.n))
                case LaidOut(layout):
                    self.made = restored_layout(layout, self.views.session.n)
                    self.views.project.set({STORED: layout})
                    self._set(MapStatus("ready"))
                    self.process.close()
                case Failed(message):
                    self._fail(message)
                case Ended():
                    self._fail("its process ended early")
                case _:
                    pass
        except Exception as error:  # a full disk, for example
            self._fail(f"{error}")

    def _fail(self, why: str) -> None:
        self._set(MapStatus("failed", message=f"The map could not be made: {why}."))
        self.process.close()

    def _set(self, status: MapStatus) -> None:
        self.status = status
        self.on_change(status)


def stored_layout(layout: maps.Layout) -> dict[str, Any]:
    """A layout as JSON; without rows if it has all documents."""
    whole = len(layout.rows) == layout.documents
    return {
        "how": layout.how,
        "aspect": layout.aspect,
        "rows": "" if whole else packed(layout.rows, "<u4"),
        "x": packed(layout.places[:, 0] * UNITS, "<u2"),
        "y": packed(layout.places[:, 1] * UNITS, "<u2"),
    }


def restored_layout(stored: Mapping[str, Any], n: int) -> maps.Layout | None:
    """The layout of a project with n documents; None if it does not fit them."""
    try:
        x, y = (np.frombuffer(base64.b64decode(stored[name]), "<u2") / UNITS for name in ("x", "y"))
        rows = (
            np.frombuffer(base64.b64decode(stored["rows"]), "<u4").astype(np.int64) if stored["rows"] else np.arange(n)
        )
        places = np.stack([x, y], axis=1).astype(np.float32)
        aspect = float(stored["aspect"])
    except (ValueError, KeyError, TypeError):
        return None
    fits = len(rows) == len(places) <= n and (rows < n).all() and 0.01 < aspect < 100
    return maps.Layout(rows, places, aspect, "umap", n) if fits else None


# --- points in the colours of labels and model ---


def map_points(views: Views, layout: maps.Layout) -> MapPoints:
    """The points of a layout: a label decides on the topic of its document, else the model does."""
    with views.session.lock:
        topics, index = _topics(views)
        topic, membership = _predicted(views.fitted, layout.rows, index)
        labelled = views.session.labelled[layout.rows]
        place = {int(row): i for i, row in enumerate(layout.rows)}
        known = {one.key for one in topics if one.kind == "known"}
        for row, decision in views.session.decisions.items():
            i = place.get(row)
            if i is not None and labelled[i]:
                keys = [key for key in views.session.tree.deepest(decision.permitted) if key in index]
                if keys or decision.forbidden >= known:  # a document may lack some topics and have others
                    topic[i], membership[i] = index[keys[0] if keys else OUTSIDE], 1.0
    names = tuple(one.name for one in topics)
    n_known = sum(one.kind == "known" for one in topics)
    found = maps.DocumentMap(layout, names, n_known, topic, membership, labelled)
    whole = len(layout.rows) == layout.documents
    return MapPoints(
        **short_form(found),
        rows="" if whole else packed(layout.rows, "<u4"),
        topics=topics,
        by_words=layout.how == "umap",
        sample=maps.sample_note(layout),
    )


def _topics(views: Views) -> tuple[list[PointTopic], dict[int | str, int]]:
    """Existing topics, free topics of the last fit, and last none of them; and their numbers by key."""
    found = [PointTopic(topic.key, visible(topic.name, 80), "known", topic.colour) for topic in views.session.live]
    fitted = views.fitted
    if fitted is not None:
        free = list(zip(fitted.column_keys, fitted.names, strict=True))[fitted.n_known : -1]
        found += [PointTopic(key, visible(name, 80), "free", "") for key, name in free]
    found.append(PointTopic(OUTSIDE, NONE_OF_THESE if fitted else "Not fitted yet", "none", ""))
    return found, {topic.key: i for i, topic in enumerate(found)}


def _predicted(
    fitted: CurrentModel | None, rows: maps.Rows, index: Mapping[int | str, int]
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Main topics by the model, as numbers of topics; deleted topics count as none."""
    none = index[OUTSIDE]
    if fitted is None:
        return np.full(len(rows), none), np.zeros(len(rows), dtype=np.float32)
    judged = fitted.model.state_.judge(fitted.values[rows])
    column = judged.main()
    membership = np.take_along_axis(judged.values, column[:, None], axis=1)[:, 0]
    number = np.array([index.get(key, none) for key in fitted.column_keys])
    return number[column], membership
