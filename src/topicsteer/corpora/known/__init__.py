"""Loaders of well-known corpora, in their original files."""
