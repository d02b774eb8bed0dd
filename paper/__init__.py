"""The paper's tables and figures, each an experiment: which runs it needs, what the paper prints, what came out.

    python -m paper list

This package is run from the root of a clone and is no part of what is installed.
"""
