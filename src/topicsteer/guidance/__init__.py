"""Semi-supervised guidance: probabilities of the known topics in each document, memberships and penalties."""
