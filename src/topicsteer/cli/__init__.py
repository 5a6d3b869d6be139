"""The command line: parse, call, print."""

from topicsteer.cli.commands import app, main

__all__ = ["app", "main"]
