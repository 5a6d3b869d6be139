"""From labels to the probability of each known topic in each document, and what follows from it."""
