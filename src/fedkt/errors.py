"""Every error fedkt raises on purpose.

    FedKTError
    ├── ConfigurationError   a choice that cannot work (level, model, number of subsets, …); also a ValueError
    │   └── UnsuitedModel    a method that cannot take this model: an empty cell of a comparison
    ├── DataError            rows, columns, labels or files that do not fit; also a ValueError
    ├── ModelError           a classifier could not be trained, converted or run
    ├── PlanError            a plan.toml that is wrong or is not the one agreed on
    ├── BundleError          a received bundle was refused (names the party, the file and the reason)
    ├── PrivacyError         a release that nobody has priced, or that the budget does not cover
    └── WorkerError          a process or a cluster that should work could not be reached, or ended

A message says what was wrong, what was got, and what to do about it.
"""


class FedKTError(Exception):
    """Anything fedkt refuses."""


class ConfigurationError(FedKTError, ValueError):
    """A choice that cannot work."""


class UnsuitedModel(ConfigurationError):
    """A method that cannot take the model it was given."""


class DataError(FedKTError, ValueError):
    """Rows, columns, labels or files that do not fit."""


class ModelError(FedKTError):
    """A classifier that could not be trained, converted or run."""


class PlanError(FedKTError):
    """A plan that is wrong, or is not the one agreed on."""


class BundleError(FedKTError):
    """A received bundle that was refused."""


class PrivacyError(FedKTError):
    """A release that has no price, or that the budget does not cover."""


class WorkerError(FedKTError):
    """A process or a cluster that should work and could not be reached, or ended."""
