"""FedKTClassifier: FedKT for scikit-learn users, all parties simulated in one process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, MetaEstimatorMixin
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from fedkt.algorithms.usual import TEXT_FAMILY
from fedkt.data.schema import Schema
from fedkt.errors import ConfigurationError
from fedkt.estimator.choice import algorithm_of, label_of, models_in
from fedkt.estimator.encoding import encode_rows, encoding_notes, fit_columns, has_texts
from fedkt.estimator.final import CHECK_ROWS, final_file
from fedkt.estimator.inputs import absence_notes, class_codes, class_weights_by_place, estimator_of, public_split
from fedkt.estimator.members import PrivateRows, party_per_owner, private_rows
from fedkt.estimator.parameters import NamedParameters
from fedkt.estimator.rows import (
    RowForm,
    check_numbers,
    check_public,
    check_rows,
    form_of,
    readable_rows,
    take_party_column,
)
from fedkt.estimator.students import Student, students_in
from fedkt.federation import Outcome, Party, Server, seed_for, simulate
from fedkt.models.base import FittedModel, count_rows, take_rows
from fedkt.models.reading import has_scores
from fedkt.privacy import Noise
from fedkt.report import Report, build_report, promise_of, protects_parties, qualities, run_log, with_quality
from fedkt.system.backends import joblibs_backend
from fedkt.system.plug_ins import packages_of


def _final_has_probabilities(self: FedKTClassifier) -> bool:
    if hasattr(self, "final_model_"):
        return bool(self.final_model_.has_probabilities)
    return has_scores(estimator_of(self.final if self.final is not None else self.estimator))


class FedKTClassifier(MetaEstimatorMixin, ClassifierMixin, NamedParameters):
    """A classifier trained by FedKT: parties teach students, the server lets the students vote.

    Rows are tables, lists of strings, or images of shape (N, height, width[, channels]). Pipelines read strings as they
    are; for all other families they become numbers by a schema, which the public rows alone decide.

    Parameters
    ----------
    estimator : the classifier studied by students and final model (default: the paper's forest), or a name from
        the catalogue.
    teacher, student, final : classifiers for one role only. Ensembles of trees are taught by single trees;
        in expert voting the only teacher of a student is of its own family.
    partitions : cuts of a party's rows, and so students per party (s). Default: 1, and 2 for consistent voting without
        noise.
    subsets : subsets of a cut, and so teachers per student (t). Default: 5, and 1 for expert voting without noise.
    voting : "consistent" (the paper's: a party's vote counts where its students agree), "expert" (a party is weighed by
        its rows of each class, which it tells) or "expert-no-counts" (a student says by itself which rows are not its
        party's); or "moments": no students, parties send sums of public features, and only `final` is trained, where
        it is given; or "auto": both are sent, and the server serves what should be better. Default: "expert", and
        "consistent" at a private level, where a family, weights or the shape of a vote are chosen; else "auto", and
        "moments" at a private level. Texts without noise are learned by "logistic" in expert voting.
    n_parties : parties to cut the rows into, at random and equally, where `fit` is given none.
    public_share : share of the rows set aside as public rows, labels unused, where `fit` is given none.
    party_estimators : a classifier of its own for some parties, by name.
    class_labels : the classes, where they are agreed on beforehand; None takes them from y, which at a private level
        tells that somebody holds each of them.
    level, noise, queries : privacy level L0 (no promise), L1 (noise at the server, a party is protected) or L2 (noise
        at the parties, a record is protected), a noise from fedkt.privacy, and how many public rows are asked.
    class_shares : the share of each class by its label, where everybody knows it; for moments at level L1.
    copies : whether a final network also learns four copies of each public image, shifted by one pixel.
    delta : δ of the guarantee.
    noise_seed : None draws noise from the operating system; a number makes it reproducible, and so protects nobody.
    n_jobs : parties trained at the same time; None is one, or what `joblib.parallel_config` says.
    random_state : seed; the same seed gives the same classifier, whatever n_jobs.

    Attributes
    ----------
    classes_ : the class labels. final_estimator_ : the server's trained classifier (None if it saw one class).
    report_ : what happened: votes, abstentions, notes, seconds. students_ : what each party sent, as classifiers.
    schema_ : how strings became numbers, None where none did. n_features_in_, feature_names_in_ as usual.
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        teacher: Any = None,
        student: Any = None,
        final: Any = None,
        partitions: int | None = None,
        subsets: int | None = None,
        voting: str | None = None,
        n_parties: int = 1,
        public_share: float = 0.2,
        party_estimators: Mapping[str, Any] | None = None,
        class_labels: ArrayLike | None = None,
        level: str = "L0",
        noise: Noise | None = None,
        queries: float = 1.0,
        class_shares: Mapping[Any, float] | None = None,
        copies: bool = False,
        delta: float = 1e-5,
        noise_seed: int | None = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.estimator = estimator
        self.teacher = teacher
        self.student = student
        self.final = final
        self.partitions = partitions
        self.subsets = subsets
        self.voting = voting
        self.n_parties = n_parties
        self.public_share = public_share
        self.party_estimators = party_estimators
        self.class_labels = class_labels
        self.level = level
        self.noise = noise
        self.queries = queries
        self.class_shares = class_shares
        self.copies = copies
        self.delta = delta
        self.noise_seed = noise_seed
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        parties: ArrayLike | None = None,
        public: Any = None,
    ) -> Self:
        """Train on rows X with labels y; `parties` says whose each row is, `public` are rows without labels.

        `parties` may also name a column of a data frame X, which then is no feature, neither here nor in `predict`.
        Without `parties` the rows are dealt to `n_parties`; without `public` a share of the rows is set aside.
        `sample_weight` says how much each row counts in the training of teachers; a row of weight 0 does not exist.
        """
        weighted = sample_weight is not None
        algorithm_of(self, None, weighted=weighted).check()
        self._target: Any = getattr(y, "name", None)
        X, public, parties, party_column = take_party_column(X, public, parties)
        self._form: RowForm = form_of(X, public, models_in(self, weighted=weighted), party_column)
        X = check_rows(self, X, self._form, reset=True)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        rng = np.random.default_rng(seed)
        private = self._private_rows(X, y, sample_weight, parties, rng)
        notes: list[str] = []
        if parties is None and self.n_parties == 1:
            notes.append("All rows are one party's: say whose they are with `parties`, or choose n_parties.")
        if public is None:
            n_rows = len(private.codes)
            own, aside = public_split(n_rows, self.public_share, level=self.level, rng=rng)
            notes.append(
                f"No public rows were given: {len(aside)} of the {n_rows} rows were set aside, their labels unused."
            )
            public, private = take_rows(private.X, aside), private.take(own)
        else:
            public = check_public(self, public, X, self._form)
        private, public = self._encode(private, public, notes)
        texts = self.schema_ is not None and has_texts(self.schema_)
        algorithm = algorithm_of(self, self.classes_, weighted=weighted, texts=texts)
        check_numbers(self._form, algorithm)
        if texts and self.estimator is None and self.voting is None and self.level == "L0":
            notes.append(f"Texts are learned by {TEXT_FAMILY!r} in {algorithm.name}, where nobody chooses otherwise.")
        members, server = self._members(private, public, seed), self._server(public, seed)
        notes.extend(absence_notes(self.party_estimators or {}, [party.name for party in members]))
        promise, warnings, alarms = promise_of(
            algorithm, members, level=self.level, delta=self.delta, reproducible_noise=self.noise_seed is not None
        )
        if self.level != "L0" and self.class_labels is None:
            warnings += ("The list of classes was taken from the private labels; declare it with class_labels.",)
        with joblibs_backend(self.n_jobs) as jobs:
            outcome = simulate(algorithm, members, server, jobs=jobs)

        self._keep(outcome, public)
        self.report_: Report = build_report(
            promise,
            run_log(outcome, self.level),
            notes=(*notes, *warnings),
            alarms=alarms,
            processes=jobs,
            packages=packages_of("fedkt.models", self.estimator, self.teacher, self.student, self.final),
            dataset="rows given to fit",
            algorithm=algorithm.name,
            model=type(algorithm.model).__name__,
            parties=len(members),
            partitions=getattr(algorithm, "partitions", None),
            subsets=getattr(algorithm, "subsets", None),
            seed=seed,
            accuracy=None,
            balanced_accuracy=None,
            bytes_sent=None,
            rows={"parties": len(private.codes), "public": count_rows(public)},
            party_rows={party.name: len(party.y) for party in members},
        )
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """The predicted label of each row."""
        check_is_fitted(self)
        codes = self.final_model_.predict(readable_rows(self, X))
        labels: NDArray[Any] = self.classes_[codes]
        return labels

    @available_if(_final_has_probabilities)
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The final model's probability of each class."""
        check_is_fitted(self)
        X = readable_rows(self, X)
        return np.asarray(self.final_model_.predict_proba(X, len(self.classes_)))

    @available_if(_final_has_probabilities)
    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """The logarithm of the final model's probability of each class; −∞ where it is 0."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))

    def evaluate(self, X: Any, y: ArrayLike) -> Report:
        """The report of the training with how good the final model is on labelled rows; verdicts come first.

        The rows must be such that no party has learned from them. `report_` stays as it is.
        """
        check_is_fitted(self)
        X = readable_rows(self, X)
        _, codes = class_codes(X, y, self.classes_)
        (quality,) = qualities([self.final_model_], X, codes, self.classes_.tolist())
        return with_quality(self.report_, quality)

    def to_onnx(self, path: str | Path | None = None) -> bytes:
        """The final model as a final.onnx, which `fedkt predict` reads with its columns; written to `path`, too."""
        check_is_fitted(self)
        return final_file(self, path)

    @property
    def students_(self) -> dict[str, tuple[Student, ...]]:
        """The students of each party, as classifiers; none where parties sent only sums."""
        check_is_fitted(self)
        if self._students is None:
            raise AttributeError("Level L1 protects the parties: their students are kept by nobody.")
        return {name: tuple(Student(name, each, self) for each in models) for name, models in self._students.items()}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        try:
            inner = estimator_of(self.estimator)
        except ConfigurationError:
            # Tags are asked for before anything is checked; `fit` refuses the estimator in words.
            return tags
        if hasattr(inner, "__sklearn_tags__"):
            inner_tags = inner.__sklearn_tags__()
            tags.input_tags.allow_nan = inner_tags.input_tags.allow_nan
            tags.input_tags.sparse = inner_tags.input_tags.sparse
        return tags

    def _encode(self, private: PrivateRows, public: Any, notes: list[str]) -> tuple[PrivateRows, Any]:
        """The rows as numbers, where they hold strings that some model cannot read; `notes` then say so."""
        self.schema_: Schema | None = None
        if not self._form.encoded:
            return private, public
        self.schema_ = fit_columns(public, self._target)
        notes.extend(encoding_notes(self.schema_, private.X, count_rows(public), quiet=self.level != "L0"))
        encoded = encode_rows(self.schema_, private.X, "The parties' rows")
        return replace(private, X=encoded), encode_rows(self.schema_, public, "`public`")

    def _keep(self, outcome: Outcome, public: Any) -> None:
        """The final model, and of what was sent whatever the level lets everybody see."""
        final = outcome.final.models[0]
        assert isinstance(final, FittedModel)
        self.final_model_: FittedModel = final
        self.final_estimator_ = final.estimator
        self._students = None if protects_parties(self.level) else students_in(outcome)
        self._check_sample = take_rows(public, np.arange(min(count_rows(public), CHECK_ROWS)))

    def _private_rows(self, X: Any, y: Any, sample_weight: Any, parties: Any, rng: np.random.Generator) -> PrivateRows:
        """The rows that count, dealt out; they say which classes there are."""
        labels, n_parties, level = self.class_labels, self.n_parties, self.level
        self.classes_, private = private_rows(
            X, y, sample_weight, parties, class_labels=labels, n_parties=n_parties, level=level, rng=rng
        )
        return private

    def _members(self, private: PrivateRows, public: Any, seed: int) -> list[Party]:
        """One Party per name that still holds rows."""
        own = (self.party_estimators or {}).items()
        models = {str(name): class_weights_by_place(model, self.classes_) for name, model in own}
        parties = party_per_owner(private, self._server(public, seed), models)
        return [
            replace(party, seed=seed_for(seed, party.name), noise_seed=self._noise_seed(party.name))
            for party in parties
        ]

    def _server(self, public: Any, seed: int) -> Server:
        """The one who lets the students vote."""
        return Server(
            public,
            tuple(map(label_of, self.classes_.tolist())),
            seed_for(seed, "the server"),
            image=self._form.image,
            noise_seed=self._noise_seed("the server"),
        )

    def _noise_seed(self, name: str) -> int | None:
        """The seed of one side's noise, None for the operating system's entropy."""
        return None if self.noise_seed is None else seed_for(self.noise_seed, f"{name}'s noise")
