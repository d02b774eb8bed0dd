"""The final model as a file: what `fedkt server` writes, so that `fedkt predict` and any ONNX runtime read it."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from fedkt.data.agreed_column import Column
from fedkt.data.pixels import pixel_names
from fedkt.data.schema import Schema
from fedkt.errors import ModelError
from fedkt.estimator.choice import label_of
from fedkt.estimator.encoding import label_name
from fedkt.final_card import NO_PLAN, FinalCard, with_card
from fedkt.models.final_exchange import to_final_onnx
from fedkt.plan import faults_of
from fedkt.system.files import write_atomically

if TYPE_CHECKING:
    from fedkt.estimator import FedKTClassifier

CHECK_ROWS = 1_000
"""Public rows that are kept, on which the written model has to say what this one says."""


def final_file(own: FedKTClassifier, path: Any) -> bytes:
    """The bytes of the final model's file, which are also written to `path`, where there is one."""
    form, schema = own._form, own.schema_
    if (form.texts or form.strings) and schema is None:
        raise ModelError(
            "The final model reads strings, which have no place in its file: there rows are numbers. Name a family, "
            "such as 'logistic', instead of a pipeline: strings are then encoded by columns that travel in the file."
        )
    columns = number_columns(own) if schema is None else schema
    with warnings.catch_warnings():
        # Rows of a data frame are compared without their names.
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        model = to_final_onnx(
            own.final_model_,
            n_features=columns.n_features,
            n_classes=len(own.classes_),
            check_rows=own._check_sample,
        )
    report = own.report_
    values = {
        "task": columns.label,
        "plan": NO_PLAN,
        "level": report.level,
        "classes": tuple(map(label_of, own.classes_.tolist())),
        "schema": columns,
        "privacy": report.privacy_statement,
        "probabilities": model.soft,
        "alarms": report.alarms,
    }
    try:
        card = FinalCard.model_validate(values)
    except ValidationError as reason:
        where, _, words = faults_of(reason)[0]
        raise ModelError(f"The final model's file cannot say this of itself: {where}: {words}. Rename it.") from reason
    data = with_card(model.data, card)
    if path is not None:
        write_atomically(Path(path), data)
    return data


def number_columns(own: FedKTClassifier) -> Schema:
    """Columns of numbers that are taken as they are: by the names of X, as pixels, or as x0, x1 …."""
    if own._form.image is not None:
        names: list[str] = list(pixel_names(own._form.image))
    else:
        names = [str(each) for each in getattr(own, "feature_names_in_", [f"x{n}" for n in range(own.n_features_in_)])]
    columns = tuple(Column(name=name, kind="number") for name in names)
    return Schema(columns=columns, label=label_name(own._target, names), scale=False)
