"""What the options of simulate, compare and plan new ask for: an algorithm, a noise, a setting."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields
from inspect import signature
from typing import TYPE_CHECKING, Any

from fedkt.cli import options
from fedkt.cli.panels import values_of
from fedkt.errors import ConfigurationError

if TYPE_CHECKING:
    from fedkt.cli.file_options import FileOptions
    from fedkt.cli.groups import DataOptions, NoiseOptions, OutputOptions, PartyOptions, PrivacyOptions, RunOptions
    from fedkt.cli.own_table import TableOptions
    from fedkt.data.own import OwnTable
    from fedkt.lab.setting import Setting
    from fedkt.system.cache import Cache


def noise_choice(
    options: NoiseOptions | PrivacyOptions, *, calibrated: bool, counts: bool = False
) -> tuple[str | None, tuple[tuple[str, float], ...]]:
    """The mechanism and its scale that were given, by `--noise` or by the flags that came before it.

    Where a scale is `calibrated`, the name of the mechanism may stand alone. `counts` also knows the noises of counts
    and sums that are released themselves.
    """
    from fedkt.cli.privacy.words import mechanism_of
    from fedkt.privacy.mechanisms import COUNTS, known_noises, parameters, parse_noise

    mechanism, scale = options.former.mechanism, options.former.values()
    if options.noise is None:
        return (mechanism_of(mechanism, scale) if scale else mechanism), tuple(scale.items())
    former = [*(["mechanism"] if mechanism is not None else []), *scale]
    if former:
        raise ConfigurationError(
            f"--noise {options.noise} names the noise and its scale: leave {flags_of(former)} out."
        )
    if calibrated and options.noise in (known_noises() | COUNTS if counts else known_noises()):
        return options.noise, ()
    noise = parse_noise(options.noise, counts=counts)
    scale_names = dict.fromkeys(name for each in known_noises() for name in parameters(each))
    # In the order of the flags, in which plans and stored results have them.
    return noise.name, tuple((name, noise.scale[name]) for name in scale_names if name in noise.scale)


def algorithm_with(algorithm: str | None, voting: str | None, *, level: str, chosen: Collection[str] = ()) -> str:
    """The algorithm to simulate: as named, FedKT with the voting that is named, or what is usual.

    What is usual hangs on the level, and on the settings that were `chosen`.
    """
    from fedkt.algorithms.usual import usual_algorithm
    from fedkt.algorithms.voting import VOTINGS, Consistent, algorithm_name

    algorithm = None if algorithm is None else full_name(algorithm)
    if voting is None:
        return algorithm or usual_algorithm(level, chosen)
    choice, plain = algorithm_of_voting(voting), algorithm_name(Consistent)
    if algorithm in (None, choice, plain):
        return choice
    for name, each in VOTINGS.items():
        if algorithm == algorithm_name(each):
            raise ConfigurationError(
                f"Algorithm {algorithm!r} has the voting {name}, and --voting says {voting}. Leave one of them out, or "
                f"write --algorithm {plain} --voting {voting}."
            )
    raise ConfigurationError(f"--voting would do nothing: algorithm {algorithm}. Leave it out.")


def algorithm_of_voting(voting: str) -> str:
    """The algorithm that --voting stands for: FedKT with it, or one that has something else in a vote's place."""
    from fedkt.algorithms import Auto, Moments
    from fedkt.algorithms.voting import algorithm_name, make_voting

    others = {each.voting: each.name for each in (Moments, Auto)}
    return others[voting] if voting in others else algorithm_name(make_voting(voting))


def full_name(algorithm: str) -> str:
    """An algorithm's name in the catalogue: one of FedKT's may be called auto for fedkt-auto, one's own is read."""
    from fedkt.algorithms import known_algorithms
    from fedkt.lab.own_algorithm import is_own, own_algorithm

    if is_own(algorithm):
        return own_algorithm(algorithm)
    long, known = f"fedkt-{algorithm}", known_algorithms()
    return long if algorithm not in known and long in known else algorithm


def algorithms_with(
    algorithms: str | None, votings: str | None, *, level: str, chosen: Collection[str] = ()
) -> tuple[str, ...]:
    """The algorithms to compare, each once: FedKT with every voting that is named, beside the others."""
    from fedkt.algorithms.voting import VOTINGS, Consistent, algorithm_name
    from fedkt.cli.catalogues import usual_algorithms
    from fedkt.lab.own_algorithm import is_own

    compared = usual_algorithms(level, chosen) if algorithms is None else algorithms
    words = tuple(dict.fromkeys(options.names(compared)))
    names = tuple(map(full_name, words))
    own = [name for name, word in zip(names, words, strict=True) if is_own(word)]
    if len(set(own)) < len(own):
        raise ConfigurationError(
            f"Two files have an algorithm {own[0]}: results could not tell them apart. Rename one."
        )
    if votings is None:
        return tuple(dict.fromkeys(names))
    plain = algorithm_name(Consistent)
    # Where nobody chose algorithms, the votings named stand for all of FedKT's.
    placeholders = {plain} if algorithms is not None else {algorithm_name(each) for each in VOTINGS.values()}
    if not placeholders & set(names):
        raise ConfigurationError(f"--voting would do nothing: {plain} is not among the algorithms. Leave it out.")
    choices = [algorithm_of_voting(each) for each in options.names(votings)]
    return tuple(dict.fromkeys(each for name in names for each in (choices if name in placeholders else [name])))


def settings_of(
    dataset: str, data: DataOptions, table: TableOptions, file: FileOptions, run: RunOptions
) -> dict[str, Any]:
    """The fields of a setting that the options of a verb give."""
    from fedkt.cli.own_table import own_table
    from fedkt.lab.setting import Setting
    from fedkt.models.catalogue import canonical_name

    values = values_of(data, run)
    own = own_table(dataset, table, file.format())
    check_partition(run.parties, own)
    name = dataset if own is None else own.name
    values |= {"dataset": with_extra_part(name) if data.extra else name, "own": own}
    calibrated = run.privacy.epsilon is not None
    values["mechanism"], values["scale"] = noise_choice(run.privacy, calibrated=calibrated, counts=True)
    values["party_models"] = tuple(map(canonical_name, options.names(run.families.party_models)))
    roles = [name for name in ("model", "teacher", "student", "final") if values.get(name) is not None]
    values |= {name: canonical_name(values[name]) for name in roles}
    values["class_shares"] = options.shares(run.shares.class_shares)
    values["queries"] = options.number_or_fraction(run.privacy.queries)
    field_names = {each.name for each in fields(Setting)}
    return {name: value for name, value in values.items() if name in field_names and value is not None}


def student_cache(output: OutputOptions, settings: Sequence[Setting], *, diagnostic: bool = False) -> Cache | None:
    """The cache that was asked for; refused where nothing would be kept in it."""
    from fedkt.lab.kept import check_cache, keeps_students
    from fedkt.system.cache import Cache

    if output.cache is None:
        return None
    if output.bytes_ or diagnostic:
        raise ConfigurationError(
            "--cache would do nothing: kept is what students say; --bytes packs the students themselves, and "
            "--diagnostic looks at their teachers' votes. Leave one of them out."
        )
    if not any(map(keeps_students, settings)):
        names = ", ".join(dict.fromkeys(each.algorithm for each in settings))
        raise ConfigurationError(f"--cache would do nothing: no students are kept of {names}. Leave it out.")
    cache = Cache(output.cache)
    check_cache(cache)
    return cache


def check_partition(parties: PartyOptions, own: OwnTable | None) -> None:
    """Refuse a partition of rows whose parties a column names, and a column that is not named."""
    if own is None:
        return
    if own.party_column is not None and parties.partition not in (None, "column"):
        raise ConfigurationError(
            f"--party-column {own.party_column} says who holds a row, and --partition {parties.partition} deals rows "
            f"out. Leave one of them out; --ignore {own.party_column} keeps the column from the models."
        )
    if own.party_column is None and parties.partition == "column":
        raise ConfigurationError(f"Which column of {own.name} names the parties? Pass --party-column.")


def with_extra_part(dataset: str) -> str:
    """The dataset that also has the extra part of this one."""
    from fedkt.data import known_datasets

    name = f"{dataset}-extra"
    if name not in known_datasets():
        raise ConfigurationError(f"Dataset {dataset!r} has no extra part; svhn has. Leave --extra out.")
    return name


def check_used(values: Mapping[str, Any], setting: Setting) -> None:
    """Refuse options that do nothing here: whoever gives one believes that it does something."""
    from fedkt.lab.setting import Setting

    idle = idle_settings(setting)
    # What it would be anyway may be said.
    without = Setting(**{name: value for name, value in values.items() if name not in idle}).with_defaults()
    unused = [name for name in idle if name in values and values[name] != getattr(without, name)]
    if unused:
        raise ConfigurationError(
            f"{flags_of(unused)} would do nothing: algorithm {setting.algorithm}, model {setting.model}, partition "
            f"{setting.partition}. Leave it out."
        )


def idle_settings(setting: Setting) -> list[str]:
    """The fields of a setting that nothing in it looks at: neither its algorithm, nor its models, nor its partition."""
    from fedkt.algorithms import known_algorithms
    from fedkt.data.partition import PARTITIONERS
    from fedkt.models.catalogue import known_models, trained_for

    assert setting.partition is not None
    cards = known_algorithms()
    takes = cards[setting.algorithm].takes
    _, *of_training = signature(trained_for).parameters
    of_networks = [name for name in of_training if name not in takes]
    of_others = {name for card in cards.values() for name in card.takes} - takes - set(of_networks)
    idle = [each.name for each in fields(setting) if each.name in of_others]
    families = {setting.model, setting.teacher, setting.student, setting.final, *setting.party_models}
    if not any(family.network for name, family in known_models().items() if name in families):
        idle += of_networks
    if "beta" not in signature(PARTITIONERS[setting.partition]).parameters:
        idle.append("beta")
    return idle


def flags_of(names: list[str]) -> str:
    """Options as they are typed."""
    return ", ".join("--" + name.replace("_", "-") for name in names)


def chosen_among(values: Mapping[str, Any]) -> list[str]:
    """The fields of a setting that somebody gave a value that says something; a noise of sums is not one of votes."""
    from fedkt.privacy.sums import GaussianSums

    chosen = [name for name, value in values.items() if value not in ((), False)]
    return [name for name in chosen if (name, values[name]) != ("mechanism", GaussianSums.name)]
