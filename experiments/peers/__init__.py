"""Comparison with other topic models and classifiers."""
