"""Classifiers: the one wrapper around them, the catalogue of families, and how a trained one travels."""
