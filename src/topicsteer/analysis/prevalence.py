"""Shares of topics as a result: tables of shares, differences and trends, and sentences about their assumptions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topicsteer.analysis.estimates import ROWS, SUSPICIOUS, Estimates, Predictions, TreeColumns, estimate, indicator
from topicsteer.analysis.groups import DAYS, Groups
from topicsteer.analysis.sampling import Sample, mover, z_value
from topicsteer.analysis.table_columns import Column
from topicsteer.labels.forest import Forest
from topicsteer.labels.supervision import Kind
from topicsteer.nmf.blocks import slices
from topicsteer.system.types import Array
from topicsteer.system.values import ALL, NONE

# Beginning of a sentence that puts the shares in doubt.
WARNING = "Warning:"
# Groups with fewer labels drawn by chance are named as imprecise.
FEW_LABELS = 10
# Groups up to this number are compared in pairs; more are compared with the largest of them.
PAIRS = 10
# Topics and groups that a sentence names at most.
NAMED = 5
# Columns of the tables, for terminal and pages.
COLUMNS = (
    Column("topic"),
    Column("group"),
    Column("share", "share", "estimated share of the documents that have the topic"),
    Column("low", "share", "lower end of the interval"),
    Column("high", "share", "upper end of the interval"),
    Column("documents", "count", "documents of the group"),
    Column("labels", "count", "labelled documents of the group"),
    Column("plain", "share", "plain average of the memberships, which is biased"),
    Column("worth", "number", "labels that would be needed without predictions, relative to the present number"),
    Column("difference", "share", "share in the group minus share in the other group"),
    Column("change", "share", "change of the share per period"),
)

Table = dict[str, list[Any]]
# Arrays of a `Prevalence` with one row per group and one column per topic.
ARRAYS = ("share", "low", "high", "plain", "worth", "labels", "drawn", "variance")


@dataclass(frozen=True, eq=False)
class Prevalence:
    """Shares of topics in a corpus and in its groups, with intervals.

    Parameters
    ----------
    topics : tuple of str
        Known topics, free topics and ``(none)``.
    groups : tuple of str
        ``(all)``, followed by the groups.
    by : Groups or None
        The groups of the documents.
    share, low, high, plain, worth : array (n_groups, n_topics)
        Shares, ends of their intervals, plain averages of memberships, and worth of the predictions.
        Topics without labels have no interval: their share is the plain average, and the ends are NaN.
    documents : array of int (n_groups,)
        Number of documents.
    labels, drawn : array of int (n_groups, n_topics)
        Number of labelled documents, and of labelled documents drawn by chance.
    variance : array (n_groups, n_topics)
        Variance of one label after the correction by predictions, relative to a label alone.
    level : float
        Confidence level.
    sentences : tuple of str
        Assumptions and warnings.
    rests : tuple of str
        The rests among the topics: documents with a topic of a tree, and nothing below it.
    """

    topics: tuple[str, ...]
    groups: tuple[str, ...]
    by: Groups | None
    share: Array
    low: Array
    high: Array
    plain: Array
    worth: Array
    documents: NDArray[np.int64]
    labels: NDArray[np.int64]
    drawn: NDArray[np.int64]
    variance: Array
    level: float
    sentences: tuple[str, ...] = ()
    rests: tuple[str, ...] = ()

    def __repr__(self) -> str:
        by = "" if self.by is None else f" in {len(self.groups) - 1:,} groups by {self.by.column}"
        return f"<Prevalence: {len(self.topics):,} topics of {self.documents[0]:,} documents{by}; see table()>"

    def take(self, columns: Sequence[int]) -> Prevalence:
        """Return the shares of some topics, by their numbers."""
        fewer: dict[str, Any] = {name: getattr(self, name)[:, columns] for name in ARRAYS}
        topics = tuple(self.topics[k] for k in columns)
        return replace(self, topics=topics, rests=tuple(name for name in self.rests if name in topics), **fewer)

    def without_rests(self) -> Prevalence:
        """Return the shares of topics and of none, without the rests of topics."""
        return self.take([k for k, name in enumerate(self.topics) if name not in self.rests])

    def overall(self) -> Prevalence:
        """Return the shares of all documents, without groups."""
        fewer: dict[str, Any] = {name: getattr(self, name)[:1] for name in (*ARRAYS, "documents")}
        notes = () if self.by is None else self.by.notes
        sentences = tuple(sentence for sentence in self.sentences if sentence not in notes)
        return replace(self, groups=self.groups[:1], by=None, sentences=sentences, **fewer)

    def table(self) -> Table:
        """Return one row per topic and group: topic, group, share, low, high, documents, labels, plain, worth."""
        pairs = [(k, g) for k in range(len(self.topics)) for g in range(len(self.groups)) if self.documents[g]]
        table: Table = {"topic": [self.topics[k] for k, _ in pairs], "group": [self.groups[g] for _, g in pairs]}
        for name in ("share", "low", "high", "documents", "labels", "plain", "worth"):
            values = np.broadcast_to(getattr(self, name).T, self.share.T.shape)  # documents are the same for all topics
            table[name] = [None if np.isnan(values[pair]) else values[pair].item() for pair in pairs]
        return table

    def differences(self, pairs: Sequence[tuple[str, str]] | None = None) -> Table:
        """Return differences of shares between groups, with intervals by MOVER.

        Parameters
        ----------
        pairs : sequence of pairs of groups, optional
            Default: each period and the one before; or all pairs of at most ten groups; or all groups against the
            largest one.

        Returns
        -------
        dict of columns
            topic, group, other, difference (share in the group minus share in the other), low, high, clear (whether the
            interval excludes 0).
        """
        number = {name: g for g, name in enumerate(self.groups)}
        for name in (name for pair in pairs or () for name in pair):
            if name not in number:
                raise ValueError(f"there is no group {name!r}; the groups are: {', '.join(self.groups)}.")
        chosen = self._pairs() if pairs is None else [(number[a], number[b]) for a, b in pairs]
        table: Table = {name: [] for name in ("topic", "group", "other", "difference", "low", "high", "clear")}
        for k in np.flatnonzero(~np.isnan(self.low[0])):
            for a, b in chosen:
                both = [a, b]
                found = mover(self.share[both, k], self.low[both, k], self.high[both, k], [1, -1])
                _append(table, found, topic=self.topics[k], group=self.groups[a], other=self.groups[b])
        return table

    def _pairs(self) -> list[tuple[int, int]]:
        filled = [g for g in range(1, len(self.groups)) if self.documents[g]]
        if self.by is not None and self.by.period is not None:
            timed = [g for g in filled if g <= len(self.by.starts)]
            return list(zip(timed[1:], timed[:-1], strict=True))
        if len(filled) <= PAIRS:
            return [(a, b) for i, a in enumerate(filled) for b in filled[i + 1 :]]
        largest = max(filled, key=lambda g: self.documents[g])
        return [(g, largest) for g in filled if g != largest]

    def trend(self) -> Table:
        """Return the mean change of each share per period, by a line through the shares, with intervals by MOVER.

        Periods with more labels count more. Only for groups by time.

        Returns
        -------
        dict of columns
            topic, per (the period), change, low, high, clear (whether the interval excludes 0).
        """
        if self.by is None or self.by.period is None:
            raise ValueError("a trend needs groups by time: pass by='date:month', with a column of dates.")
        table: Table = {name: [] for name in ("topic", "per", "change", "low", "high", "clear")}
        days = np.array([day.toordinal() for day in self.by.starts], dtype=np.float64)
        groups = np.arange(1, len(days) + 1)
        if len(days) < 2:
            return table
        for k in np.flatnonzero(~np.isnan(self.low[0])):
            weight = self.drawn[groups, k] + 1.0
            centred = days - np.average(days, weights=weight)
            slope = weight * centred / (weight * centred**2).sum() * DAYS[self.by.period]
            found = mover(self.share[groups, k], self.low[groups, k], self.high[groups, k], slope)
            _append(table, found, "change", topic=self.topics[k], per=self.by.period)
        return table

    def needed_labels(self, precision: float) -> Table:
        """Return the random labels that are still needed until each interval is at most ± this wide.

        Parameters
        ----------
        precision : float
            Half of the width of an interval, such as 0.02 for two percentage points.

        Returns
        -------
        dict of columns
            topic, half (present half of the width), more (number of further labels, drawn at random).
        """
        if not 0 < precision < 1:
            raise ValueError(f"precision is {precision}: expected a share such as 0.02, for ± 2 percentage points.")
        table: Table = {"topic": [], "half": [], "more": []}
        n, z = int(self.documents[0]), z_value(self.level)
        for k in np.flatnonzero(~np.isnan(self.low[0])):
            half = float(self.high[0, k] - self.low[0, k]) / 2
            spread = max(self.share[0, k] * (1 - self.share[0, k]), 1e-9) * self.variance[0, k]
            wanted = 1 / ((precision / z) ** 2 / spread + 1 / n)
            more = 0 if half <= precision else max(int(np.ceil(wanted - self.drawn[0, k])), 1)
            for name, value in (("topic", self.topics[k]), ("half", half), ("more", more)):
                table[name].append(value)
        return table

    def advice(self, precision: float) -> str:
        """Return the number of random labels that all intervals need for a given width, in one sentence."""
        table, points = self.needed_labels(precision), f"±{100 * precision:g} points"
        if not table["more"]:
            return f"{points} cannot be planned: no topic has labels that were drawn at random."
        worst = int(np.argmax(table["more"]))
        more = table["more"][worst]
        if not more:
            return f"{points} is reached for every topic."
        done = sum(count == 0 for count in table["more"])
        rounded = max(10 * round(more / 10), 10)
        return (
            f"{points} needs about {rounded:,} more random labels for {table['topic'][worst]!r}; "
            f"{done} of {len(table['more'])} topics have it already."
        )


def _append(table: Table, found: tuple[Array, Array, Array], name: str = "difference", **texts: str) -> None:
    value, low, high = map(float, found)
    row = texts | {name: value, "low": low, "high": high, "clear": bool(low > 0 or high < 0)}
    for column, cell in row.items():
        table[column].append(cell)


def prevalence(
    topics: Sequence[str],
    n_known: int,
    sample: Sample,
    predictions: Sequence[Predictions],
    memberships: Array,
    groups: Groups | None = None,
    weights: Array | None = None,
    level: float = 0.95,
    none: bool = True,
    tree: TreeColumns | None = None,
) -> Prevalence:
    """Return shares of all topics.

    Parameters
    ----------
    topics : sequence of str
        Names of the columns of the memberships: known topics, free topics and ``(none)``.
    n_known : int
        Number of known topics.
    sample : Sample
        The labelled documents; its labels have one column per known topic and one for ``(none)``.
    predictions : sequence of Predictions
        Predictions, with the same columns as the labels.
    memberships : array (n_documents, n_topics)
        The memberships of the model, for plain averages.
    groups : Groups, optional
    weights : array (n_documents,), optional
        Survey weights.
    level : float, default=0.95
        Confidence level.
    none : bool, default=True
        Whether documents may have none of the topics; otherwise ``(none)`` is left out.
    tree : TreeColumns, optional
        The tree of the topics: shares then add up, and each topic with others below it has a rest.
    """
    v = np.ones(len(memberships)) if weights is None else np.asarray(weights, dtype=np.float64)
    tree = tree or TreeColumns(Forest((-1,) * n_known))
    found = estimate(sample, predictions, groups, v, level, tree)
    inside = groups or Groups.none(len(v))
    n_groups = len(inside.names)
    rests = tree.names(topics)
    totals, plain = np.zeros(n_groups + 1), np.zeros((n_groups + 1, len(topics) + len(rests)))
    places = [*range(n_known), *range(len(topics) - 1, plain.shape[1])]  # columns with labels
    for rows in slices(len(v), ROWS):
        which = indicator(inside.codes[rows], n_groups, v[rows])
        block = np.asarray(memberships[rows], dtype=np.float64)
        plain += which @ tree.predictions(block)
        totals += np.asarray(which.sum(axis=1)).ravel()
    plain /= np.maximum(totals, 1e-300)[:, None]
    share = np.where(np.isnan(found.low), plain[:, places], found.share)
    low, high = found.low.copy(), found.high.copy()
    tree.add_up(sample.labels, share, low, high)

    def widened(values: NDArray[Any], missing: Any) -> Any:
        every = np.broadcast_to(np.asarray(missing), plain.shape).astype(values.dtype)
        every[:, places] = values
        return every

    result = Prevalence(
        (*topics, *rests),
        (ALL, *inside.names),
        groups,
        share=widened(share, plain),
        low=widened(low, np.nan),
        high=widened(high, np.nan),
        plain=plain,
        worth=widened(found.worth, np.nan),
        documents=np.concatenate([[len(v)], inside.counts]),
        labels=widened(found.labels, 0),
        drawn=widened(found.drawn, 0),
        variance=widened(found.variance, 1.0),
        level=level,
        rests=tuple(rests),
    )
    result = replace(result, sentences=tuple(_sentences(result, sample, found, n_known, tree)))
    kept = [k for k in tree.order(len(topics)).tolist() if none or k != len(topics) - 1]
    return result.take(kept)


# --- sentences ---


def _sentences(result: Prevalence, sample: Sample, found: Estimates, n_known: int, tree: TreeColumns) -> list[str]:
    """Return assumptions and warnings."""
    lines = [_assumption(sample)]
    names = [*result.topics[:n_known], NONE]
    if sample.by_chance.any():
        doubts = np.abs(found.doubts[: len(names)])
        apart = [k for k in np.argsort(-doubts) if doubts[k] > SUSPICIOUS]
        if apart:
            listed = _listed([f"{names[k]} ({'too many' if found.doubts[k] > 0 else 'too few'})" for k in apart])
            lines.append(
                f"{WARNING} the labelled documents do not look like the others. By the predictions, they have {listed}."
                " The shares are probably wrong. Draw documents with suggest --how prevalence, and label them."
            )
    unknown = [names[k] for k in np.flatnonzero(found.drawn[0, :n_known] == 0) if sample.by_chance.any()]
    if unknown:
        lines.append(f"No interval for {_listed(unknown)}: no label drawn by chance decides whether a document has it.")
    partly = np.isnan(sample.labels[:, :n_known]).any(axis=0) & (found.drawn[0, :n_known] > 0)
    lower = np.array(tree.forest.parents) >= 0
    for which, others in ((partly & ~lower, "the others"), (partly & lower, "the others with the same topic above")):
        if which.any():
            lines.append(
                f"Labels are incomplete for {_listed([names[k] for k in np.flatnonzero(which)])}: documents with "
                f"unknown labels are assumed to be like {others}."
            )
    if several := set(tree.below) - set(tree.excluding(sample.labels)):
        lines.append(
            f"Documents may have several topics below {_listed([names[k] for k in sorted(several)])}: the shares below "
            "then add up to more."
        )
    if len(result.topics) - len(result.rests) > n_known + 1:
        lines.append("Free topics have no labels: their shares are plain averages without an interval.")
    drawn = found.drawn.max(axis=1, initial=0)
    few = [
        f"{name} ({drawn[g]})"
        for g, name in enumerate(result.groups)
        if g and drawn[g] < FEW_LABELS and result.documents[g]
    ]
    if few:
        lines.append(f"Groups with few labels drawn by chance have wide intervals: {_listed(few)}.")
    return [*lines, *(result.by.notes if result.by else ())]


def _assumption(sample: Sample) -> str:
    """Return the assumption about the origin of the labels."""
    kind = sample.origin.kind
    n = {name: int((kind == name).sum()) for name in Kind}
    if not len(kind):
        return "There are no labels: all shares are plain averages without an interval."
    if n[Kind.UNKNOWN] == len(kind):
        return (
            f"How the {len(kind):,} labelled documents were chosen is not known: it is assumed that they were drawn at "
            "random from all documents."
        )
    if not sample.by_chance.any():
        return "No label was drawn by chance, so there are no intervals: label some documents at random."
    how = {Kind.RANDOM: "drawn at random", Kind.DOUBT: "drawn by doubt with known probability"}
    parts = [f"{n[kind]:,} {text}" for kind, text in how.items() if n[kind]]
    alone = n[Kind.SUGGESTED] + n[Kind.UNKNOWN]
    text = f"Labels: {' and '.join(parts)}"
    if alone:
        text += f"; {alone:,} others were chosen in another way and stand for themselves alone"
    return f"{text}."


def _listed(names: Sequence[str]) -> str:
    """Return names in a sentence, not too many of them."""
    more = len(names) - NAMED
    return ", ".join(names[:NAMED]) + (f" and {more:,} more" if more > 0 else "")
