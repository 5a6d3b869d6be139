"""From labels to probabilities of the known topics in every document, memberships and penalties."""
