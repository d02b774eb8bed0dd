"""A plug-in for fedkt: an algorithm, a dataset and a model family."""
