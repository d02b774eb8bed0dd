"""A scikit-learn classifier around any torch.nn.Module."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from fedkt.errors import ConfigurationError, DataError
from fedkt.models.base import image_of
from fedkt.models.neural.device import device_of
from fedkt.models.neural.networks import Network, build_network
from fedkt.models.neural.recipe import Correction, Recipe
from fedkt.models.neural.rows import TensorKey, as_tensor, flat_rows, network_shape, scale_of
from fedkt.models.neural.training import Training, check_finite, hold_out, one_torch_thread, train, trainable_part

BLOCK_VALUES = 2**19
"""Numbers of the rows predicted at once: bounds the memory of a prediction, and is no slower than larger blocks."""
DTYPES = {"float32": torch.float32, "float64": torch.float64}


class NeuralClassifier(ClassifierMixin, BaseEstimator):
    """A network trained by mini-batches, with the face of a scikit-learn classifier.

    `module` is "mlp", "cnn" or a function (shape, n_outputs) -> torch.nn.Module, where shape is (columns,) for tables
    and (channels, height, width) for images. Images come as (N, height, width[, channels]), or as rows of pixels with
    `image` saying their shape.

    `normalise` "auto" subtracts the mean and divides by the deviation of the rows trained on, per column or per
    channel; inside a federation these are the public rows', so that all models see the same scale. Constants
    (mean, deviation) or None are taken as they are.

    `epochs` None is 10, and more where that would be fewer than 1,000 steps: small sets of rows are seen more often.

    `classes` are all classes there may be, where they are known beforehand: the network has an output for each, and
    still predicts only those it was shown. `device` is cpu, cuda or auto; None follows $FEDKT_DEVICE, which is what
    `--device` sets, else it is the processor. `early_stopping` holds out a share of the rows trained on; it is off.
    """

    def __init__(
        self,
        module: str | Network = "mlp",
        *,
        epochs: int | None = None,
        batch_size: int = 32,
        learning_rate: float = 1e-3,
        weight_decay: float = 1e-6,
        optimiser: str = "adam",
        momentum: float = 0.0,
        image: tuple[int, ...] | None = None,
        normalise: Any = "auto",
        classes: Sequence[Any] | None = None,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        patience: int = 5,
        warm_start: bool = False,
        device: str | None = None,
        dtype: str = "float32",
        random_state: Any = None,
    ) -> None:
        self.module = module
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.optimiser = optimiser
        self.momentum = momentum
        self.image = image
        self.normalise = normalise
        self.classes = classes
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.warm_start = warm_start
        self.device = device
        self.dtype = dtype
        self.random_state = random_state

    def fit(self, X: Any, y: ArrayLike, *, correction: Correction | None = None) -> Self:
        """Train on rows X with labels y; from scratch, or with `warm_start` from the weights there are."""
        return self._train(self.begin(X, y, correction=correction))

    def fit_soft(self, X: Any, probabilities: ArrayLike, *, correction: Correction | None = None) -> Self:
        """Train on rows X with a probability for each of `classes` (0 … K − 1 where none are declared)."""
        soft = np.asarray(probabilities, dtype=np.float64)
        if (
            soft.ndim != 2
            or not np.isfinite(soft).all()
            or (soft < 0).any()
            or not np.allclose(soft.sum(1), 1, atol=1e-3)
        ):
            raise DataError("Soft labels are one probability per class in each row, and sum to 1.")
        return self._train(self.begin(X, None, soft=soft, correction=correction))

    def partial_fit(self, X: Any, y: ArrayLike, classes: Sequence[Any] | None = None) -> Self:
        """Train one epoch more on these rows; the first call names all classes."""
        first = not hasattr(self, "network_")
        if first and classes is None and self.classes is None:
            raise ValueError("The first call of partial_fit needs all classes.")
        training = self.begin(X, y, classes=classes if first else None, go_on=True)
        return self._train(training, epochs=1)

    def initialise(self, X: Any, classes: Sequence[Any] | None = None) -> Self:
        """An untrained network that fits rows like X and knows all classes: where averaging methods start from."""
        names = self.classes if classes is None else classes
        if names is None:
            raise ConfigurationError("An untrained network needs to know the classes.")
        self._build(X, np.asarray(names), check_random_state(self.random_state))
        self.classes_ = self.outputs_
        return self

    def get_weights(self) -> list[NDArray[Any]]:
        """Copies of the network's weights (and running statistics), in a fixed order."""
        check_is_fitted(self, "network_")
        return [value.detach().cpu().numpy().copy() for value in self.network_.state_dict().values()]

    def set_weights(self, weights: Sequence[NDArray[Any]]) -> Self:
        """Overwrite the network's weights; it may then predict every class it has an output for."""
        check_is_fitted(self, "network_")
        own = self.network_.state_dict()
        shapes = [tuple(value.shape) for value in own.values()]
        if [tuple(np.shape(each)) for each in weights] != shapes:
            raise ConfigurationError(
                f"These weights have the shapes {[tuple(np.shape(each)) for each in weights]}, the network {shapes}."
            )
        if not all(np.isfinite(each).all() for each in weights):
            raise DataError("These weights contain NaN or infinite numbers.")
        self.network_.load_state_dict(
            {name: torch.as_tensor(np.array(each)) for name, each in zip(own, weights, strict=True)}
        )
        self.classes_ = self.outputs_
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each row, among those the network was shown."""
        return self.most_probable(self.decision_scores(X))

    def most_probable(self, scores: NDArray[Any]) -> NDArray[Any]:
        """The class of the highest score in each row."""
        likeliest: NDArray[Any] = self.classes_[scores.argmax(axis=1)] if len(scores) else self.classes_[:0]
        return likeliest

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probabilities of `classes_`, which sum to 1."""
        scores = self.decision_scores(X).astype(np.float64)
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        probabilities: NDArray[np.float64] = weights / weights.sum(axis=1, keepdims=True)
        return probabilities

    def decision_scores(self, X: Any) -> NDArray[Any]:
        """The network's logits for `classes_`."""
        check_is_fitted(self, "network_")
        return scores_of([self], X)[0]

    @property
    def recipe(self) -> Recipe:
        """How this network is trained."""
        return Recipe(
            self.epochs, self.batch_size, self.learning_rate, self.weight_decay, self.optimiser, self.momentum
        )

    def _train(self, training: Training, *, epochs: int | None = None) -> Self:
        recipe = self.recipe if epochs is None else replace(self.recipe, epochs=epochs)
        with one_torch_thread():
            self.train_alone(training, recipe)
        check_finite(self.network_)
        return self

    def train_alone(self, training: Training, recipe: Recipe) -> None:
        """Train the network outside any stack, with rows held out where `early_stopping` asks for it."""
        watch = None
        if self.early_stopping:
            training, watch = hold_out(training, self.validation_fraction, self.patience)
        self.n_steps_ = train(training, recipe, watch=watch)

    def begin(
        self,
        X: Any,
        y: ArrayLike | None,
        *,
        soft: NDArray[np.float64] | None = None,
        classes: Sequence[Any] | None = None,
        go_on: bool = False,
        correction: Correction | None = None,
        cache: dict[TensorKey, torch.Tensor] | None = None,
    ) -> Training:
        """The network and its rows, ready to be trained (alone, or in a stack with others)."""
        self.recipe.check()
        again = hasattr(self, "network_") and (go_on or self.warm_start)
        rows, codes, labels = self._read_labels(X, y, soft, reset=not again)
        rng = check_random_state(self.random_state)
        if not again:
            all_classes = self.classes if classes is None else classes
            self._build(X, labels if all_classes is None else np.asarray(all_classes), rng)
        seed = int(rng.randint(2**31 - 1))
        unknown = np.setdiff1d(labels, self.outputs_)
        if len(unknown):
            raise ValueError(f"y has the classes {unknown.tolist()}, which the network has no output for.")
        self.classes_ = np.union1d(self.classes_, labels) if again else labels
        targets = (
            torch.from_numpy(np.searchsorted(self.outputs_, labels)[codes])
            if soft is None
            else torch.as_tensor(soft, dtype=DTYPES[self.dtype])
        )
        tensors = {} if cache is None else cache
        key = self.scale_.key(X)
        if key not in tensors:
            tensors[key] = self._tensor(rows)
        return Training(
            self.network_,
            tensors[key],
            targets.to(self.network_device),
            np.random.default_rng(seed),
            correction=None if correction is None else trainable_part(correction, self.network_),
        )

    def _read_labels(
        self, X: Any, y: ArrayLike | None, soft: NDArray[np.float64] | None, *, reset: bool
    ) -> tuple[NDArray[Any], NDArray[np.int64], NDArray[Any]]:
        """The rows, the place of each row's class among the classes that occur, and these classes."""
        if soft is not None:
            (rows,) = self._read_rows(X, reset=reset)
            labels = np.arange(soft.shape[1]) if self.classes is None else np.asarray(self.classes)
            if np.unique(labels).tolist() != labels.tolist():
                raise ConfigurationError(
                    f"Soft labels need classes in ascending order, each once; got {labels.tolist()}."
                )
            if len(soft) != len(rows) or len(labels) != soft.shape[1]:
                raise DataError(f"{soft.shape} soft labels do not fit {len(rows)} rows of {len(labels)} classes.")
            return rows, np.empty(0, dtype=np.int64), labels
        rows, truth = self._read_rows(X, y, reset=reset)
        check_classification_targets(truth)
        labels, codes = np.unique(column_or_1d(truth), return_inverse=True)
        return rows, codes, labels

    def _read_rows(self, X: Any, *labels: Any, reset: bool) -> tuple[NDArray[Any], ...]:
        """The rows as a flat array, of the width the network was built for unless a new one is, and their labels."""
        if not reset and getattr(X, "ndim", 2) > 2:
            X = flat_rows(X)
        # Pixels may stay bytes until a batch is made of them.
        kinds = [np.float32, np.float64, np.uint8]
        arrays = validate_data(self, X, *labels, reset=reset, allow_nd=True, dtype=kinds, accept_sparse="csr")
        rows, *rest = arrays if labels else (arrays,)
        return flat_rows(rows), *rest

    def _build(self, X: Any, outputs: NDArray[Any], rng: np.random.RandomState) -> None:
        """A new network of our kind, and the scale of its rows."""
        if self.dtype not in DTYPES:
            raise ConfigurationError(f"dtype is float32 or float64, got {self.dtype!r}.")
        self.outputs_ = np.unique(outputs)
        self.image_ = image_of(X, self.image)
        rows = flat_rows(X)
        self.n_features_in_ = rows.shape[1]
        self.scale_ = scale_of(rows, self.normalise, self.image_)
        shape = network_shape(rows.shape[1], self.image_)
        network = build_network(self.module, shape, max(len(self.outputs_), 2), int(rng.randint(2**31 - 1)))
        try:
            self.network_ = network.to(device=device_of(self.device), dtype=DTYPES[self.dtype]).eval()
        except (RuntimeError, AssertionError) as reason:
            raise ConfigurationError(f"There is no device {self.device!r} here: {reason}") from reason

    @property
    def network_device(self) -> torch.device:
        """Where the network stands."""
        return next(self.network_.parameters()).device

    def _tensor(self, rows: NDArray[Any]) -> torch.Tensor:
        return as_tensor(rows, self.scale_, self.image_, device=self.network_device, dtype=DTYPES[self.dtype])

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "network_") and hasattr(self, "classes_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.input_tags.sparse = True
        return tags


def scores_of(networks: Sequence[NeuralClassifier], X: Any) -> list[NDArray[Any]]:
    """Each network's logits for its `classes_` on the same rows, which are prepared once: all work on one scale."""
    first = networks[0]
    (rows,) = first._read_rows(X, reset=False)
    columns_of = [
        torch.from_numpy(np.searchsorted(each.outputs_, each.classes_)).to(each.network_device) for each in networks
    ]
    parts: list[list[NDArray[Any]]] = [[np.empty((0, len(each.classes_)), dtype=first.dtype)] for each in networks]
    block = max(1, BLOCK_VALUES // max(rows.shape[1], 1))
    with torch.no_grad(), one_torch_thread():
        for start in range(0, len(rows), block):
            batch = first._tensor(rows[start : start + block])
            for each, columns, part in zip(networks, columns_of, parts, strict=True):
                part.append(each.network_(batch)[:, columns].cpu().numpy())
    scores = [np.concatenate(part) for part in parts]
    if not all(np.isfinite(each).all() for each in scores):
        raise DataError(f"Some rows hold numbers that are too large for {first.dtype}: the network has no answer.")
    return scores
