"""Mutation tests: `make mutants` changes the code in small ways and checks that a test fails.

With a number, only a seeded sample of that size is run per module. Results of an earlier run of the same code are kept;
survivors are tried again. Prints one row per module with the names of its survivors, and the sum.
"""

import json
import random
import subprocess
import sys
from pathlib import Path

MUTMUT = [Path(sys.executable).with_name("mutmut"), "run", "--max-children", "2"]
SOURCE = Path("mutants/src/topicsteer")
ALIVE = (0, 5, 33, None)  # mutmut's codes: survived, no test runs it, not tried
TIMEOUTS = (24, -24, 36, 152, 255)


def results():
    """Exit codes of the mutants per module."""
    files = sorted(SOURCE.rglob("*.py.meta"))
    codes = (json.loads(file.read_text())["exit_code_by_key"] for file in files)
    names = (file.relative_to(SOURCE).as_posix().removesuffix(".meta") for file in files)
    return {name: found for name, found in zip(names, codes, strict=True) if found}


def row(label, mutants, codes):
    """One line of the table."""
    alive, late = sum(code in ALIVE for code in codes), sum(code in TIMEOUTS for code in codes)
    counts = f"{mutants:8}{len(codes):7}{len(codes) - alive - late:8}{late:10}{alive:10}"
    return f"{label:26}{counts}{1 - alive / len(codes):9.1%}"


def main(size=None):
    subprocess.run([*MUTMUT, "topicsteer.metrics.x_calibration*"], check=True)  # writes all mutants, and runs these
    found = results()
    sample = {
        module: random.Random(0).sample(sorted(codes), min(size or len(codes), len(codes)))
        for module, codes in found.items()
    }
    again = [name for module, names in sample.items() for name in names if found[module][name] in (*ALIVE, *TIMEOUTS)]
    if again:
        subprocess.run([*MUTMUT, *again], check=True)
    found = results()
    print(f"\n{'module':26}{'mutants':>8}{'tried':>7}{'killed':>8}{'timeouts':>10}{'survived':>10}{'noticed':>9}")
    everything = []
    for module, names in sample.items():
        codes = [found[module][name] for name in names]
        everything += codes
        alive = [name for name, code in zip(names, codes, strict=True) if code in ALIVE]
        print(row(module, len(found[module]), codes), *alive, sep="\n    ")
    print(row("all", sum(map(len, found.values())), everything))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
