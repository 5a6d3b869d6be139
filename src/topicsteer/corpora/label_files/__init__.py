"""Labels that come in files of their own."""
