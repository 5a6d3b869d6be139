"""Shares of topics: how often their intervals contain the truth, and how wide they are."""
