"""Families of scikit-learn that skl2onnx converts as they are, and nearest neighbours, which it does not do well."""

from __future__ import annotations

from typing import Any

from fedkt.models.families.family import Family


def _logistic() -> Any:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))


def _svm() -> Any:
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    return make_pipeline(StandardScaler(), SVC())


def _naive_bayes() -> Any:
    from sklearn.naive_bayes import GaussianNB

    return GaussianNB()


def _neighbours(estimator: Any, *, double: bool) -> Any:
    """In float64 throughout, whatever is asked for."""
    from fedkt.models.graphs import neighbours_graph

    return neighbours_graph(estimator, int(estimator.n_features_in_))


LOGISTIC = Family(
    "logistic",
    "Logistic regression on standardised columns.",
    _logistic,
    classes=("LogisticRegression",),
    calibrated=True,
    row_weight=1.0,
    class_weights={"class_weight": None},
)
SVM = Family(
    "svm",
    "A support vector machine with an RBF kernel on standardised columns.",
    _svm,
    classes=("SVC",),
    probabilities=False,
)
NAIVE_BAYES = Family(
    "naive-bayes",
    "Gaussian naive Bayes.",
    _naive_bayes,
    classes=("GaussianNB", "BernoulliNB", "MultinomialNB", "ComplementNB"),
    row_weight=1.0,
    class_weights={"priors": None, "class_prior": None, "fit_prior": True},
)
NEIGHBOURS = Family(classes=("KNeighborsClassifier",), graph=_neighbours)
