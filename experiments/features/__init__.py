"""Features of each tool, tried with the packages themselves."""
