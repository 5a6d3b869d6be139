import sys

import pytest

from topicsteer.cli import commands as cli


@pytest.fixture
def run(monkeypatch, capsys):
    """Run a command: exit code, standard output, standard error."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["topicsteer", *map(str, arguments)])
        code = 0
        try:
            cli.main()
        except SystemExit as end:
            code = end.code or 0
        out = capsys.readouterr()
        return code, out.out, out.err

    return run
