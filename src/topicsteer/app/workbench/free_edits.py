"""Edits of free topics on the fitted model, without a fit: make known, merge, split, more or fewer."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from typing import Any

from topicsteer.app.workbench import fit_messages as messages
from topicsteer.app.workbench.answers import FitStatus, Key
from topicsteer.app.workbench.changes import Change
from topicsteer.app.workbench.current_model import CurrentModel
from topicsteer.app.workbench.errors import Conflict, Invalid
from topicsteer.app.workbench.fit_process import FitProcess
from topicsteer.app.workbench.project import Project
from topicsteer.app.workbench.selection import fitted_or_refuse
from topicsteer.app.workbench.session import LabelSession
from topicsteer.app.workbench.text_features import TextFeatures
from topicsteer.app.workbench.views import Views
from topicsteer.system.files import Scratch

# Documents of a free topic that are proposed as labels.
PROPOSED = 10
# Greatest number of parts of a known topic.
MOST_PARTS = 50


class FreeEdits:
    """Edits of free topics, which `Workbench` inherits."""

    project: Project
    features: TextFeatures
    session: LabelSession
    views: Views
    fitter: FitProcess
    temporary: Scratch
    # Description of the model that is being fitted or edited.
    pending: dict[str, Any]
    announce: Callable[[str, Change], None]
    describe: Callable[[dict[str, Any]], None]
    set_status: Callable[[FitStatus], None]

    def adopt(self, who: str, key: str, *, name: str, description: str = "") -> int:
        """Make a free topic known and propose its surest documents as labels; return the key of the new topic.

        No document is labelled. If the model can be edited, it has the topic at once, else after the next fit. A free
        topic inside a known one stays below it.
        """
        fitted = fitted_or_refuse(self.views.fitted)
        column, number = fitted.free_column(key), fitted.free_number(key)
        above = fitted.parents[number]
        parent = None if above is None else int(fitted.key_of(above))
        with self.session.lock:
            parent = parent if parent in self.session.tree.parents else None  # it may have been deleted
            change = self.session.new_topic(who, name=name, description=description, parent=parent)
            topic = max(self.session.live, key=lambda topic: topic.key)
        self._propose(topic.key, fitted.surest(key, PROPOSED))
        if fitted.in_groups[number] or parent is not None:
            made = f"“{topic.name}” is a known topic now. Confirm some of its documents."
            # Known topics are in the order of their columns. A free topic at the top becomes the last of them.
            order = [*fitted.column.items(), (topic.key, fitted.n_known if parent is None else column)]
            keys = [known for known, _ in sorted(order, key=lambda one: one[1])]
            self._edit(fitted, messages.AdoptFree(column, topic.name, topic.key), keys, made)
        if parent is not None:
            self._set_inside(who, parent, self.session.settings.free_inside.get(str(parent), 1) - 1)
        self.announce(who, change)
        return topic.key

    def merge_free(self, key: str, into: Key) -> None:
        """Merge a free topic into another topic; its surest documents are proposed as labels of a known one."""
        fitted = fitted_or_refuse(self.views.fitted)
        column, name = fitted.free_column(key), fitted.result.names[fitted.free_column(key)]
        grouped = bool(fitted.in_groups[fitted.free_number(key)])
        if isinstance(into, str):
            edit = messages.MergeFree(column, fitted.free_column(into))
            if edit.into == column:
                raise Invalid("Choose another topic to merge it with.")
            if {column, edit.into} & {*fitted.result.found}:
                raise Conflict("Free topics inside a topic cannot be merged: make them known first.")
            self._edit_or_refuse(fitted, edit, f"“{name}” was merged into another free topic.")
            return
        topic = self.session.topic(into)
        self._propose(topic.key, fitted.surest(key, PROPOSED))
        if grouped and topic.key in fitted.column:
            edit = messages.MergeFree(column, fitted.column[topic.key])
            self._edit(fitted, edit, fitted.keys, f"“{name}” was merged into “{topic.name}”. Confirm some documents.")

    def split_free(self, key: str) -> None:
        """Split a free topic into its two parts."""
        fitted = fitted_or_refuse(self.views.fitted)
        column = fitted.free_column(key)
        if fitted.in_groups[fitted.free_number(key)] < 2:
            raise Conflict("This free topic has no parts.")
        edit = messages.SplitTopic(column, 2)
        self._edit_or_refuse(fitted, edit, f"“{fitted.result.names[column]}” was split.")

    def split_known(self, key: int, parts: int) -> None:
        """Find free topics inside a known topic; all other topics stay as they are. Later fits look for them too."""
        fitted, topic = fitted_or_refuse(self.views.fitted), self.session.topic(key)
        if not 2 <= parts <= MOST_PARTS:
            raise Invalid(f"A topic is split into 2 to {MOST_PARTS} parts, not {parts}.")
        if key not in fitted.column:
            raise Conflict(f"“{topic.name}” is not part of a fit yet. Fit first.")
        inside = [
            k for k, above in zip(fitted.free_columns, fitted.parents, strict=True) if above == fitted.column[key]
        ]
        if inside:
            raise Conflict(
                f"“{topic.name}” is split already. Make its {len(inside)} free topics known, then split again."
            )
        edit = messages.SplitTopic(fitted.column[key], parts)
        made = f"“{topic.name}” was split. All other topics stay as they are."
        self._edit_or_refuse(fitted, edit, made, split=[key, parts])

    def cut_free(self, who: str, number: int) -> None:
        """Set the number of free topics, and show at most that many at once if the model has groups of documents."""
        fitted = self.views.fitted
        self.session.settings.changed({"free_topics": number})  # refuses a wrong number before anything is done
        if fitted is not None and any(fitted.in_groups) and number:
            self._edit_or_refuse(fitted, messages.CutFree(number), f"At most {number:,} free topics are shown.")
        self.announce(who, self.session.change_settings(who, free_topics=number))

    def free_inside(self) -> dict[str, int]:
        """Return the number of free topics inside existing topics, by their names."""
        found = self.session.settings.free_inside.items()
        return {self.session.topics[int(key)].name: n for key, n in found if int(key) in self.session.tree.parents}

    def keep_free_inside(self) -> None:
        """Remember that the next fits look for the parts of a topic that was split."""
        if (split := self.pending.pop("split", None)) is not None:
            self._set_inside("workbench", *split)

    def _set_inside(self, who: str, key: int, number: int) -> None:
        rest = {other: n for other, n in self.session.settings.free_inside.items() if other != str(key)}
        self.session.change_settings(who, free_inside=rest | ({str(key): number} if number > 0 else {}))

    def _propose(self, key: int, rows: list[int]) -> None:
        """Put documents at the beginning of the queue of a topic."""
        proposed = self.views.fitted.meta.get("proposed", {}) if self.views.fitted else {}
        self.describe({"proposed": proposed | {str(key): rows}})

    def _edit_or_refuse(self, fitted: CurrentModel, edit: messages.Edit, change: str, **more: object) -> None:
        if not self._edit(fitted, edit, fitted.keys, change, **more):
            raise Conflict("A fit is running. Wait for its end, then try again.")

    def _edit(
        self, fitted: CurrentModel, edit: messages.Edit, keys: Sequence[int], change: str, **more: object
    ) -> bool:
        """Start an edit of the model's free topics; return False if a fit is running."""
        order = messages.EditOrder(
            project=str(self.project.path.resolve()),
            folder=tempfile.mkdtemp(dir=self.temporary.path),
            previous=str(fitted.folder),
            keys=fitted.keys,
            edit=edit,
            embeddings=self.features.embeddings,
        )
        if not self.fitter.start(order):
            return False
        self.pending = {"keys": list(keys), "changes": [change], "edited": True, **more}
        self.set_status(FitStatus("fitting", "edit"))
        return True
