"""Actions of people on the labels and topics of a session: each is planned under the lock, and done once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeAlias

from topicsteer.app.workbench.changes import Change
from topicsteer.app.workbench.event_log import Batch, Event
from topicsteer.system.renamed import warn_renamed

if TYPE_CHECKING:
    from topicsteer.app.workbench.session import LabelSession

Plan: TypeAlias = tuple[Batch, Sequence[Event]]
# All actions by the name that the page sends.
ACTIONS: dict[str, Callable[..., Change]] = {}
# Arguments of 0.1.0 and their names now.
RENAMED = {"topic": "key", "topics": "keys", "pinned": "keywords"}


def action(name: str) -> Callable[[Callable[..., Plan]], Callable[..., Change]]:
    """Turn a method that returns a plan into an action: under the lock, and once per request."""

    def decorate(plan: Callable[..., Plan]) -> Callable[..., Change]:
        @wraps(plan)
        def act(session: LabelSession, who: str, *, request: str | None = None, **values: Any) -> Change:
            values = _renamed(values)
            with session.lock:
                earlier = None if request is None else session.project.log.batch_of(request)
                if earlier is not None:
                    return Change(earlier, repeated=True)
                batch, events = plan(session, who, **values)
                return session.commit(batch._replace(request=request), events)

        ACTIONS[name] = act
        return act

    return decorate


def _renamed(values: Mapping[str, Any]) -> dict[str, Any]:
    """Accept the arguments of 0.1.0, with a warning."""
    for old in values.keys() & RENAMED.keys():
        warn_renamed(old, RENAMED[old])
    return {RENAMED.get(name, name): value for name, value in values.items()}
