"""Families of scikit-learn that skl2onnx converts as they are, and nearest neighbours, which it does not do well."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from fedkt.models.families.family import Family, later


def _standardised(classifier: Callable[[], Any]) -> Any:
    """A classifier behind a scaler of its columns."""
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), classifier())


LOGISTIC = Family(
    "logistic",
    "Logistic regression on standardised columns.",
    partial(_standardised, later("sklearn.linear_model:LogisticRegression", max_iter=1000)),
    classes=("LogisticRegression",),
    calibrated=True,
    row_weight=1.0,
    # The scaled rows.
    training_bytes=4,
    class_weights={"class_weight": None},
)
SVM = Family(
    "svm",
    "A support vector machine with an RBF kernel on standardised columns.",
    partial(_standardised, later("sklearn.svm:SVC")),
    classes=("SVC",),
    probabilities=False,
    # The scaled rows, and those as libsvm has them: a double of its own for each value.
    training_bytes=12,
    class_weights={"class_weight": None},
)
NAIVE_BAYES = Family(
    "naive-bayes",
    "Gaussian naive Bayes.",
    later("sklearn.naive_bayes:GaussianNB"),
    classes=("GaussianNB", "BernoulliNB", "MultinomialNB", "ComplementNB"),
    scale="logarithm",
    row_weight=1.0,
    class_weights={"priors": None, "class_prior": None, "fit_prior": True},
)
NEIGHBOURS = Family(
    classes=("KNeighborsClassifier",),
    graph=later("fedkt.models.graphs:neighbours_graph"),
    scores=later("fedkt.models.graphs:neighbours_scores"),
)
LINEAR = Family(
    classes=("SGDClassifier", "LinearDiscriminantAnalysis"), scale="decision", class_weights={"class_weight": None}
)
