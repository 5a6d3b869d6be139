"""Topics that follow your labels: topic-supervised non-negative matrix factorisation."""

import gc
import sys
import warnings
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from topicsteer.estimator import TSNMF
    from topicsteer.model.topic_model import TopicModel

__version__ = "0.2.0"
__all__ = ["TSNMF", "TopicModel", "__version__"]

# Public names by module. All other names may change without notice.
PUBLIC = {
    "topicsteer": "TSNMF TopicModel __version__",
    "topicsteer.corpora": "Documents Labels LabelRecord ReadOptions ReadReport BadRow EmptyTable ReadError TableStream "
    "CORPORA Corpus read_documents read_table read_folder read_labels attach_labels fetch find_corpus "
    "load_docstrings load_medline load_newsgroups load_reuters",
    "topicsteer.text": "TextVectorizer stop_words",
    "topicsteer.labels.codebook": "Codebook Topic",
    "topicsteer.metrics": "average_precision calibration Calibration coherence compare_topics diversity "
    "hierarchical_precision_recall Matching match_topics precision_recall scale_weights stability weighted_jaccard",
    "topicsteer.model.spool": "Spool open_spool spool",
    "topicsteer.model.topics_file": "read_topics write_topics",
    "topicsteer.analysis.topics": "Topics",
    "topicsteer.analysis.goals": "Goal",
    "topicsteer.analysis.compare": "Comparison",
    "topicsteer.analysis.agreement": "Estimate agreement cohen_kappa krippendorff_alpha",
    "topicsteer.analysis.explain": "Explanation",
    "topicsteer.analysis.evaluate": "Evaluation",
    "topicsteer.analysis.effects": "label_effects",
    "topicsteer.report.plots": "topic_map term_bars topics_by_group",
    "topicsteer.backends.block_folder": "BlockFolder BlockWriter",
}
# Module paths of 0.1.0 and their new paths. The old ones warn, and go with 0.3.
MOVED = {
    "topicsteer.spool": "topicsteer.model.spool",
    "topicsteer.topics": "topicsteer.analysis.topics",
    "topicsteer.explain": "topicsteer.analysis.explain",
    "topicsteer.evaluation": "topicsteer.analysis.evaluate",
    "topicsteer.effect": "topicsteer.analysis.effects",
    "topicsteer.plots": "topicsteer.report.plots",
    "topicsteer.blockfolder": "topicsteer.backends.block_folder",
    "topicsteer.supervision": "topicsteer.labels.forms",
    "topicsteer.app.session": "topicsteer.app.workbench.session",
    "topicsteer.app.project": "topicsteer.app.workbench.project",
}
# The modules that define the names of the top level.
_HOME = {"TSNMF": "topicsteer.estimator", "TopicModel": "topicsteer.model.topic_model"}


def __getattr__(name: str) -> object:
    """Load a public name on first use, so that ``import topicsteer`` is quick."""
    if name in _HOME:
        return getattr(_imported(_HOME[name]), name)
    if f"{__name__}.{name}" in MOVED:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _imported(module: str) -> ModuleType:
    """The module. An import makes no garbage, and a search for it would take a tenth of the time."""
    collects = gc.isenabled()
    gc.disable()
    try:
        return import_module(module)
    finally:
        if collects:
            gc.enable()


class _Moved:
    """Import hook for the module paths of 0.1.0."""

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
        own: Any = self
        return ModuleSpec(fullname, own) if fullname in MOVED else None

    def create_module(self, spec: ModuleSpec) -> None:
        """Let Python create an ordinary module."""

    def exec_module(self, module: ModuleType) -> None:
        new = MOVED[module.__name__]
        warnings.warn(f"{module.__name__} is {new} now; the old path goes with 0.3.", DeprecationWarning, stacklevel=2)
        vars(module).update({name: value for name, value in vars(import_module(new)).items() if name[:2] != "__"})


sys.meta_path.append(_Moved())
