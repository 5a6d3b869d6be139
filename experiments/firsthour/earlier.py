"""Fit an earlier version of topicsteer by its public names: `python earlier.py JOB.json MEMBERSHIPS.npy`.

The environment decides which version is imported, so this file imports nothing of the experiments.
"""

import json
import sys
import warnings
from pathlib import Path

import numpy as np

from topicsteer import TSNMF, TopicModel


def main(job: str, out: str) -> None:
    """Fit to the texts, labels and topics of a job, and write the memberships of the known topics."""
    warnings.simplefilter("ignore")
    given = json.loads(Path(job).read_text(encoding="utf-8"))
    labels = {int(row): names for row, names in given["labels"].items()}
    estimator = TSNMF(max_iter=1)  # memberships come from the guide
    model = TopicModel(0, topics=given["topics"], estimator=estimator, random_state=given["seed"], threads=1)
    np.save(out, np.asarray(model.fit(given["texts"], labels).memberships_))


if __name__ == "__main__":
    main(*sys.argv[1:])
