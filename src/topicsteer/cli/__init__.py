"""The command line: parse arguments, call the library, print results."""

from topicsteer.cli.commands import app, main

__all__ = ["app", "main"]
