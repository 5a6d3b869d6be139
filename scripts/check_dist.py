"""Check the files of `make dist`: their content and size, and that they install and run without the source.

Usage: ``python scripts/check_dist.py dist``. The Python needs the package build; with pipx it also tries pipx.
"""

import os
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

# Largest download of the default install, in MB.
LIMIT = 200
PACKAGE = Path(__file__).parents[1] / "src" / "topicsteer"
# Data files of the package: pages, styles, stop words, tables.
NEEDED = {
    path.relative_to(PACKAGE).as_posix()
    for path in PACKAGE.rglob("*")
    if path.is_file() and path.suffix != ".py" and "__pycache__" not in path.parts
}
# Folders of the sdist.
FOLDERS = {"src", "tests", "docs", "examples", "experiments", "benchmarks", "scripts"}
# Environment without the settings of a developer.
CLEAN = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "TOPICSTEER_DATA")}


def run(*command: object, folder: Path, **names: str) -> str:
    """Run a command in a folder and return its output; exit with the output if it fails."""
    done = subprocess.run(
        list(map(str, command)),
        cwd=folder,
        env=CLEAN | names,
        text=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}")
    return done.stdout


def check_files(wheel: Path, sdist: Path) -> None:
    """Check that the wheel has all data files and no tests, and the sdist the folders of a developer."""
    inside = zipfile.ZipFile(wheel).namelist()
    missing = NEEDED - {name.removeprefix("topicsteer/") for name in inside}
    strange = [name for name in inside if not name.startswith(("topicsteer/", "topicsteer-")) or "test" in name]
    if missing or strange:
        sys.exit(f"{wheel.name}: missing {sorted(missing)}, unexpected {strange}")
    with tarfile.open(sdist) as archive:
        folders = {name.split("/")[1] for name in archive.getnames() if name.count("/") > 1}
    if folders != FOLDERS:
        sys.exit(f"{sdist.name}: the folders are {sorted(folders)}, expected {sorted(FOLDERS)}")
    print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB, {len(inside)} files, no tests")
    print(f"{sdist.name}: {sdist.stat().st_size / 1e6:.1f} MB, with {', '.join(sorted(folders))}")


def check_demo(program: Path, folder: Path, how: str) -> None:
    """Run `topicsteer demo` in an empty folder outside the source tree."""
    folder.mkdir()
    printed = run(program, "demo", folder=folder, COLUMNS="100")
    if not (folder / "report.html").exists():
        sys.exit(f"topicsteer demo wrote no report.html:\n{printed}")
    print(f"{how}: topicsteer demo runs in an empty folder and writes {', '.join(p.name for p in folder.iterdir())}")


def main() -> None:
    """Check the wheel and the sdist of a folder."""
    dist = Path(sys.argv[1]).resolve()
    (wheel,), (sdist,) = dist.glob("*.whl"), dist.glob("*.tar.gz")
    check_files(wheel, sdist)
    with tempfile.TemporaryDirectory(prefix="topicsteer-dist-") as name:
        place = Path(name)
        venv.create(place / "venv", with_pip=True)
        python = place / "venv/bin/python"
        run(python, "-m", "pip", "download", "--quiet", "--dest", place / "wheels", wheel, folder=place)
        size = sum(file.stat().st_size for file in (place / "wheels").iterdir()) / 1e6
        print(f"The default install downloads {size:.0f} MB in {len(list((place / 'wheels').iterdir()))} packages")
        if size >= LIMIT:
            sys.exit(f"The limit is {LIMIT} MB.")
        run(python, "-m", "pip", "install", "--quiet", wheel, folder=place)
        check_demo(python.with_name("topicsteer"), place / "empty", "pip")
        pipx = Path(sys.executable).with_name("pipx")
        if not pipx.exists():
            print("pipx: not installed, not tried")
            return
        run(pipx, "install", wheel, folder=place, PIPX_HOME=str(place / "pipx"), PIPX_BIN_DIR=str(place / "bin"))
        check_demo(place / "bin/topicsteer", place / "another", "pipx")


if __name__ == "__main__":
    main()
