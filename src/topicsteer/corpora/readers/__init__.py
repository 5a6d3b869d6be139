"""Readers of files and of tables in memory; all return columns."""
