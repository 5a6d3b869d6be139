"""From numbers to pages, pictures and tables."""
