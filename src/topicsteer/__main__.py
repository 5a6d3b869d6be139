"""``python -m topicsteer``."""

from topicsteer.cli.commands import main

main()
