"""Factorise a document-term matrix under a mask. This package knows neither topic names nor files."""
