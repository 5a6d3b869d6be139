"""Topics that follow your labels: topic-supervised non-negative matrix factorisation."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from topicsteer.estimator import TSNMF
    from topicsteer.model.topic_model import TopicModel

__version__ = "0.2.0"
__all__ = ["TSNMF", "TopicModel", "__version__"]

# Public names by module. All other names may change without notice.
PUBLIC = {
    "topicsteer": "TSNMF TopicModel __version__",
    "topicsteer.corpora": "Documents Labels LabelRecord ReadOptions ReadReport BadRow EmptyTable ReadError TableStream "
    "read_documents read_table read_folder read_labels attach_labels example_table load_docstrings",
    "topicsteer.text": "TextVectorizer stop_words",
    "topicsteer.labels.codebook": "Codebook Topic",
    "topicsteer.metrics": "average_precision precision_recall",
    "topicsteer.model.edits": "Edits",
    "topicsteer.model.labelling": "LabelHelp",
    "topicsteer.model.findings": "Findings",
    "topicsteer.model.spool": "Spool spool",
    "topicsteer.model.settings": "read_topics write_topics",
    "topicsteer.analysis.topics": "Topics",
    "topicsteer.analysis.agreement": "Estimate agreement cohen_kappa krippendorff_alpha",
    "topicsteer.analysis.explain": "Explanation",
    "topicsteer.analysis.evaluation": "Evaluation",
    "topicsteer.report.plots": "shares term_bars",
    "topicsteer.backends.block_folder": "BlockFolder BlockWriter",
}
# The modules that define the names of the top level.
_HOME = {"TSNMF": "topicsteer.estimator", "TopicModel": "topicsteer.model.topic_model"}


def __getattr__(name: str) -> object:
    """Load a public name on first use, so that ``import topicsteer`` is quick."""
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
