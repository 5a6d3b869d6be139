"""Label files: labels in a file of their own."""
