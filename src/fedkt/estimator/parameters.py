"""What scikit-learn's tools see of a classifier: parameters, also of named families, and its face in a notebook."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from sklearn.base import BaseEstimator

from fedkt.errors import ConfigurationError
from fedkt.models.catalogue import as_estimator

ROLES = ("estimator", "teacher", "student", "final")


class NamedParameters(BaseEstimator):
    """An estimator with parameters that name families: `FedKTClassifier("forest")` has an `estimator__max_depth`."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters; `deep` also those of its estimators, also where a name stands for one."""
        parameters: dict[str, Any] = super().get_params(deep=deep)
        return {**parameters, **parameters_of_names(parameters)} if deep else parameters

    def set_params(self, **params: Any) -> Self:
        """Set parameters; a name of which one is set becomes the estimator that it stands for."""
        super().set_params(**{name: value for name, value in params.items() if "__" not in name})
        inner = {name: value for name, value in params.items() if "__" in name}
        asked = {name.partition("__")[0] for name in inner}
        for role in ROLES:
            own = getattr(self, role)
            if role in asked and own is None:
                raise ConfigurationError(
                    f"Nobody has chosen a family as `{role}`, so it has no parameters to set. Name one, for instance "
                    f"{role}='forest'."
                )
            if role in asked and isinstance(own, str):
                setattr(self, role, as_estimator(own))
        super().set_params(**inner)
        return self

    def _repr_html_inner(self) -> str:
        return self._with_report(super()._repr_html_inner())

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        return {kind: self._with_report(each) if kind == "text/html" else each for kind, each in bundle.items()}

    def _with_report(self, diagram: str) -> str:
        """scikit-learn's diagram and, once there is one, the report below."""
        return diagram + self.report_._repr_html_() if hasattr(self, "report_") else diagram


def parameters_of_names(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of the estimators behind the names among these; of a wrong name there are none."""
    found: dict[str, Any] = {}
    for role in ROLES:
        if isinstance(parameters.get(role), str):
            try:
                inner = as_estimator(parameters[role]).get_params()
            except ConfigurationError:
                # `fit` refuses the name in words.
                continue
            found |= {f"{role}__{name}": value for name, value in inner.items()}
    return found
