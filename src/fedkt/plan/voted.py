"""Plans whose parties train students, which vote."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from fedkt.algorithms import FedKT
from fedkt.algorithms.calibration import check_adjacency, noise_for_epsilon
from fedkt.algorithms.chances import chances_in_words
from fedkt.algorithms.fedkt import number_of_queries
from fedkt.algorithms.voting import Consistent, Voting
from fedkt.bundle import Bundle
from fedkt.data.values import plural
from fedkt.errors import ConfigurationError, PlanError
from fedkt.models.catalogue import known_models, trained_for
from fedkt.plan.method import Method, Table
from fedkt.privacy import Price, check_level, make_noise
from fedkt.privacy.mechanisms import USUAL

if TYPE_CHECKING:
    from fedkt.plan.agreement import Plan

UNPROTECTED = (
    "  Level L0 adds no noise: epsilon is infinite. A student is trained on what the party's rows say of public rows,",
    "  and whoever holds it can learn something about those rows, for instance by asking it many questions. Send",
    "  bundles only to a server you trust with that, over a channel you trust.",
)


class VotingMethod(Method):
    """FedKT with a voting."""

    models_comment: ClassVar[str] = "Families by name; teacher, student and final follow from the default unless given."
    privacy_comment: ClassVar[str] = """\
mechanism and scale: the noise on the vote counts. queries: public rows that are asked (a number, or a fraction).
budget: the epsilon that all releases of one owner (L1: the server, L2: a party) may cost together, at this delta."""
    cuts_rows: ClassVar[bool] = True

    def __init__(self, voting: Voting) -> None:
        self.voting = voting
        self.name = voting.name
        self.called = f"{voting.name} voting"
        self.server_rule = voting.server_rule
        self.assumption = voting.assumption
        # The paper's own voting goes without saying.
        self.silent = frozenset({"voting"}) if voting.name == Consistent.name else frozenset()
        self.tells_counts = voting.class_counts
        self.scaled = "class counts" if voting.class_counts else "student's claims"

    def shape(self, level: str, partitions: int | None, subsets: int | None) -> dict[str, int]:
        """The partitions and subsets of a plan, by default those of its voting."""
        return {
            "partitions": self.voting.partitions(level) if partitions is None else partitions,
            "subsets": self.voting.subsets(level) if subsets is None else subsets,
        }

    def check_new(self, level: str, shape: Mapping[str, int], models: Mapping[str, Any]) -> None:
        """Refuse a shape that does not fit the voting."""
        try:
            self.voting.check(level=level, partitions=shape["partitions"], subsets=shape["subsets"])
        except ConfigurationError as reason:
            raise PlanError(f"The new plan: {reason}") from reason

    def privacy_table(self, table: Table, level: str, figures: dict[str, int], shape: Mapping[str, int]) -> Table:
        """The [privacy] table for what was asked for: an ε becomes the smallest noise that keeps it."""
        epsilon = table.pop("epsilon", None)
        table.setdefault("queries", 1.0)
        s, t = shape["partitions"], shape["subsets"]
        fedkt = FedKT(None, voting=self.voting, level=level, queries=table["queries"], partitions=s, subsets=t)
        if epsilon is None and not ("mechanism" in table and "scale" in table):
            raise ConfigurationError(
                f"Level {level} needs a noise: a mechanism with its scale (mechanism gaussian, sigma 40), or an "
                "epsilon that the smallest noise is found for."
            )
        if epsilon is not None:
            table.setdefault("mechanism", USUAL)
            noise = noise_for_epsilon(fedkt, table["mechanism"], epsilon=epsilon, delta=table["delta"], **figures)
            table["scale"] = dict(noise.scale)
        if level == "L2" and self.voting.class_counts:
            noise = make_noise(table["mechanism"], table["scale"])
            counts = self.voting.count_noise(fedkt.with_noise(noise), figures["public_rows"])
            assert counts is not None
            table["count_sigma"] = counts.sigma
        return table

    def features(self, public: Any, image: tuple[int, int, int] | None, level: str) -> None:
        """None: students learn from the rows as they are."""
        return

    def check(self, plan: Plan) -> None:
        """Refuse values that do not go together."""
        privacy, voting = plan.privacy, self.voting
        if plan.features is not None:
            raise ValueError("features is given, a feature map, which only moments has")
        if privacy is not None:
            try:
                check_level("L2", privacy.noise)
            except ConfigurationError as reason:
                raise ValueError(f"privacy: {reason}") from reason
            if privacy.queries is None:
                raise ValueError("privacy.queries is missing")
        voting.check(level=plan.level, partitions=plan.partitions, subsets=plan.subsets)
        if privacy is not None:
            check_adjacency(plan.level, privacy.adjacency)
        if privacy is not None and privacy.class_shares is not None:
            raise ValueError("privacy.class_shares is given, which only moments at level L1 has")
        noisy_counts = plan.level == "L2" and voting.class_counts
        if privacy is not None and (privacy.count_sigma is not None) != noisy_counts:
            wrong = "is missing, the noise on class counts that" if noisy_counts else "is given, which only"
            raise ValueError(f"privacy.count_sigma {wrong} expert voting at level L2 has")
        if not self.weighs_rows(plan.level) and any(member.rows is not None for member in plan.parties):
            raise ValueError(
                "parties: rows are the most that a party may tell of, and only expert voting and moments have it tell"
            )
        self._check_families(plan)
        if privacy is not None and privacy.queries is not None:
            number_of_queries(privacy.queries, plan.public.rows)

    def _check_families(self, plan: Plan) -> None:
        models = plan.models
        studying = {models.student or models.default, models.teacher, *models.parties.values()}
        mute = sorted(name for name, each in known_models().items() if name in studying and not each.probabilities)
        if self.voting.background_class and mute:
            raise ValueError(
                f"models: {mute[0]} does not say how sure it is, which expert voting without counts needs. Choose "
                "another family, or another voting"
            )

    def algorithm(self, plan: Plan) -> FedKT:
        """FedKT as agreed."""
        models, private = plan.models, plan.privacy
        return FedKT(
            trained_for(models.default, models.epochs),
            teacher=trained_for(models.teacher, models.epochs),
            student=trained_for(models.student, models.epochs),
            final=trained_for(models.final, models.epochs),
            voting=self.voting,
            partitions=plan.partitions,
            subsets=plan.subsets,
            level=plan.level,
            noise=None if private is None else private.noise,
            queries=1.0 if private is None or private.queries is None else private.queries,
            adjacency="replace-one" if private is None else private.adjacency,
            copies=bool(models.copies),
        )

    def expected(self, plan: Plan) -> dict[str, Any]:
        """Students, and where the voting wants them class counts."""
        return {
            "max_models": plan.partitions,
            "counts": self.voting.class_counts,
            "soft": self.voting.probabilities,
            "background_class": self.voting.background_class,
        }

    def weighs_rows(self, level: str) -> bool:
        """Where students say how sure they are, which hangs on how many rows are behind them."""
        return self.voting.probabilities

    def calibrated(self, plan: Plan, name: str) -> bool:
        """Whether this party's students are to be of families that find a class about as probable as it is."""
        return self.voting.calibrated(self.algorithm(plan), plan.models.parties.get(name))

    def within_rows(self, plan: Plan, bundle: Bundle) -> Bundle:
        """The bundle, its class counts scaled down to the rows that its party may tell of."""
        return replace(bundle, counts=scale_down(bundle.counts, plan.most_rows(bundle.sender)))

    def bundle_fault(self, plan: Plan, bundle: Bundle) -> str:
        """Why students or class counts are not believed, or nothing where they are."""
        if len(bundle.models) != plan.partitions:
            # Fewer students agree more easily: a party that sends one of two would vote on every row.
            count = "1 student" if len(bundle.models) == 1 else f"{len(bundle.models)} students"
            return f"it holds {count}, but {plan.partitions} were agreed on (partitions)."
        most, rows = plan.most_rows(bundle.sender), sum(bundle.counts or ())
        if most is not None and rows > most:
            return f"it says that its party has {rows} rows, more than the {most} agreed on in the plan."
        return ""

    def queries_words(self, plan: Plan) -> str:
        """The public rows that are asked."""
        if plan.privacy is None or plan.privacy.queries is None:
            return "the public rows"
        k = number_of_queries(plan.privacy.queries, plan.public.rows)
        return f"{k} of the public rows (the same for everybody, chosen by a fixed rule)"

    def party_words(self, plan: Plan) -> str:
        """What each party does before it sends anything."""
        if self.voting.background_class:
            return (
                "Each party trains two teachers on its rows and, as one class more, on a half of the public rows each, "
                "which are not its own. Each says of the other half how likely a row is of each class and how likely "
                "not the party's at all, and a student learns that."
            )
        s, t = plan.partitions, plan.subsets
        students = plural(s, "student")
        if self.voting.probabilities and plan.level == "L0":
            teaches = "a teacher on all its rows" if t == 1 else f"a teacher on each of {t} parts of its rows"
            return (
                f"Each party trains {teaches} and asks it how probable it finds the classes of each public row. A "
                f"student learns these probabilities or, in families that cannot, the likeliest class: {students} a "
                "party."
            )
        return (
            f"Each party cuts its rows {plural(s, 'time')} into {plural(t, 'subset')}, trains a teacher on each, lets "
            f"the {t} vote on {self.queries_words(plan) if plan.level == 'L2' else 'the public rows'}, "
            f"{'adds noise to the counts, ' * (plan.level == 'L2')}and trains a student on the winning labels: "
            f"{students} a party."
        )

    def final_words(self, plan: Plan) -> str:
        """What the server's last step makes."""
        return f"trains the final model ({self.final_name(plan)})"

    def final_name(self, plan: Plan) -> str:
        """The family of the final model."""
        return plan.models.final or plan.models.default

    def models_words(self, plan: Plan) -> str:
        """The families that are trained, and by whom."""
        models = plan.models
        roles = [f"{role} {name}" for role in ("teacher", "student", "final") if (name := getattr(models, role))]
        own = [f"{party} uses {family}" for party, family in models.parties.items()]
        long = [] if models.epochs is None else [f"networks are trained for {plural(models.epochs, 'epoch')}"]
        copies = ["the final network also learns each public image shifted by one pixel"] if models.copies else []
        return "; ".join([models.default, *roles, *own, *long, *copies])

    def travel_words(self, plan: Plan) -> tuple[str, ...]:
        """What a party's file holds, and what stays, in lines."""
        silent = " and votes" if plan.level == "L2" or self.voting.probabilities else ", votes and row counts"
        return (
            f"  One file per party: {plural(plan.partitions, 'student')} as ONNX, and a manifest (party, plan, "
            f"classes, versions, digests{', privacy claim' * (plan.level == 'L2')}"
            f"{', the rows of each class' * self.voting.class_counts}).",
            f"  Rows, labels, teachers{silent} stay with the party.",
        )

    def risk_lines(self, plan: Plan) -> tuple[str, ...]:
        """Without noise: what whoever reads a party's file learns of it."""
        return (*UNPROTECTED, *self.voting.reveals)

    def released_words(self, plan: Plan, price: Price) -> str:
        """What leaves with how much noise."""
        return f"{plural(price.release.queries, 'released label')}, {plural(price.release.voters, 'voter')}"

    def noise_words(self, plan: Plan, price: Price) -> str:
        """How often the noise leaves labels standing."""
        return chances_in_words(price)

    def privacy_words(self, plan: Plan) -> tuple[str, ...]:
        """Class counts, and how records are dealt to voters."""
        assert plan.privacy is not None
        words = []
        if plan.privacy.count_sigma is not None:
            words.append(
                "With them every party's class counts leave, with Gaussian noise (sigma "
                f"{plan.privacy.count_sigma:.4g} rows). They are in this price."
            )
        if plan.level == "L2":
            words.append(
                f"Every party has {plural(plan.subsets, 'voter')}, whatever its rows: a subset without rows, or whose "
                "teacher fails, votes by a fixed rule. Which subset a record is in, its own identity decides (--id)."
            )
            if plan.privacy.adjacency == "add-or-remove":
                words.append(
                    "A record may also be added or removed: every party needs identities of its records, that is --id "
                    "COLUMN, ids in an NPZ file, or files of images."
                )
        return tuple(words)

    def advice(self, plan: Plan) -> str:
        """What whoever agrees on it should know beforehand; nothing where nobody can be outvoted."""
        return self.voting.advice(plan.level) if len(plan.parties) > 1 else ""


def scale_down(counts: tuple[int, ...] | None, most: int | None) -> tuple[int, ...] | None:
    """Counts scaled down to what a party may tell: noise may have made them more, and what noise gave costs nothing."""
    if counts is None or most is None or sum(counts) <= most:
        return counts
    return tuple(each * most // sum(counts) for each in counts)
