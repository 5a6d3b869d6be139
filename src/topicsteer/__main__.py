"""``python -m topicsteer``."""

from topicsteer.cli import main

main()
