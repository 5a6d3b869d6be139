"""Measurements of suggestions and the audit."""
