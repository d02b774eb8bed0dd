"""The plan: what survives a round trip, what the digest depends on, and what is refused in which words."""

import hashlib
import re
import tomllib
from decimal import ROUND_UP, Decimal
from pathlib import Path

import numpy as np
import pytest
import tomlkit
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from fedkt.bundle.signing import new_key
from fedkt.errors import DataError, PlanError
from fedkt.plan import MAX_PLAN_BYTES, NAME, make_plan, parse_plan, read_plan
from fedkt.privacy import Release, price_together
from fedkt.privacy.accountant import price
from fedkt.privacy.gaussian import GaussianCounts

PUBLIC = "age,sex,chol,outcome\n" + "".join(f"{30 + i},{'mf'[i % 2]},{200 + i * 0.1},secret{i}\n" for i in range(40))


@pytest.fixture
def public(tmp_path):
    path = tmp_path / "public.csv"
    path.write_text(PUBLIC)
    return path


def plan_of(public, **changes):
    settings = {"label": "outcome", "classes": ["yes", "no"], "parties": ["north", "south"], "model": "forest"}
    return make_plan(public, **{**settings, **changes})


def test_a_plan_survives_toml(public):
    plan = plan_of(public, party_models={"south": "boosting"}, keys={"north": new_key().public}, seed="private")
    again = parse_plan(plan.to_toml().encode(), "plan.toml")
    assert again == plan
    assert again.digest == plan.digest


def test_the_schema_comes_from_the_public_rows_and_their_labels_are_not_looked_at(public):
    plan = plan_of(public)
    ages = np.arange(30, 70)
    column = plan.columns.columns[0]
    assert (column.name, column.mean, column.fill) == ("age", ages.mean(), np.median(ages))
    assert column.scale == pytest.approx(ages.std())
    assert "secret" not in plan.to_toml()


def test_the_public_file_is_known_by_its_bytes(public):
    plan = plan_of(public)
    assert plan.public.sha256 == hashlib.sha256(public.read_bytes()).hexdigest()
    assert plan.public.rows == 40
    assert plan.read_public(public).n_rows == 40
    public.write_text(PUBLIC.replace("\n", "\r\n"))
    with pytest.raises(PlanError, match=r"public\.csv is not the public file of this plan.*Get the file that came"):
        plan.read_public(public)


def test_comments_layout_and_the_order_of_keys_do_not_change_the_digest(public):
    plan = plan_of(public)
    text = plan.to_toml()
    said = tomllib.loads(text)
    bare = tomlkit.dumps(dict(reversed([(key, value) for key, value in said.items()])), sort_keys=True)
    assert "#" not in bare
    assert bare != text
    assert parse_plan(bare.encode(), "bare").digest == plan.digest
    whole = text.replace("mean = 49.5", "mean = 49.50")
    assert whole != text
    assert parse_plan(whole.encode(), "whole").digest == plan.digest


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("partitions = 2", "partitions = 3"),
        ("subsets = 5", "subsets = 4"),
        ("seed = 0", "seed = 1"),
        ("seed = 0", 'seed = "private"'),
        ('["yes", "no"]', '["no", "yes"]'),
        ('default = "forest"', 'default = "tree"'),
        ('name = "south"', 'name = "west"'),
        ("mean = 49.5", "mean = 49.6"),
        ("rows = 40", "rows = 41"),
        ('task = "outcome"', 'task = "income"'),
        ("seed = 0", 'seed = 0\nvoting = "expert"'),
    ],
)
def test_anything_else_changes_the_digest(public, old, new):
    plan = plan_of(public)
    text = plan.to_toml()
    assert old in text
    assert parse_plan(text.replace(old, new).encode(), "plan.toml").digest != plan.digest


def test_every_voting_has_a_digest_of_its_own(public):
    votings = ("consistent", "expert", "expert-no-counts")
    plans = [plan_of(public, partitions=1, subsets=1, voting=voting) for voting in votings]
    assert len({plan.digest for plan in plans}) == 3


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [
        ("partitions", 1, 1_000),
        ("subsets", 1, 100_000),
        ("seed", 0, 2**63 - 1),
        ("min_parties", 1, 2),
        ("epochs", 1, 100_000),
    ],
)
def test_a_plans_figures_are_read_up_to_their_bounds_and_no_further(public, name, least, most):
    text = plan_of(public, min_parties=2, epochs=3).to_toml()

    def parsed(value):
        changed, times = re.subn(rf"^{name} = \d+", f"{name} = {value}", text, flags=re.MULTILINE)
        assert times == 1
        return parse_plan(changed.encode(), "plan.toml")

    for value in (least, most):
        assert re.search(rf"^{name} = {value}\b", parsed(value).to_toml(), re.MULTILINE)
    for value in (least - 1, most + 1):
        with pytest.raises(PlanError, match=name):
            parsed(value)


def test_a_class_is_a_text_of_up_to_200_characters_or_a_number_that_every_reader_holds_exactly(public):
    for good in (-(2**53), 2**53, "x", "x" * 200):
        assert plan_of(public, classes=[good, "other"]).classes == (good, "other")
    for bad in (-(2**53) - 1, 2**53 + 1, "", "x" * 201):
        with pytest.raises(PlanError, match=r"classes\.0"):
            plan_of(public, classes=[bad, "other"])


@pytest.mark.parametrize("gamma", [0.1, 0.0173])
def test_where_no_budget_was_agreed_on_it_is_the_price_of_one_run_rounded_up_to_thousandths(public, gamma):
    noise = {"mechanism": "laplace", "scale": {"gamma": gamma}, "queries": 1, "delta": 1e-5}
    plan = plan_of(public, level="L1", privacy=noise)
    cost = Decimal(plan.price().epsilon)
    # A vote that changes moves two counts by one: the noise of one query promises 2γ by itself.
    assert 0 < cost <= Decimal(2 * gamma * (1 + 1e-9))
    assert plan.budget == float(cost.quantize(Decimal("0.001"), rounding=ROUND_UP))
    agreed = plan_of(public, level="L1", privacy=noise | {"budget": 0.5})
    assert agreed.budget == 0.5
    assert agreed.digest != plan.digest
    with pytest.raises(PlanError, match=r"The budget of epsilon 1e-07 does not cover one run"):
        plan_of(public, level="L1", privacy=noise | {"budget": 1e-7})


def test_a_run_that_costs_nothing_has_a_budget_all_the_same(public):
    """So little is told of a vote that delta covers it."""
    noise = {"mechanism": "laplace", "scale": {"gamma": 1e-6}, "queries": 1, "delta": 1e-5}
    plan = plan_of(public, level="L1", privacy=noise)
    assert (plan.price().epsilon, plan.budget) == (0, 0.001)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("seed = 0", "seed = -1", r"plan\.toml: seed: .*got -1"),
        ("seed = 0", 'seed = "public"', r"plan\.toml: seed: .*got 'public'"),
        ("partitions = 2", 'partitions = "2"', r"partitions: Input should be a valid integer \(got '2'\)"),
        ("partitions = 2", "partitions = 0", r"partitions: .*got 0"),
        ("subsets = 5", "subsets = 2.0", "subsets"),
        ('level = "L0"', 'level = "L2"', "privacy is missing: level L2 needs a noise"),
        ('level = "L0"', 'level = "L3"', "level: There is no privacy level 'L3'. Choose one of: L0, L1, L2"),
        ('default = "forest"', 'default = "wood"', "models.default: there is no model 'wood'. Choose one of: forest"),
        ('name = "south"', 'name = "../south"', r"parties\.1\.name: a party's name has 1 to 64 letters"),
        ('name = "south"', 'name = "North"', "'north' is named more than once"),
        ("rows = 40", "rows = 40\nlabels = 1", "public.labels is not a key that a plan has"),
        ('task = "outcome"', "", "task is missing"),
        ('task = "outcome"', 'task = "\\u001b[31m"', "control characters"),
        ('["yes", "no"]', '["yes"]', "classes"),
        ('["yes", "no"]', '["1", 1]', "the same class twice"),
        ('["yes", "no"]', '["yes", true]', r"classes\.1"),
        ("seed = 0", "seed = 1979-05-27", "date"),
        ("mean = 49.5", "mean = inf", "finite"),
        ("mean = 49.5", 'mean = "49.5"', r"schema\.columns\.0\.mean"),
        ('kind = "category"', 'kind = "words"', r"schema\.columns\.1\.kind"),
        ("format = 1", "format = 2", "got 2, this version of fedkt reads plans of format 1"),
        ("format = 1", "format = true", "reads plans of format 1"),
        ("format = 1", "", "got None"),
        ("seed = 0", "seed = 0\nmin_parties = 3", "min_parties: 3 are more than the 2 parties"),
        ("[public]", "[public", "is not TOML"),
    ],
)
def test_a_wrong_plan_is_refused_with_file_key_and_value(public, old, new, words):
    text = plan_of(public).to_toml()
    assert old in text
    with pytest.raises(PlanError, match=words) as refused:
        parse_plan(text.replace(old, new).encode(), "plan.toml")
    assert str(refused.value).startswith("plan.toml")


def test_hostile_bytes_are_refused_and_not_crashed_on(tmp_path):
    for data in (b"\xff\xfe", b"a = " + b"[" * 200_000, b""):
        with pytest.raises(PlanError):
            parse_plan(data, "plan.toml")
    big = tmp_path / "plan.toml"
    big.write_bytes(b"#" * (MAX_PLAN_BYTES + 1))
    with pytest.raises(PlanError, match="larger than"):
        read_plan(big)
    with pytest.raises(PlanError, match="is not a file"):
        read_plan(tmp_path / "none.toml")


def test_a_family_for_a_stranger_a_strangers_key_and_a_shared_key_are_refused(public):
    with pytest.raises(PlanError, match="'west' is not a party"):
        plan_of(public, party_models={"west": "tree"})
    key = new_key().public
    with pytest.raises(PlanError, match="'west'"):
        plan_of(public, keys={"west": key})
    with pytest.raises(PlanError, match="the same key"):
        plan_of(public, keys={"north": key, "south": key})
    with pytest.raises(PlanError, match=r"parties\.0\.key: .*not base64"):
        plan_of(public, keys={"north": "no key"})


ROLES = {
    "model": {"model": "cnn"},
    "teacher": {"teacher": "cnn"},
    "student": {"student": "cnn"},
    "final": {"final": "cnn"},
    "of a party": {"party_models": {"south": "cnn"}},
}


@pytest.mark.parametrize("role", ROLES)
def test_a_family_that_reads_images_is_refused_where_the_rows_are_a_table(public, role):
    with pytest.raises(PlanError, match="models: cnn reads images, and the agreed columns are no pixels"):
        plan_of(public, **ROLES[role])


def test_a_received_plan_whose_final_model_reads_images_is_refused_where_the_rows_are_a_table(public):
    text = plan_of(public, final="logistic").to_toml()
    assert 'final = "logistic"' in text
    with pytest.raises(PlanError, match=r"plan\.toml: models: cnn reads images"):
        parse_plan(text.replace('final = "logistic"', 'final = "cnn"').encode(), "plan.toml")


def pictures_in(folder):
    """Four public pictures of 3 × 2 grey pixels, as an IDX file."""
    path = folder / "public-images-idx3-ubyte"
    sizes = b"".join(number.to_bytes(4, "big") for number in (4, 3, 2))
    path.write_bytes(b"\0\0\x08\x03" + sizes + bytes(range(24)))
    return path


def test_a_final_network_of_pictures_may_learn_copies_and_a_plan_without_says_nothing_of_them(tmp_path):
    pictures = pictures_in(tmp_path)
    plain, copies = (plan_of(pictures, model="mlp", **each) for each in ({}, {"copies": True}))
    assert "copies" not in plain.to_toml()
    assert parse_plan(copies.to_toml().encode(), "plan.toml") == copies
    assert copies.digest != plain.digest
    assert plan_of(pictures, model="mlp", copies=False).digest == plain.digest
    assert (plain.algorithm().copies, copies.algorithm().copies) == (False, True)
    assert "shifted by one pixel" in copies.explain()
    assert "shifted" not in plain.explain()


@pytest.mark.parametrize("final", ["forest", "mlp"])
def test_a_plan_has_copies_of_pictures_and_for_networks_only(public, tmp_path, final):
    rows = public if final == "mlp" else pictures_in(tmp_path)
    with pytest.raises(PlanError, match=r"models\.copies: shifted copies are for a final network"):
        plan_of(rows, final=final, copies=True)


def private_plan(public, **changes):
    """A plan that asks 40 public rows at level L2 with noise that says little of anything."""
    noise = changes.pop("privacy", {"mechanism": "laplace", "scale": {"gamma": 0.1}, "queries": 40})
    return plan_of(public, **{"level": "L2", "privacy": noise, **changes})


def test_an_epsilon_at_level_l2_is_kept_over_all_partitions(public):
    asked = {"epsilon": 2.0, "queries": 10, "delta": 1e-5}
    plan = private_plan(public, partitions=3, subsets=6, privacy=asked)
    # Three partitions of ten queries are thirty labels that one record moves.
    assert 1.9 < price(Release(plan.privacy.noise, 30, 6, 2, "record"), 1e-5).epsilon <= 2.0
    assert 1.9 < plan.price().epsilon <= plan.budget <= 2.0
    once = private_plan(public, partitions=1, subsets=6, privacy={**asked, "queries": 30})
    assert plan.privacy.scale == once.privacy.scale


def test_an_epsilon_is_kept_by_votes_and_class_counts_together(public):
    plan = private_plan(public, voting="expert", privacy={"epsilon": 2.0, "queries": 10, "delta": 1e-5})
    votes = Release(plan.privacy.noise, 10, 5, 2, "record")
    counts = Release(GaussianCounts(plan.privacy.count_sigma), 1, 1, 2, "record")
    assert 1.8 < price_together([votes, counts], 1e-5).epsilon <= plan.budget <= 2.0


@pytest.mark.parametrize("count", [2, 5, 20])
def test_an_epsilon_at_level_l1_is_kept_among_all_parties(public, count):
    parties = [f"p{number}" for number in range(count)]
    asked = {"epsilon": 2.0, "queries": 10, "delta": 1e-5}
    plan = private_plan(public, level="L1", partitions=3, parties=parties, privacy=asked)
    assert 1.9 < price(Release(plan.privacy.noise, 10, count, 2, "party", abstentions=True), 1e-5).epsilon <= 2.0
    assert 1.9 < plan.price().epsilon <= plan.budget <= 2.0


@pytest.mark.parametrize(("level", "subsets"), [("L0", 1), ("L2", 5)])
def test_only_without_noise_an_expert_has_one_teacher_unless_more_are_agreed_on(public, level, subsets):
    """The vote of one teacher drowns in any noise that hides it."""
    noise = {} if level == "L0" else {"mechanism": "laplace", "scale": {"gamma": 0.1}}
    plan = private_plan(public, level=level, voting="expert", privacy=noise)
    assert (plan.partitions, plan.subsets) == (1, subsets)
    text = plan.to_toml()
    line = next(each for each in text.splitlines() if each.startswith("subsets = "))
    assert parse_plan(text.replace(line, "").encode(), "plan.toml").subsets == subsets


@pytest.mark.parametrize(
    ("mechanism", "scale", "spread"),
    [
        ("laplace", {"gamma": 0.1}, stats.laplace(scale=1 / 0.1).std()),
        ("gumbel", {"theta": 0.1}, stats.gumbel_r(scale=1 / 0.1).std()),
        ("gaussian", {"sigma": 14.0}, 14.0),
    ],
)
@pytest.mark.parametrize("partitions", [1, 2])
def test_noise_on_class_counts_costs_a_twentieth_of_that_on_the_votes(public, mechanism, scale, spread, partitions):
    noise = {"mechanism": mechanism, "scale": scale, "queries": 20}
    plan = private_plan(public, voting="expert", partitions=partitions, privacy=noise)
    # As Gaussian mechanisms, k votes of spread σ have μ² = 2k/σ², and one histogram of spread τ has 2/τ².
    votes = 2 * 20 * partitions / spread**2
    assert 2 / plan.privacy.count_sigma**2 == pytest.approx(votes / 20)


def test_the_label_cannot_be_a_column(public):
    with pytest.raises(PlanError, match="'outcome' is the label"):
        plan_of(public, categorical=["outcome"])
    with pytest.raises(DataError, match="no column 'height'"):
        plan_of(public, ignore=["height"])


def test_the_agreed_models_become_the_algorithm(public):
    plan = plan_of(public, teacher="naive-bayes", final="logistic", partitions=3, subsets=4)
    algorithm = plan.algorithm()
    chosen = (algorithm.model, algorithm.teacher, algorithm.student, algorithm.final)
    assert chosen == ("forest", "naive-bayes", None, "logistic")
    assert (algorithm.partitions, algorithm.subsets, algorithm.level) == (3, 4, "L0")


def test_the_explanation_says_what_travels_and_what_is_not_protected(public):
    words = plan_of(public, party_models={"south": "boosting"}, seed="private").explain()
    for part in ("yes, no", "north, south", "south uses boosting", "2 students", "epsilon is infinite", "of their own"):
        assert part in words


def test_public_rows_of_a_format_without_names_lend_the_label_its_name(tmp_path):
    path = tmp_path / "public.npz"
    np.savez(path, X=np.arange(20.0).reshape(10, 2), y=np.arange(10))
    plan = make_plan(path, label="ill", classes=[0, 1], parties=["north"], model="tree")
    assert [column.name for column in plan.columns.columns] == ["x0", "x1"]
    assert plan.classes == (0, 1)


@given(st.text(max_size=70))
def test_a_name_that_is_accepted_is_a_plain_file_name(name):
    if NAME.fullmatch(name):
        assert Path(f"{name}.fedkt").name == f"{name}.fedkt"
        assert not re.search(r"[^A-Za-z0-9_-]", name)
        assert not name.startswith((".", "-"))


ONE_VOTING = "consistent voting loses those that few of them know"


def words_of(plan):
    return " ".join(plan.explain().split())


def test_a_plan_of_consistent_voting_says_that_it_loses_classes_and_what_keeps_them(public):
    assert f"{ONE_VOTING}; `fedkt plan new --voting expert` keeps them." in words_of(plan_of(public))
    assert ONE_VOTING not in words_of(plan_of(public, voting="expert"))
    noise = {"mechanism": "laplace", "scale": {"gamma": 0.1}}
    assert f"{ONE_VOTING}; level L1 has no other voting." in words_of(plan_of(public, level="L1", privacy=noise))
    assert ONE_VOTING not in words_of(plan_of(public, parties=["north"]))


def test_a_private_plan_says_how_often_the_noise_leaves_a_vote_standing_and_one_without_noise_says_nothing(public):
    noise = {"mechanism": "gaussian", "scale": {"sigma": 14.5}, "queries": 40}
    words = words_of(plan_of(public, level="L2", subsets=25, privacy=noise))
    # Φ(25/(√2·14.5)) = 0.8886, Φ(13/(√2·14.5)) = 0.7370, Φ(5/(√2·14.5)) = 0.5963; never rounded up.
    assert "all 25 teachers of a party agree 88%, 19 of them 73%, 15 of them 59%." in words
    assert "Caution: The noise drowns the votes: where 19 of 25 teachers of a party agree" in words
    calm = words_of(plan_of(public, level="L2", subsets=25, privacy={**noise, "scale": {"sigma": 6.0}}))
    assert "drowns" not in calm
    assert "standing" not in words_of(plan_of(public))


def test_texts_for_the_model_card_come_back_from_toml_and_their_absence_changes_no_digest(public):
    texts = {"purpose": 'A "second" reading', "limits": None, "contact": "north@x.org"}
    plan = plan_of(public, card=texts)
    again = parse_plan(plan.to_toml().encode(), "plan.toml")
    assert (again.card.purpose, again.card.limits, again.card.contact) == ('A "second" reading', None, "north@x.org")
    assert again.digest == plan.digest
    nothing = plan_of(public, card=dict.fromkeys(texts))
    assert nothing.digest == plan_of(public).digest != plan.digest
    with pytest.raises(PlanError, match=r"card\.purpose"):
        plan_of(public, card={"purpose": "a\nb"})
