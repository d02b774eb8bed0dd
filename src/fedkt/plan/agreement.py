"""Plan: what everyone agrees on before the one round."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from fedkt.algorithms import FedKT, Moments
from fedkt.bundle import Expected
from fedkt.data.images import folder_digest, image_shape, labels_file
from fedkt.data.nearest import nearest
from fedkt.data.schema import Schema
from fedkt.data.table import Table
from fedkt.data.values import as_key
from fedkt.errors import DataError, PlanError
from fedkt.models.catalogue import MODELS, trained_for
from fedkt.models.features.received import ReceivedMap
from fedkt.plan.features import Features
from fedkt.plan.method import Method
from fedkt.plan.methods import make_method
from fedkt.plan.parts import (
    MAX_CLASSES,
    MAX_PARTIES,
    CardTexts,
    Class,
    Level,
    Member,
    ModelChoice,
    Part,
    PublicRows,
    Text,
    VotingName,
)
from fedkt.plan.privacy import Privacy, rounded_budget
from fedkt.privacy import Price, Release
from fedkt.system.files import open_plain


class Plan(Part):
    """What everyone agrees on."""

    # Not Literal[1], which takes true for 1.
    format: Annotated[int, Field(ge=1, le=1)] = 1
    task: Text
    classes: tuple[Class, ...] = Field(min_length=2, max_length=MAX_CLASSES, fail_fast=True)
    level: Level = "L0"
    partitions: Annotated[int, Field(ge=1, le=1_000)]
    subsets: Annotated[int, Field(ge=1, le=100_000)]
    voting: VotingName = "consistent"
    """How the server weighs the parties, or "moments": see `fedkt.plan.methods`."""
    seed: Annotated[int, Field(ge=0, lt=2**63)] | Literal["private"] = 0
    """A number that everybody derives their own generator from, or "private": everybody draws and keeps their own."""
    min_parties: Annotated[int, Field(ge=1)] | None = None
    """How many parties the server needs at least; None leaves it to the server, which then waits for all."""
    privacy: Privacy | None = None
    """The noise of level L1 or L2, and what it may cost."""
    card: CardTexts | None = None
    """What the model card says of purpose and limits, in the words of whoever made the plan."""
    public: PublicRows
    models: ModelChoice
    parties: tuple[Member, ...] = Field(min_length=1, max_length=MAX_PARTIES, fail_fast=True)
    columns: Schema = Field(alias="schema")
    """The agreed columns and label, fitted on the public rows."""
    features: Features | None = None
    """The map from an encoded row to the numbers that are summed up, where parties send sums."""

    @model_validator(mode="after")
    def _check(self) -> Plan:
        if self.level == "L0" and self.privacy is not None:
            raise ValueError("privacy: level L0 adds no noise. Remove the [privacy] table, or choose level L1 or L2")
        if self.level != "L0" and self.privacy is None:
            raise ValueError(
                f"privacy is missing: level {self.level} needs a noise, that is a [privacy] table with mechanism, "
                "scale, queries and delta"
            )
        self.method.check(self)
        self._check_images()
        # On some file systems North.fedkt and north.fedkt are the same file.
        twice = [name for name, count in Counter(name.casefold() for name in self.names).items() if count > 1]
        if twice:
            raise ValueError(
                f"parties: {', '.join(map(repr, twice))} is named more than once (upper case is no difference)"
            )
        unknown = [name for name in self.models.parties if name not in self.names]
        if unknown:
            raise ValueError(f"models.parties: {unknown[0]!r} is not a party. The parties are: {', '.join(self.names)}")
        keys = [as_key(each) for each in self.classes]
        if len(set(keys)) != len(keys):
            raise ValueError(
                f"classes: {', '.join(map(str, self.classes))} contain the same class twice (1 and '1' are the same)"
            )
        if len(set(self.keys.values())) != len(self.keys):
            raise ValueError("parties: two of them have the same key; every party signs with a key of its own")
        if self.min_parties is not None and self.min_parties > len(self.parties):
            raise ValueError(f"min_parties: {self.min_parties} are more than the {len(self.parties)} parties")
        return self

    def _check_images(self) -> None:
        """Refuse families that read images where there are none: somebody would find out when it trains."""
        models = self.models
        if models.copies and (self.image is None or not MODELS[models.final or models.default].network):
            raise ValueError(
                "models.copies: shifted copies are for a final network (mlp, cnn) whose rows are images. Remove it, or "
                "plan with a folder or an IDX file of images and such a network"
            )
        used = {models.default, models.teacher, models.student, models.final, *models.parties.values()}
        blind = sorted(name for name, each in MODELS.items() if name in used and each.only_images)
        if blind and self.image is None:
            raise ValueError(
                f"models: {blind[0]} reads images, and the agreed columns are no pixels. Choose another family, or "
                "plan with a folder or an IDX file of images"
            )

    @property
    def names(self) -> tuple[str, ...]:
        """The parties' names, in the plan's order."""
        return tuple(member.name for member in self.parties)

    @property
    def keys(self) -> dict[str, str]:
        """The public keys of the parties that have one."""
        return {member.name: member.key for member in self.parties if member.key is not None}

    @cached_property
    def digest(self) -> str:
        """SHA-256 of what the plan says; comments, layout and the order of keys do not count."""
        values = self.model_dump(mode="json", by_alias=True)
        if self.privacy is None:
            # A plan without noise says what it said before there was any.
            del values["privacy"]
        else:
            for name in ("count_sigma", "queries", "class_shares"):
                if values["privacy"][name] is None:
                    del values["privacy"][name]
        if self.features is None:
            del values["features"]
        else:
            # Its SHA-256 is there.
            del values["features"]["graph"]
        for name in self.method.silent:
            del values[name]
        for member in values["parties"]:
            if member["rows"] is None:
                del member["rows"]
        if self.models.epochs is None:
            # Nor does one without networks say anything about them.
            del values["models"]["epochs"]
        if not self.models.copies:
            del values["models"]["copies"]
        # What nobody wrote for the card is not part of the agreement.
        texts = {} if self.card is None else self.card.model_dump(exclude_none=True)
        del values["card"]
        values |= {"card": texts} if texts else {}
        text = json.dumps(values, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def budget(self) -> float | None:
        """ε that all releases of one owner may cost together; where none was agreed on, the price of one run."""
        if self.privacy is None or self.privacy.budget is not None:
            return None if self.privacy is None else self.privacy.budget
        price = self.price()
        return None if price is None else rounded_budget(price.epsilon)

    def price(self) -> Price | None:
        """What one run costs the server (L1), or every party (L2)."""
        if self.privacy is None:
            return None
        return self.algorithm().price(**self.public_figures, delta=self.privacy.delta)

    def algorithm(self) -> FedKT | Moments:
        """The algorithm as agreed."""
        return self.method.algorithm(self)

    @cached_property
    def method(self) -> Method:
        """How parties pass on what they know, and all that hangs on it."""
        return make_method(
            self.voting,
            count_sigma=None if self.privacy is None else self.privacy.count_sigma,
            most_rows={member.name: member.rows for member in self.parties if member.rows is not None},
        )

    @cached_property
    def feature_map(self) -> ReceivedMap | None:
        """The agreed feature map, checked, where there is one."""
        return None if self.features is None else self.features.received(self.columns.n_features)

    @cached_property
    def expected(self) -> Expected:
        """What a bundle made under this plan looks like."""
        return Expected(
            plan=self.digest,
            classes=self.classes,
            n_features=self.columns.n_features,
            parties=self.names,
            keys=self.keys,
            **self.method.expected(self),
        )

    @property
    def releases(self) -> tuple[Release, ...]:
        """All that one run of the server (L1), or of each party (L2), releases with noise."""
        return () if self.privacy is None else self.algorithm().releases(**self.public_figures)

    @property
    def public_figures(self) -> dict[str, int]:
        """What a price is computed from, besides the noise and the votes that it is for."""
        return {"public_rows": self.public.rows, "classes": len(self.classes), "parties": len(self.parties)}

    def own_model(self, name: str) -> Any:
        """The model that a party uses instead of the default, None where it follows the default."""
        return trained_for(self.models.parties.get(name), self.models.epochs)

    def calibrated(self, name: str) -> bool:
        """Whether this party's students are to be of families that find a class about as probable as it is."""
        return self.method.calibrated(self, name)

    @property
    def image(self) -> tuple[int, int, int] | None:
        """Height, width and channels, where the agreed columns are the pixels of an image."""
        return image_shape(self.columns.feature_names)

    def most_rows(self, name: str) -> int | None:
        """The most rows this party may tell of; None for any number."""
        return self.parties[self.names.index(name)].rows

    def require(self, name: str) -> str:
        """The name, if it is a party of this plan."""
        if name not in self.names:
            near = nearest(name, self.names)
            offer = "" if near is None else f" Did you mean {near!r}?"
            raise PlanError(f"This plan has no party {name!r}. Its parties are: {', '.join(self.names)}.{offer}")
        return name

    def read_public(self, path: str | Path) -> Table:
        """The public rows in a file, if it is the very file that was agreed on."""
        got = file_digest(path)
        if got != self.public.sha256:
            raise PlanError(
                f"{path} is not the public file of this plan: its SHA-256 is {got[:12]}…, agreed was "
                f"{self.public.sha256[:12]}… ({self.public.file}, {self.public.rows} rows). Get the file that came "
                "with the plan; opening and saving it in a spreadsheet is enough to change it."
            )
        table = self.columns.read(path, labelled=False)
        if table.n_rows != self.public.rows:
            raise PlanError(f"{path} has {table.n_rows} rows, but the plan says {self.public.rows}. Make a new plan.")
        return table

    def to_toml(self) -> str:
        """The plan as TOML, with comments that explain it."""
        from fedkt.plan.text import to_toml

        return to_toml(self)

    def explain(self) -> str:
        """In words: what everybody agrees on, what travels, and what is (not) protected."""
        from fedkt.plan.text import explain

        return explain(self)


def file_digest(path: str | Path, *, with_labels: bool = False) -> str:
    """SHA-256 of a file's bytes, or of a folder of images; with that of the file its labels lie in, if asked for."""
    labels = labels_file(Path(path)) if with_labels else None
    if labels is not None:
        return hashlib.sha256((file_digest(path) + file_digest(labels)).encode()).hexdigest()
    try:
        if Path(path).is_dir():
            return folder_digest(Path(path))
        with open_plain(path) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as reason:
        raise DataError(f"{path} cannot be read: {reason.strerror}. Check the path.") from reason
