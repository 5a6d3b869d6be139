"""Mutation tests: `make mutants` changes the code in small ways and asks whether a test notices.

With a number, only a seeded sample of so many mutants of each module is run. What is known from an earlier run of the
same code is kept; survivors are tried again. Prints a row for each module, and each survivor's name.
"""

import json
import random
import subprocess
import sys
from pathlib import Path

MUTMUT = [Path(sys.executable).with_name("mutmut"), "run", "--max-children", "2"]
ALIVE = (0, 5, 33, None)  # mutmut's codes: survived, no test runs it, not tried
TIMEOUTS = (24, -24, 36, 152, 255)


def results():
    """Exit codes of the mutants of each module."""
    files = sorted(Path("mutants/src/topicsteer").rglob("*.py.meta"))
    return {file.name.removesuffix(".py.meta"): json.loads(file.read_text())["exit_code_by_key"] for file in files}


def main(size=None):
    subprocess.run([*MUTMUT, "topicsteer.metrics.x_diversity*"], check=True)  # writes all mutants, and runs these
    found = results()
    sample = {
        module: random.Random(0).sample(sorted(codes), min(size or len(codes), len(codes)))
        for module, codes in found.items()
    }
    again = [name for module, names in sample.items() for name in names if found[module][name] in (*ALIVE, *TIMEOUTS)]
    if again:
        subprocess.run([*MUTMUT, *again], check=True)
    found = results()
    print(f"\n{'module':12}{'mutants':>8}{'tried':>7}{'killed':>8}{'timeouts':>10}{'survived':>10}{'noticed':>9}")
    for module, names in sample.items():
        codes = [found[module][name] for name in names]
        alive = [name for name, code in zip(names, codes, strict=True) if code in ALIVE]
        late = sum(code in TIMEOUTS for code in codes)
        counts = f"{len(found[module]):8}{len(codes):7}{len(codes) - len(alive) - late:8}{late:10}{len(alive):10}"
        print(f"{module:12}{counts}{1 - len(alive) / len(codes):9.1%}", *alive, sep="\n    ")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
