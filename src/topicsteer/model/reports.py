"""The content of a report of a fitted model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from topicsteer.analysis.document_map import Layout
from topicsteer.analysis.effects import label_effects
from topicsteer.analysis.evaluate import Evaluation
from topicsteer.labels.topics_file import topic_columns
from topicsteer.model.breakdowns import breakdowns
from topicsteer.model.document_map import document_map
from topicsteer.report import page, pictures, workbook
from topicsteer.report.page import Example, ReportData
from topicsteer.system.types import Progress

if TYPE_CHECKING:
    from topicsteer.model.fitted_model import FittedModel

# Example documents per topic in a report.
EXAMPLES = 3
# A word is marked in an example if it contributes at least this share of the strongest word's contribution.
MARKED = 0.12


def report_data(
    model: FittedModel,
    *,
    title: str = "Topics",
    evaluation: Evaluation | None = None,
    by: str | Sequence[str] = (),
    shares: bool = False,
    map: bool | Layout = False,
    progress: Progress | None = None,
) -> ReportData:
    """The content of a report; see `FittedModel.report`."""
    columns = [by] if isinstance(by, str) else list(by)
    parts = breakdowns(model, columns, progress) if shares or columns else []
    state, estimator, examples = model.state_, model.estimator_, {}
    if model.documents_ is not None:
        for k, name in enumerate(state.topics.names):
            shown = [(i, model.explain_row(i)) for i in state.topics.top_rows(k, EXAMPLES)]
            examples[k] = [Example(state.topics.ids[i], e.text, e.strengths(name, MARKED)) for i, e in shown]
    settings = {"fingerprint of the documents": state.fingerprint, "world": _world(model)}
    if model.interrupted:
        settings["unfinished"] = "the fit was interrupted"
    settings |= {k: v for k, v in estimator.get_params().items() if k not in ("init", "topics")}
    return ReportData(
        title=title,
        topics=state.topics,
        examples=examples,
        guidance=label_effects(state.topics, state.supervision, state.profiles),
        evaluation=evaluation,
        settings=settings | model.vectorizer_.get_params(),
        history=estimator.objective_history_.tolist(),
        belief=model.belief,
        groups=[len(group) for group in state.free_groups],
        codebook=topic_columns(model.codebook),
        shares=parts,
        labelled=int(state.supervision.labelled.sum()),
        documents=document_map(model, None if isinstance(map, bool) else map, progress) if map else None,
    )


def write_report(
    model: FittedModel,
    path: str | Path,
    *,
    shares: bool | None = None,
    map: bool | Layout = True,
    svg: Path | None = None,
    **content: Any,
) -> list[Path]:
    """Write a page or a workbook, by the suffix of the path, and the charts to a folder; see `FittedModel.report`.

    Returns the files of the charts.
    """
    excel = Path(path).suffix == ".xlsx"
    if shares is None:
        shares = excel and model.documents_ is not None
    data = report_data(model, shares=shares, map=False if excel else map, **content)
    (workbook.write if excel else page.write)(data, path)
    return [] if svg is None else pictures.write(data, svg)


def _world(model: FittedModel) -> str:
    """The world, and who decided it."""
    declared = model.state_.parameters.get("world")
    believed = "open" if model.state_.believes_open else "closed"
    return f"{declared}, as declared" if declared else f"{believed}, not declared"
