"""Options as they are written, and what they come to: groups, panels, lists of names, one noise, one voting."""

import io
import json
import re
import shlex
from contextlib import redirect_stdout
from dataclasses import dataclass
from typing import Annotated, ClassVar

import pytest
import typer
from typer.main import get_command
from typer.testing import CliRunner

from command_line import fedkt
from fedkt import FedKTClassifier
from fedkt.algorithms import ALGORITHMS
from fedkt.algorithms.voting import VOTINGS
from fedkt.cli import app
from fedkt.cli.fitting import pairs_of, values_by_column
from fedkt.cli.groups import FormerNoiseOptions, PrivacyOptions
from fedkt.cli.options import names, shares
from fedkt.cli.panels import DATA, FILE, MODEL, Verb, values_of, with_groups
from fedkt.cli.runs import algorithms_with, noise_choice
from fedkt.data import DATASETS
from fedkt.data.nearest import map_offer
from fedkt.data.partition import PARTITIONERS
from fedkt.errors import ConfigurationError
from fedkt.models.catalogue import MODELS
from fedkt.plan import read_plan
from fedkt.privacy import NOISES
from live_federation import build, new_plan

PANELS = ("Data", "Federation", "Model", "Privacy", "Rounds, and other methods", "Run and output")
OLD_FLAGS = {
    "laplace:0.5": ("--mechanism", "laplace", "--gamma", "0.5"),
    "gaussian:8": ("--sigma", "8"),
    "gumbel:0.2": ("--theta", "0.2"),
    "confident-gaussian:4,9,6,5": ("--threshold", "4", "--sigma-test", "9", "--sigma", "6", "--answers", "5"),
}
QUICK = ("--model", "tree", "--parties", "3", "--subsets", "2", "--json")


def verbs(command, name="fedkt"):
    """Every command there is, with the words that call it."""
    if not hasattr(command, "commands"):
        yield name, command
    for part, inner in getattr(command, "commands", {}).items():
        yield from verbs(inner, f"{name} {part}")


def told(command, name="fedkt"):
    """A command whose help was asked for."""
    with redirect_stdout(io.StringIO()):
        command.get_help(typer.Context(command, info_name=name))
    return command


def words(text):
    return set(re.findall(r"[\w-]+", text))


@pytest.mark.parametrize("verb", ["simulate", "compare", "plan new"])
def test_help_names_all_that_the_catalogues_hold(verb):
    known = dict(verbs(get_command(app)))
    help_of = {option.name: option.help for option in told(known[f"fedkt {verb}"]).params}
    assert set(MODELS) <= words(help_of["model"])
    assert set(NOISES) <= words(help_of["noise"])
    assert set(VOTINGS) <= words(help_of["voting"])
    if verb != "plan new":
        assert set(ALGORITHMS) <= words(help_of["algorithm" if verb == "simulate" else "algorithms"])
        assert set(PARTITIONERS) <= words(help_of["partition"])
        assert set(DATASETS) <= words(help_of["dataset"])
        assert "of fedprox, fedkt-prox." in help_of["mu"]


@pytest.mark.parametrize(("name", "command"), [*verbs(get_command(app))])
def test_no_help_and_no_completion_shows_a_place_that_nobody_filled(name, command):
    for text in (each.help for each in told(command, name).params if getattr(each, "help", None)):
        assert not re.search(r"\{\w", text), text
    bare = dict(verbs(get_command(app)))[name]
    for each in bare.shell_complete(typer.Context(bare, info_name=name), "--"):
        assert "{" not in (each.help or "")


def test_paragraphs_of_help_break_where_the_terminal_ends_and_not_where_the_source_does(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    shown = fedkt("bench", "--help").stdout
    assert "of its own and on one thread. CPU seconds count: the clock also measures what" in shown
    assert [line.strip() for line in shown.splitlines()].count("fedkt bench digits") == 1


@pytest.mark.parametrize("verb", [("simulate",), ("compare",), ("plan", "new")])
def test_help_comes_in_panels_and_without_the_flags_of_before(verb):
    shown = fedkt(*verb, "--help").stdout
    found = [panel for panel in re.findall(r"╭─ (.+?) ─+╮", shown) if panel != "Arguments"]
    wanted = [each for each in PANELS if verb[0] != "plan" or not each.startswith("Rounds")]
    assert found == [*wanted, FILE]
    assert "--noise" in shown
    assert not words(shown) & {"--mechanism", "--gamma", "--sigma", "--theta", "--threshold", "--sigma-test"}


def test_a_group_becomes_options_and_comes_back_whole():
    @dataclass(frozen=True)
    class Former:
        hidden: ClassVar[bool] = True
        old: Annotated[int | None, typer.Option(help="Before.")] = None

    @dataclass(frozen=True)
    class Rows:
        panel: ClassVar[str] = DATA
        source: Annotated[str, typer.Option(help="From where.")]
        share: Annotated[float, typer.Option(help="How much.")] = 0.5
        former: Former = Former()

    @dataclass(frozen=True)
    class Both:
        rows: Rows
        depth: Annotated[int, typer.Option(min=1, rich_help_panel=MODEL)] = 6

    # In the annotations as they stand: names of this function cannot be looked up later.
    Both.__annotations__["rows"] = Rows
    Rows.__annotations__["former"] = Former
    seen = []

    def verb(both, loud=False):
        seen.append((both, loud))

    verb.__annotations__ = {"both": Both, "loud": Annotated[bool, typer.Option("--loud")]}
    small = typer.Typer()
    small.command(cls=Verb)(with_groups(verb))
    ran = CliRunner().invoke(small, ["--source", "here", "--share", "0.25", "--old", "3", "--loud"])
    assert ran.exit_code == 0, ran.output
    assert seen == [(Both(Rows("here", 0.25, Former(3)), 6), True)]
    assert values_of(seen[0][0]) == {"source": "here", "share": 0.25, "old": 3, "depth": 6}
    options = {each.name: each for each in get_command(small).params}
    assert [options[name].rich_help_panel for name in ("source", "share", "depth")] == [DATA, DATA, MODEL]
    assert (options["source"].required, options["old"].hidden, options["share"].hidden) == (True, True, False)
    assert CliRunner().invoke(small, ["--source", "here", "--depth", "0"]).exit_code == 2
    assert CliRunner().invoke(small, ["--share", "1"]).exit_code == 2


@pytest.mark.parametrize("noise", OLD_FLAGS)
def test_a_plan_is_the_same_to_the_byte_however_its_noise_is_written(tmp_path, noise):
    build(tmp_path)
    files = []
    for flags in (OLD_FLAGS[noise], ("--noise", noise)):
        new_plan(tmp_path, "--level", "L2", "--queries", "10", *flags, "--force")
        files.append((tmp_path / "plan.toml").read_bytes())
    assert files[0] == files[1]


@pytest.mark.parametrize("noise", OLD_FLAGS)
def test_a_run_is_the_same_however_its_noise_is_written(noise):
    found = []
    for flags in (OLD_FLAGS[noise], ("--noise", noise)):
        done = fedkt("simulate", "digits", *QUICK, "--level", "L2", "--queries", "9", *flags)
        assert done.returncode == 0, done.stderr
        found.append(json.loads(done.stdout))
    for each in ("accuracy", "epsilon", "privacy_statement"):
        assert found[0][each] == found[1][each]
    assert found[0]["privacy_statement"]["mechanism"] == noise.partition(":")[0]


def test_an_epsilon_finds_the_scale_of_the_noise_that_is_named():
    done = fedkt(
        "simulate", "digits", *QUICK, "--level", "L2", "--queries", "9", "--noise", "laplace", "--epsilon", "9"
    )
    promise = json.loads(done.stdout)["privacy_statement"]
    assert promise["mechanism"] == "laplace"
    assert 8.5 < promise["epsilon"] <= 9


@pytest.mark.parametrize("flags", [("--algorithm", "fedkt"), ("--algorithm", "fedkt-expert-no-counts"), ()])
@pytest.mark.parametrize("voting", ["expert-no-counts", "fedkt-expert-no-counts"])
def test_fedkt_with_a_voting_is_the_algorithm_of_that_name(flags, voting):
    words = ("simulate", "digits", "--model", "tree", "--parties", "3", "--json")
    named = json.loads(fedkt(*words, "--algorithm", "fedkt-expert-no-counts").stdout)
    found = json.loads(fedkt(*words, *flags, "--voting", voting).stdout)
    assert (found["algorithm"], found["accuracy"]) == ("fedkt-expert-no-counts", named["accuracy"])


@pytest.mark.parametrize(
    ("algorithms", "votings", "compared"),
    [
        (None, None, "fedkt fedkt-expert fedkt-moments solo pate centralised"),
        (None, "expert", "fedkt-expert fedkt-moments solo pate centralised"),
        (None, "consistent,expert-no-counts", "fedkt fedkt-expert-no-counts fedkt-moments solo pate centralised"),
        ("solo,fedkt", "expert,consistent", "solo fedkt-expert fedkt"),
        ("fedkt,fedkt-expert", "expert", "fedkt-expert"),
    ],
)
def test_votings_stand_in_a_comparison_where_fedkt_stood(algorithms, votings, compared):
    assert algorithms_with(algorithms, votings, level="L0") == tuple(compared.split())


def test_the_name_of_an_algorithm_is_understood_where_a_voting_is_named(tmp_path):
    build(tmp_path)
    files = []
    for voting in ("expert", "fedkt-expert"):
        new_plan(tmp_path, "--voting", voting, "--force")
        files.append((tmp_path / "plan.toml").read_bytes())
    assert files[0] == files[1]
    rows = [[place, place % 3] for place in range(60)]
    labels = [place % 2 for place in range(60)]
    parties = [place // 20 for place in range(60)]
    fits = [
        FedKTClassifier("tree", voting=voting, random_state=0).fit(rows, labels, parties=parties, public=rows[:20])
        for voting in ("expert", "fedkt-expert")
    ]
    assert fits[0].report_.algorithm == fits[1].report_.algorithm == "fedkt-expert"
    assert list(fits[0].predict(rows)) == list(fits[1].predict(rows))


def test_a_noise_with_a_parameter_of_its_own_needs_no_flag(monkeypatch):
    @dataclass(frozen=True)
    class Toy:
        width: float

        @classmethod
        def parameters(cls):
            return ("width",)

        @classmethod
        def fixed_parameters(cls):
            return ()

        @property
        def name(self):
            return "toy"

        @property
        def scale(self):
            return {"width": self.width}

    monkeypatch.setitem(NOISES, "toy", Toy)
    assert noise_choice(PrivacyOptions(noise="toy:3"), calibrated=False) == ("toy", (("width", 3.0),))
    assert noise_choice(PrivacyOptions(former=FormerNoiseOptions(sigma=8)), calibrated=False) == (
        "gaussian",
        (("sigma", 8),),
    )
    assert noise_choice(PrivacyOptions(), calibrated=False) == (None, ())


def test_predictions_are_not_written_over_what_is_read_nor_under_the_name_of_another_kind_of_file(tmp_path):
    from fedkt.cli.options import check_output

    (tmp_path / "rows.csv").write_text("a\n1\n")
    (tmp_path / "link.csv").symlink_to(tmp_path / "rows.csv")
    for output in ("rows.csv", "link.csv"):
        with pytest.raises(ConfigurationError, match="would be written over"):
            check_output(tmp_path / output, tmp_path / "final.onnx", tmp_path / "rows.csv", kind=".csv")
    for output in ("new.xlsx", "new.csv.gz", "final.onnx"):
        with pytest.raises(ConfigurationError, match="under another's name"):
            check_output(tmp_path / output, tmp_path / "rows.csv", kind=".csv")
    check_output(tmp_path / "new.csv", tmp_path / "rows.csv", kind=".csv")


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("yes,no", ("yes", "no")),
        (" yes , no ,", ("yes", "no")),
        ("a\n,b", ("a", "b")),
        ('"yes, certainly",no', ("yes, certainly", "no")),
        ('no, "yes, certainly"', ("no", "yes, certainly")),
        ('nein "x",ja', ('nein "x"', "ja")),
        ('"say ""x""",ja', ('say "x"', "ja")),
        ('5" pipe,6" pipe', ('5" pipe', '6" pipe')),
    ],
)
def test_a_part_of_a_list_may_have_a_comma_in_double_quotes(text, parts):
    assert names(text) == parts


def test_quotes_that_do_not_end_are_refused_in_words():
    with pytest.raises(ConfigurationError, match="double quotes do not end"):
        names('"yes,no')


def test_shares_of_classes_may_have_commas_in_their_names():
    assert shares('"yes, certainly"=0.3,no=0.7') == (("yes, certainly", 0.3), ("no", 0.7))


def test_an_option_that_a_message_offers_means_what_the_message_says():
    pairs = {'nein "x"': "nein", "да, конечно": "ja", '"so"': "ja", "it's": "nein", '"a", b': "nein"}
    for option in ("--label-map", "--value-map sex"):
        flag, typed = shlex.split(map_offer(option, pairs))
        assert flag == option.split()[0]
        assert pairs_of([typed.removeprefix("sex:")], flag, "") == pairs
    assert values_by_column([typed]) == {"sex": pairs}


def test_a_plan_and_its_files_may_have_classes_with_commas(tmp_path):
    (tmp_path / "public.csv").write_text("age\n" + "\n".join(map(str, range(20, 60))) + "\n")
    arguments = ["--label", "ill", "--classes", '"yes, certainly",no', "--party", "north", "--party", "south"]
    run = fedkt("plan", "new", "--public", tmp_path / "public.csv", *arguments, "-o", tmp_path / "plan.toml")
    assert run.returncode == 0, run.stderr
    assert read_plan(tmp_path / "plan.toml").classes == ("yes, certainly", "no")
