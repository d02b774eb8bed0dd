"""The privacy layer: usable alone, blind to models and data."""

from fedkt.privacy.ledger import LEVELS, Ledger, check_level

__all__ = ["LEVELS", "Ledger", "check_level"]
