"""Import the topics of a topics file into a session."""

from dataclasses import replace

from topicsteer.app.workbench import text_rules
from topicsteer.app.workbench.changes import Change
from topicsteer.app.workbench.event_log import Batch, Event, Topic
from topicsteer.app.workbench.session import LabelSession
from topicsteer.labels.codebook import Codebook


def import_topics(session: LabelSession, who: str, topics: Codebook, *, source: str) -> Change:
    """Create missing topics, and add descriptions and words to existing ones; one undo takes all back.

    An existing topic keeps its own description and parent. A word that is banned and a keyword stays a keyword.
    """
    with session.lock:
        by_name = {topic.name.casefold(): topic for topic in session.live}
        events, before = list[Event](), dict[str, Topic | None]()
        for given in topics:
            name = text_rules.topic_name(str(given.name))
            old = by_name.get(name.casefold())
            start = old or session.unused_topic(name, len(by_name))
            keywords = text_rules.words((*start.keywords, *given.keywords))
            banned = tuple(w for w in text_rules.words((*start.banned, *given.banned)) if w not in keywords)
            about = start.description or text_rules.description(given.description)
            by_name[name.casefold()] = replace(start, description=about, keywords=keywords, banned=banned)
            before[name.casefold()] = old
        parents = topics.parent_names
        for given in topics:
            name = text_rules.topic_name(str(given.name)).casefold()
            new, old = by_name[name], before[name]
            if new.parent is None and (above := parents.get(str(given.name))) is not None:
                new = replace(new, parent=by_name[text_rules.topic_name(str(above)).casefold()].key)
            events += [Event.of_topic(old, new)] if new != old else []
        return session.commit(Batch(who, f"topics of {source}"), events)
