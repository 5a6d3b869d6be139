"""Run the missing trials of the study of topic trees, then write its page."""

from __future__ import annotations

import sys
from pathlib import Path

from experiments.shared.draws import run_study
from experiments.trees import page, trials

# Folder of the committed page and results.
HERE = Path(__file__).parent


def main(arguments: list[str] | None = None) -> int:
    """Run the study with the options of the command."""
    return run_study(
        HERE,
        trials.plan,
        trials.perform,
        page.write,
        methods=trials.available(),
        draws=trials.SEEDS,
        study="trees",
        arguments=arguments,
    )


if __name__ == "__main__":
    sys.exit(main())
