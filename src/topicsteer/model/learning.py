"""From a task to its guide: flat topics or a tree, a closed or an open world, free topics inside others."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from topicsteer.estimator import TSNMF
from topicsteer.guidance.embeddings import Encoder
from topicsteer.guidance.guide import Guide
from topicsteer.guidance.keywords import TopicTexts, topic_texts
from topicsteer.guidance.open_world import free_topics, open_guide
from topicsteer.guidance.ridge import Choice, no_report
from topicsteer.guidance.sample import Sample
from topicsteer.guidance.train import train_guide
from topicsteer.guidance.tree import train_tree
from topicsteer.labels.codebook import Codebook
from topicsteer.labels.supervision import Supervision
from topicsteer.model.inside import Known, with_earlier_found
from topicsteer.model.settings import Settings
from topicsteer.nmf.protocols import Rows
from topicsteer.system.memory import release_memory
from topicsteer.system.types import Array, Progress, Report
from topicsteer.text import TextVectorizer

# Seed of the guide. It does not follow ``random_state``, so that known and free topics come back with any seed.
GUIDE_SEED = 0


@dataclass(frozen=True, eq=False)
class Task:
    """Input of one run of the pipeline.

    Parameters
    ----------
    rows, supervision, codebook, vectorizer
        The documents of the run, their labels, the known topics and the vectoriser.
    weight : array (n_rows,)
        Weight of each document.
    embeddings : array (n_rows, any), optional
        Embeddings of the documents.
    encode : callable, optional
        The encoder of these embeddings, for names and keywords.
    directions : array, optional
        Latent directions of an earlier guide.
    before : Guide, optional
        An earlier guide; its chosen settings are reused.
    begun : TSNMF, optional
        A fitted estimator to start from.
    joins : bool
        Whether the run continues ``begun`` by a partial fit, with the history of earlier documents.
    unguided : bool
        Whether ``begun`` was fitted without a guide.
    free_groups : tuple of tuples of int
        Groups of the earlier guide that make up each free topic.
    learnt : Guide, optional
        A guide that is used as it is.
    groups : tuple of tuples of int
        Classes of that guide that make up each known topic.
    earlier : pair of a Guide and its groups, optional
        The guide that knows the free topics inside others.
    names : TopicTexts, optional
        Texts about the topics. Like the next two, for several runs on the same documents.
    latent : array (n_rows, any), optional
        Latent semantics of the documents along ``directions``.
    choice : Choice, optional
        Settings of the ridge regression for flat topics.
    sample : Sample, optional
        The documents that the guide of flat topics is learnt from, if their features are to be shared with later steps.
    """

    rows: Rows
    supervision: Supervision
    codebook: Codebook
    vectorizer: TextVectorizer
    weight: Array
    embeddings: Array | None = None
    encode: Encoder | None = None
    directions: Array | None = None
    before: Guide | None = None
    begun: TSNMF | None = None
    joins: bool = False
    unguided: bool = False
    free_groups: tuple[tuple[int, ...], ...] = ()
    learnt: Guide | None = None
    groups: tuple[tuple[int, ...], ...] = ()
    earlier: tuple[Guide, tuple[tuple[int, ...], ...]] | None = None
    names: TopicTexts | None = None
    latent: Array | None = None
    choice: Choice | None = None
    sample: Sample | None = None

    def new_sample(self, threads: int | None) -> Sample:
        """The documents that a guide of flat topics is learnt from."""
        return Sample(self.rows, self.supervision, self.embeddings, self.directions, GUIDE_SEED, threads, self.latent)


def learn(settings: Settings, task: Task, report: Report = no_report) -> Guide | None:
    """Train the guide, and decide whether the world is open; None without labels and words about topics."""
    shared: dict[str, Any] = {
        "names": task.names or topic_texts(task.codebook, task.vectorizer.transform, task.encode),
        "embeddings": task.embeddings,
        "confidence": task.weight,
        "seed": GUIDE_SEED,
        "threads": settings.threads,
        "report": report,
    }
    before = task.before
    was_open = before is not None and before.open

    def in_open_world(closed: Guide, supervision: Supervision, **own: Any) -> Guide:
        if task.joins and not was_open:  # an update keeps the decision of the fit
            return closed
        return open_guide(
            task.rows,
            supervision,
            closed,
            world=settings.world,
            n_free=settings.wanted_free if isinstance(settings.wanted_free, int) else None,
            asked=settings.wants_free,
            previous=before,
            **shared | own,
        )

    if task.supervision.forest is not None:
        found = [k for k, topic in enumerate(task.codebook) if topic.found]
        rests = [k for k, name in enumerate(task.codebook.names) if str(name) in settings.free_inside]
        options = {"rests": rests, "directions": task.directions, "latent": task.latent, **shared}
        learnt = train_tree(task.rows, task.supervision, found, in_open_world, **options)
        if learnt is None or task.earlier is None or not found:
            return learnt
        return with_earlier_found(learnt, found, task.rows, *task.earlier, task.embeddings, settings.threads)
    X, labels, sample = task.rows, task.supervision, task.sample or task.new_sample(settings.threads)
    previous = None if was_open else before
    closed = train_guide(X, labels, sample=sample, previous=previous, choice=task.choice, **shared)
    release_memory()  # of scores in folds
    return None if closed is None else in_open_world(closed, labels, sample=sample)


def with_free_inside(settings: Settings, task: Task, progress: Progress | None) -> Task:
    """The task with a guide, and with the free topics inside others that it finds."""
    stage_progress("guide", progress)(0, None)
    guide = learn(settings, task, lambda step: stage_progress("guide", progress, step)(0, None))
    if guide is None:
        return task
    found = Known(task.codebook, task.supervision, guide).with_free_inside(
        task.rows,
        settings.free_inside,
        complete=settings.complete,
        embeddings=task.embeddings,
        seed=GUIDE_SEED,
        threads=settings.threads,
    )
    return replace(
        task,
        codebook=found.codebook,
        supervision=found.supervision,
        learnt=found.guide,
        free_groups=free_topics(found.guide, settings.wanted_free, task.rows.shape[0]),
    )


def stage_progress(stage: str, progress: Progress | None, detail: str = "") -> Callable[[int, int | None], None]:
    """A callback for one stage."""

    def report(done: int, total: int | None) -> None:
        if progress is not None:
            progress(stage, done, total, detail)

    return report
