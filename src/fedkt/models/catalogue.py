"""The model families a plan or a command may name, and who teaches whom in each.

Adding a family is one line in MODELS; it then inherits the contract tests.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from fedkt.errors import ConfigurationError


def forest() -> Any:
    """The paper's forest for Adult: 100 trees of depth 6."""
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(n_estimators=100, max_depth=6)


def extra_trees() -> Any:
    """100 extremely randomised trees of depth 6."""
    from sklearn.ensemble import ExtraTreesClassifier

    return ExtraTreesClassifier(n_estimators=100, max_depth=6)


def tree() -> Any:
    """One decision tree of depth 6: the paper's teacher for every tree ensemble."""
    from sklearn.tree import DecisionTreeClassifier

    return DecisionTreeClassifier(max_depth=6)


def boosting() -> Any:
    """The paper's boosted trees for cod-rna: XGBoost, 100 rounds of depth 6."""
    if find_spec("xgboost") is None:
        raise ConfigurationError(
            "Model 'boosting' is XGBoost, which is not installed. Run: pip install 'fedkt[boosting]' "
            "(or choose 'hist-boosting', which needs nothing more)."
        )
    from xgboost import XGBClassifier

    return XGBClassifier(
        n_estimators=100, max_depth=6, learning_rate=0.05, gamma=1, reg_lambda=1, tree_method="hist", verbosity=0
    )


def hist_boosting() -> Any:
    """scikit-learn's histogram boosting."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(early_stopping=False)


def lightgbm() -> Any:
    """LightGBM with its own defaults."""
    if find_spec("lightgbm") is None:
        raise ConfigurationError("Model 'lightgbm' is not installed. Run: pip install 'fedkt[boosting]'.")
    from lightgbm import LGBMClassifier

    return LGBMClassifier(verbose=-1)


def logistic() -> Any:
    """Logistic regression on standardised columns."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))


def svm() -> Any:
    """A support vector machine with an RBF kernel on standardised columns."""
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    return make_pipeline(StandardScaler(), SVC())


def naive_bayes() -> Any:
    """Gaussian naive Bayes."""
    from sklearn.naive_bayes import GaussianNB

    return GaussianNB()


def mlp() -> Any:
    """The paper's network for MNIST: two hidden layers of 100; Adam in batches of 32."""
    return _network("mlp", batch_size=32)


def cnn() -> Any:
    """The paper's network for SVHN: two convolutions and two hidden layers; Adam in batches of 64."""
    return _network("cnn", batch_size=64)


def _network(name: str, *, batch_size: int) -> Any:
    if find_spec("torch") is None:
        raise ConfigurationError(
            f"Model {name!r} needs PyTorch, which is not installed. Run: pip install 'fedkt[neural]'."
        )
    from fedkt.models.neural.classifier import NeuralClassifier

    return NeuralClassifier(name, batch_size=batch_size)


MODELS: dict[str, Callable[[], Any]] = {
    "forest": forest,
    "extra-trees": extra_trees,
    "tree": tree,
    "boosting": boosting,
    "hist-boosting": hist_boosting,
    "lightgbm": lightgbm,
    "logistic": logistic,
    "svm": svm,
    "naive-bayes": naive_bayes,
    "mlp": mlp,
    "cnn": cnn,
}

ONLY_NAMES_A_CLASS = frozenset({"svm"})
"""Families of MODELS that do not say how sure they are."""
CALIBRATED = frozenset({"tree", "boosting", "hist-boosting", "lightgbm", "logistic", "mlp", "cnn"})
"""Families of MODELS that find a class about as probable as it is (see `fedkt.models.soft`)."""
NETWORKS = frozenset({"mlp", "cnn"})
ONLY_IMAGES = frozenset({"cnn"})
TREE_ENSEMBLES = frozenset(
    {
        "RandomForestClassifier",
        "ExtraTreesClassifier",
        "GradientBoostingClassifier",
        "HistGradientBoostingClassifier",
        "XGBClassifier",
        "LGBMClassifier",
        "CatBoostClassifier",
    }
)


@dataclass(frozen=True)
class Roles:
    """Which model teaches, which one studies, and which one the server trains at the end."""

    teacher: Any
    student: Any
    final: Any


def roles(model: Any, *, teacher: Any = None, student: Any = None, final: Any = None) -> Roles:
    """The three roles: what is not chosen follows from `model`; names are looked up in MODELS."""
    chosen = as_estimator(model)
    studying = chosen if student is None else as_estimator(student)
    return Roles(
        teacher=default_teacher(studying) if teacher is None else as_estimator(teacher),
        student=studying,
        final=chosen if final is None else as_estimator(final),
    )


def as_estimator(model: Any) -> Any:
    """An untrained estimator for a name in MODELS; an estimator is passed through."""
    if isinstance(model, str):
        if model not in MODELS:
            raise ConfigurationError(f"There is no model {model!r}. Choose one of: {', '.join(MODELS)}.")
        return MODELS[model]()
    # Some have a method only once they are trained; their class has it before.
    missing = [
        name
        for name in ("fit", "predict", "get_params", "set_params")
        if not hasattr(model, name) and not hasattr(type(model), name)
    ]
    if missing or isinstance(model, type):
        what = f"the class {model.__name__}" if isinstance(model, type) else f"a {type(model).__name__}"
        raise ConfigurationError(
            f"A model is an instance of a scikit-learn compatible classifier or one of {', '.join(MODELS)}; got {what}."
        )
    from sklearn.base import is_regressor

    if is_regressor(model):
        raise ConfigurationError(
            f"{type(model).__name__} predicts numbers, not classes. A model is a classifier, or one of: "
            f"{', '.join(MODELS)}."
        )
    return model


def trained_for(model: Any, epochs: int | None, learning_rate: float | None = None) -> Any:
    """The model, trained so long and with such steps if it is a neural network; None stays None."""
    from fedkt.models.ensemble import is_neural

    wanted = {"epochs": epochs, "learning_rate": learning_rate}
    given = {name: value for name, value in wanted.items() if value is not None}
    if model is None or not given:
        return model
    chosen = as_estimator(model)
    if not is_neural(chosen):
        return model
    from sklearn.base import clone

    return clone(chosen).set_params(**given)


def default_teacher(student: Any) -> Any:
    """Who teaches this student: one tree of the same depth for an ensemble of trees, else the student's own family.

    A teacher sees a fraction of a party's rows. Forests of teachers on so few rows all answer with the majority class
    (Adult falls to it), and they cost a hundred times as much; single trees disagree usefully.
    """
    from sklearn.base import clone
    from sklearn.pipeline import Pipeline
    from sklearn.tree import DecisionTreeClassifier

    if isinstance(student, Pipeline):
        head: list[Any] = [step for step in clone(student).steps[:-1]]
        name, last = student.steps[-1]
        return Pipeline([*head, (name, default_teacher(last))])
    if type(student).__name__ not in TREE_ENSEMBLES:
        return student
    depth = student.get_params().get("max_depth", student.get_params().get("depth"))
    return DecisionTreeClassifier(max_depth=depth if depth and depth > 0 else 6)
