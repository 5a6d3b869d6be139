"""Read-only answers for the page "Progress": map, learning curve, advice, topics by group."""

from dataclasses import asdict

from topicsteer.app.workbench.answers import (
    CurvePoint,
    MapLabel,
    MapTopic,
    ProgressPage,
    TopicMap,
)
from topicsteer.app.workbench.views import Views
from topicsteer.report.topic_layout import lay_out
from topicsteer.system.safe_text import visible

# Width and height of the map on a wide screen and on a phone.
WIDE, NARROW = (1040, 560), (360, 430)
# Labels that each topic needs before a fit is advised.
FEWEST = 3


def progress_page(views: Views, narrow: bool) -> ProgressPage:
    """Return the whole page."""
    return ProgressPage(
        map=topic_map(views, *NARROW if narrow else WIDE),
        curve=learning_curve(views),
        coverage=views.topics().known,
        advice=advice(views),
        columns=list(views.project.groups),
    )


def learning_curve(views: Views) -> list[CurvePoint]:
    """Return one point per evaluated fit; the first fit also shows the points with a part of its labels."""
    found = ((at, meta.get("judged")) for _, at, meta in views.project.models.finished())
    judged = [(at, dict(scores)) for at, scores in found if isinstance(scores, dict)]
    parts = [scores.pop("points", []) for _, scores in judged]
    first = [CurvePoint(judged[0][0], topics=judged[0][1]["topics"], **point) for point in parts[0]] if parts else []
    return first + [CurvePoint(at, **scores) for at, scores in judged]


def advice(views: Views) -> str:
    """Return advice on the next step."""
    session, fitted = views.session, views.fitted
    live, curve = session.live, learning_curve(views)
    if not live:
        return (
            "Create at least two topics and label a few documents of each. Or fit first and name the topics it finds."
        )
    if fitted is None and not any(session.counts.values()):
        return "Fit now: names and keywords find the first documents of each topic. Then label a few of each."
    bare = [topic.name for topic in live if session.counts[topic.key] < FEWEST]
    if bare:
        names = ", ".join(bare[:5]) + (f" and {len(bare) - 5} more" if len(bare) > 5 else "")
        return f"These topics have fewer than three labels: {names}. Search for their documents and label some."
    if fitted is None:
        return "Fit now: the topics will follow your labels, and suggestions will be ready."
    if fitted.meta.get("outlook"):
        return str(fitted.meta["outlook"])
    if len(curve) >= 4:
        last, before = curve[-1], curve[-4]
        growth = last.documents / max(before.documents, 1)
        if growth >= 1.2 and last.micro - before.micro < 0.01:
            return (
                f"More labels no longer help: from {before.documents} to {last.documents} labelled documents, "
                f"agreement with hidden labels went from {before.micro:.0%} to {last.micro:.0%}. "
                "Check the labels that look wrong, or stop here."
            )
    if curve and curve[-1].micro < 0.6:
        return "The model does not yet find hidden labels well. Continue with the suggested documents."
    return "Continue with the suggested documents: they help most."


def topic_map(views: Views, width: int, height: int) -> TopicMap:
    """Return the circles and names of the topic map, without deleted topics."""
    fitted = views.shown
    if fitted is None or len(fitted.result) < 2:
        return TopicMap([], width, height)
    topics = fitted.renamed(views.session.topics)
    drawn = lay_out(topics, width, height, longest=30 if width > 500 else 18)
    listed = []
    for k, (centre, radius, label) in enumerate(zip(drawn.centres, drawn.radii, drawn.labels, strict=True)):
        key = fitted.key_of(k)
        topic = views.session.topics[key] if isinstance(key, int) else None
        if topic is not None and topic.gone:
            continue
        x, y, r = (round(float(value), 1) for value in (*centre, radius))
        colour, share = topic.colour if topic else "", round(float(topics.share[k]), 4)
        name = None if label is None else MapLabel(**asdict(label))
        listed.append(MapTopic(key, visible(topics.names[k], 100), x, y, r, colour, share, name))
    return TopicMap(listed, width, height)
