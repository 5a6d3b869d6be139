"""Measurements of suggestions, the audit and the stopping rule."""
