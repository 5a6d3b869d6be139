"""From files and tables of any kind to columns."""
