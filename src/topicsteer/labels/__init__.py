"""Topics and labels."""
