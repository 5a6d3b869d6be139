"""Questions to a fit, answered in numbers."""
