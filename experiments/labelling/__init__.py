"""Suggestions, the audit and the stopping rule, measured."""
