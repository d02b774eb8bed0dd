"""Plans whose parties send sums of public features by class, from which the server solves one classifier."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from fedkt.algorithms.class_sums import MOMENTS
from fedkt.algorithms.moments import Moments, noise_for_epsilon
from fedkt.algorithms.received_sums import CERTAIN
from fedkt.bundle import Bundle
from fedkt.errors import ConfigurationError, ModelError, PlanError
from fedkt.models.catalogue import trained_for
from fedkt.plan.features import Features, packed_features
from fedkt.plan.method import Method, Table
from fedkt.privacy import Price
from fedkt.privacy.sums import GaussianSums

if TYPE_CHECKING:
    from fedkt.plan.agreement import Plan

HEAD = "head"
"""What the final model is called that no family has learned."""
EXACT = (
    "  Level L0 adds no noise: epsilon is infinite. A party's file tells how many rows of each label it has, and exact",
    "  sums of them: of one row the sum is the row, and of few rows they can be guessed. Classes of which a party has",
    "  fewer than ten rows stay at home. Send it only to a server you trust with that, or agree on level L2.",
)


SERVER_SEES = (
    "The server is trusted with every party's sums as they are: of one row the sum is the row. It shortens what it "
    "makes of each party's sums to length 1, so that a party moves the total by 2 at most, whatever it sends."
)
PUBLIC_SHARES = (
    "The class shares in this plan are known to everybody, and nothing is promised about them. Shares counted in the "
    "parties' rows do not belong here: that would be a release that nobody paid for."
)
SHARES_HELP = (
    "Where everybody knows the class shares, from a census or a register, --class-shares makes the final model better "
    "at the same epsilon."
)


class SumsMethod(Method):
    """FedKT by moments."""

    name = Moments.voting
    called = "moments"
    server_rule = "the server adds up the parties' sums and solves one classifier from their total"
    assumption = "Public rows resemble the parties', classes are about linear in the features, and sums are honest."
    silent = frozenset({"partitions", "subsets"})
    level_words = Method.level_words | {
        "L1": "noise at the server protects each party; the server sees every party's sums without noise"
    }
    models_comment: ClassVar[str] = (
        "Nothing is trained at a party. final: who learns what the solved classifier says of the public rows, where\n"
        "it is not itself the final model. default: what a party compares the final model with (--evaluate)."
    )
    privacy_comment: ClassVar[str] = """\
mechanism and scale: the noise on every number of a party's sums (L2), or of the total of the parties (L1).
budget: the epsilon that all releases of one owner (L1: the server, L2: a party) may cost together, at this delta.
class_shares: those that everybody knows, in the order of the classes."""
    tells_counts = True
    cuts_rows: ClassVar[bool] = False
    scaled = "sums"

    def shape(self, level: str, partitions: int | None, subsets: int | None) -> dict[str, int]:
        """One of each: rows are not cut."""
        return {"partitions": 1 if partitions is None else partitions, "subsets": 1 if subsets is None else subsets}

    def check_new(self, level: str, shape: Mapping[str, int], models: Mapping[str, Any]) -> None:
        """Refuse what only students have."""
        if set(shape.values()) != {1}:
            raise PlanError("The new plan: moments cuts no rows: leave partitions (s) and subsets (t) out.")
        idle = [role for role in ("teacher", "student", "parties") if models.get(role)]
        if idle:
            raise PlanError(f"The new plan: moments trains nothing at a party: leave models.{idle[0]} out.")

    def privacy_table(self, table: Table, level: str, figures: dict[str, int], shape: Mapping[str, int]) -> Table:
        """The [privacy] table for what was asked for: an ε becomes the smallest noise that keeps it."""
        if "queries" in table:
            raise ConfigurationError("Sums are one release, however many public rows there are: leave queries out.")
        epsilon = table.pop("epsilon", None)
        if epsilon is None and not ("mechanism" in table and "scale" in table):
            raise ConfigurationError(
                f"Level {level} needs a noise: --epsilon, or --noise {GaussianSums.name}:SIGMA on the command line."
            )
        if table.setdefault("mechanism", GaussianSums.name) != GaussianSums.name:
            raise ConfigurationError(
                f"Sums leave with noise of their own ({GaussianSums.name}), got {table['mechanism']}. Give --epsilon, "
                f"or --noise {GaussianSums.name}:SIGMA."
            )
        if epsilon is not None:
            noise = noise_for_epsilon(epsilon=epsilon, delta=table["delta"], classes=figures["classes"])
            table["scale"] = dict(noise.scale)
        return table

    def features(self, public: Any, image: tuple[int, int, int] | None, level: str) -> Features:
        """The map of the public rows."""
        return packed_features(Moments(None, level=level).map_of(public, image))

    def check(self, plan: Plan) -> None:
        """Refuse values that do not go together, and a feature map that breaks the rules of received graphs."""
        private, models = plan.privacy, plan.models
        if (plan.partitions, plan.subsets) != (1, 1):
            raise ValueError("partitions, subsets: moments cuts no rows, so leave both out")
        if models.teacher or models.student or models.parties:
            raise ValueError("models: moments trains nothing at a party, so it has no teacher, student or parties")
        if private is not None and (private.queries, private.count_sigma) != (None, None):
            raise ValueError("privacy: sums are one release, so it has no queries and no count_sigma")
        if private is not None and private.adjacency != "replace-one":
            raise ValueError("privacy.adjacency: moments protects a record or a party against being replaced")
        if plan.level == "L1" and any(member.rows is not None for member in plan.parties):
            raise ValueError("parties: at level L1 every party counts the same, whatever its rows, so leave rows out")
        if plan.features is None:
            raise ValueError("features is missing, the map that everybody sums up. Make the plan anew: fedkt plan new")
        algorithm = self.algorithm(plan)
        algorithm.check()
        # Class shares that are none are refused here, before anybody agrees on them.
        algorithm.releases(**plan.public_figures)

    def algorithm(self, plan: Plan) -> Moments:
        """Moments as agreed, with the plan's own map."""
        models, private = plan.models, plan.privacy
        return Moments(
            trained_for(models.default, models.epochs),
            final=trained_for(models.final, models.epochs),
            level=plan.level,
            noise=None if private is None else private.noise,
            class_shares=None if private is None else private.class_shares,
            features=plan.feature_map,
            copies=bool(models.copies),
        )

    def expected(self, plan: Plan) -> dict[str, Any]:
        """Sums of these shapes, and no models."""
        assert plan.features is not None
        shapes = self.algorithm(plan).array_shapes(plan.features.width, len(plan.classes))
        return {"max_models": 0, "arrays": shapes}

    def weighs_rows(self, level: str) -> bool:
        """Not at level L1: there a party is one table, as long as any other."""
        return level != "L1"

    def try_on(self, plan: Plan, public: Any) -> None:
        """Refuse a plan whose feature map does not work on the public rows."""
        assert plan.feature_map is not None
        try:
            plan.feature_map.try_on(public)
        except ModelError as reason:
            raise PlanError(f"The plan is refused, and no row of yours was read: {reason}") from reason

    def within_rows(self, plan: Plan, bundle: Bundle) -> Bundle:
        """The bundle, its noisy sums scaled down to the rows that its party may tell of."""
        most, noise = plan.most_rows(bundle.sender), None if plan.privacy is None else plan.privacy.noise
        if most is None or plan.level != "L2" or not isinstance(noise, GaussianSums):
            return bundle
        rows = float(bundle.arrays[MOMENTS][0].sum()) * noise.step
        if rows <= most:
            return bundle
        smaller = np.floor(bundle.arrays[MOMENTS] * (most / rows)).astype(np.int64)
        return replace(bundle, arrays={MOMENTS: smaller})

    def bundle_fault(self, plan: Plan, bundle: Bundle) -> str:
        """Why sums are not believed, or nothing where they are."""
        assert plan.feature_map is not None
        try:
            sums = self.algorithm(plan).sums_in(bundle, plan.feature_map)
        except ModelError as reason:
            return str(reason)
        most, rows = plan.most_rows(bundle.sender), float(sums.counts.sum())
        if most is not None and rows > most + 1e-6 * most:
            return f"it says that its party has {rows:.0f} rows, more than the {most} agreed on in the plan."
        return ""

    def queries_words(self, plan: Plan) -> str:
        """None are asked."""
        return "no rows"

    def party_words(self, plan: Plan) -> str:
        """What each party does before it sends anything."""
        assert plan.features is not None
        products = ", and the products of these numbers over all its rows" * (plan.level == "L0")
        noise = ", and adds noise to every number of the sums" * (plan.level == "L2")
        return (
            f"Each party makes {plan.features.width} numbers of each of its rows, by the feature map in this plan, and "
            f"adds them up over its rows of each label{products}{noise}. Nothing is trained at a party."
        )

    def final_words(self, plan: Plan) -> str:
        """What the server's last step makes."""
        if plan.models.final is None:
            return "serves it, feature map included, as the final model"
        return f"trains the final model ({plan.models.final}) on what it says of the public rows"

    def final_name(self, plan: Plan) -> str:
        """The family of the final model, or that it is the head itself."""
        return plan.models.final or HEAD

    def models_words(self, plan: Plan) -> str:
        """None at a party."""
        final = "the solved head itself" if plan.models.final is None else plan.models.final
        return f"none at a party; the final model is {final}"

    def travel_words(self, plan: Plan) -> tuple[str, ...]:
        """What a party's file holds, and what stays, in lines."""
        assert plan.features is not None
        width, classes = plan.features.width, len(plan.classes)
        sums = f"sums of {width} features for each of {classes} labels"
        products = f" and {width * (width + 1) // 2:,} sums of their products"
        more = {"L0": products, "L1": "", "L2": ", with noise"}[plan.level]
        claim = ", privacy claim" * (plan.level == "L2")
        return (
            f"  One file per party: {sums}{more},",
            f"  and a manifest (party, plan, classes, versions, digests{claim}). Rows and labels stay with the party.",
        )

    def risk_lines(self, plan: Plan) -> tuple[str, ...]:
        """Without noise: what whoever reads a party's file learns of it."""
        return EXACT

    def released_words(self, plan: Plan, price: Price) -> str:
        """What leaves with how much noise."""
        if plan.level == "L1":
            return f"every number of the total of {len(plan.parties)} parties, one release"
        return "every number of a party's sums, one release"

    def noise_words(self, plan: Plan, price: Price) -> str:
        """How far the noise moves a count."""
        if plan.level == "L1":
            return (
                f"It moves every number of a total, to which a party adds a table of length 1 at most, by about "
                f"{price.release.noise.spread:.3g}: many parties drown it, few parties drown in it."
            )
        least = CERTAIN * price.release.noise.spread * math.sqrt(len(plan.parties))
        return (
            f"It moves the number of a party's rows with a label by about {price.release.noise.spread:.3g} rows, and "
            "every other sum by as much: many rows drown it, few rows drown in it. A label of which all parties "
            f"together have fewer than about {least:,.0f} rows is lost, and without two that are not there is no model."
        )

    def privacy_words(self, plan: Plan) -> tuple[str, ...]:
        """What the promise hangs on."""
        if plan.level == "L1":
            shares = () if plan.privacy is None else plan.privacy.class_shares
            return (SERVER_SEES, *([PUBLIC_SHARES] if shares else []))
        return (
            "Every row counts as a record. What the feature map says of a row is cut to the length that the noise is "
            "made for, at the party and whatever the map is: the promise holds for a map of strangers as well.",
        )

    def advice(self, plan: Plan) -> str:
        """What to know of public rows that do not resemble the parties'."""
        if plan.level == "L0":
            return ""
        if plan.level == "L1":
            known = plan.privacy is not None and plan.privacy.class_shares is not None
            return "" if known else SHARES_HELP
        return (
            "How features go together is taken from the public rows: where these do not resemble the parties' rows, "
            "other class shares, say, the final model is worse. The server warns of it where the noise lets that show."
        )
