"""Factorise a matrix under a mask; knows neither names nor files."""
