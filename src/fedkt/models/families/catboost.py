"""CatBoost's boosted trees, which users may bring; the library writes ONNX itself."""

from __future__ import annotations

from typing import Any

from fedkt.models.families.family import Family
from fedkt.models.families.trees import ROW_WEIGHT, single_tree


def _catboost_graph(estimator: Any) -> Any:
    import tempfile
    from pathlib import Path

    import onnx

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        estimator.save_model(str(path), format="onnx")
        return onnx.load(path)


CATBOOST = Family(
    classes=("CatBoostClassifier",),
    library="catboost",
    calibrated=True,
    row_weight=ROW_WEIGHT,
    class_weights={"class_weights": None, "auto_class_weights": None, "scale_pos_weight": 1.0},
    teacher=single_tree,
    export=_catboost_graph,
)
