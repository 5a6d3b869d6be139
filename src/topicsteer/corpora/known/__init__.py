"""Corpora that everybody knows, read from their own files."""
