"""The public names of topicsteer; the reference documents them."""

# Public names by module. All other names may change without notice.
PUBLIC = {
    "topicsteer": "TSNMF TopicModel __version__",
    "topicsteer.corpora": "Documents Labels LabelRecord ReadOptions ReadReport BadRow EmptyTable ReadError "
    "UnclearLabels TableStream read_documents read_table read_folder read_labels attach_labels example_table "
    "load_docstrings",
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
    "topicsteer.report.plots": "shares",
    "topicsteer.backends.block_folder": "BlockFolder BlockWriter",
}
