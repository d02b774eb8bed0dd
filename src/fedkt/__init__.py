"""fedkt: one-shot federated learning across organisations."""

__version__ = "0.1.0"
