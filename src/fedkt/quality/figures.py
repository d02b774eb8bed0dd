"""The figures of a model on labelled rows, as plain values that go through JSON and back."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any

from fedkt.errors import DataError
from fedkt.quality.intervals import Interval

Name = str | int
"""Of a class."""


@dataclass(frozen=True)
class CalibrationBin:
    """The rows whose likeliest class has about the same probability."""

    probability: float
    """Its mean, as the model says it."""
    right: float
    """The share of these rows that are of that class."""
    rows: int


@dataclass(frozen=True)
class Quality:
    """How good a model is on some rows. What these rows do not tell is None."""

    rows: int
    classes: tuple[Name, ...]
    support: tuple[int, ...]
    """Of each class, the rows that are of it."""
    predicted: tuple[int, ...]
    """Of each class, the rows that the model says are of it."""
    confusion: tuple[tuple[int, ...], ...]
    """Rows by their class (lines) and by what the model says (columns); empty with over `MOST_CONFUSED` classes."""
    accuracy: Interval
    balanced_accuracy: Interval
    """The mean recall of the classes that these rows have."""
    majority: float
    """The accuracy of always naming the most frequent class of these rows."""
    majority_class: Name
    recall: tuple[float | None, ...]
    """Of each class, the share of its rows that are found; None where there are none."""
    precision: tuple[float | None, ...]
    """Of each class, the share of the rows said to be of it that are; None where the model never says it."""
    auc: Interval | None = None
    """One class against the rest, mean over the classes that these rows have; None without probabilities."""
    auc_by_class: tuple[float | None, ...] = ()
    log_loss: float | None = None
    """Mean of -log of the probability of the right class, which is taken as at least 1.2e-7."""
    share_log_loss: float | None = None
    """The same of always giving each class its share of these rows."""
    calibration_error: float | None = None
    """How far the probability of the likeliest class lies from the share that is right, mean over ten equal bins."""
    calibration_curve: tuple[CalibrationBin, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """The figures as plain JSON values."""
        values: dict[str, Any] = asdict(self)
        listed = {name: list(value) for name, value in values.items() if isinstance(value, tuple)}
        return {**values, **listed, "confusion": [list(line) for line in self.confusion]}

    @classmethod
    def from_dict(cls, values: Any) -> Quality:
        """The figures that `as_dict` gave; fields of later versions are left out."""
        try:
            known = {field.name: values[field.name] for field in fields(cls) if field.name in values}
            lists = {name: tuple(value) for name, value in known.items() if isinstance(value, list | tuple)}
            auc = values.get("auc")
            return cls(
                **{
                    **known,
                    **lists,
                    "confusion": tuple(tuple(line) for line in values["confusion"]),
                    "accuracy": Interval(**values["accuracy"]),
                    "balanced_accuracy": Interval(**values["balanced_accuracy"]),
                    "auc": None if auc is None else Interval(**auc),
                    "calibration_curve": tuple(CalibrationBin(**each) for each in values.get("calibration_curve", ())),
                }
            )
        except (AttributeError, KeyError, TypeError) as reason:
            raise DataError(f"These are not the figures of a model's quality ({reason!r}). Measure it again.") from None
