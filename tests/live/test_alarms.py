"""A final model whose noise drowned the votes says so itself, to whoever makes it, is passed it or predicts with it."""

import json

import onnx
import pytest

from fedkt.algorithms.calibration import label_alarms
from fedkt.errors import ModelError
from fedkt.final_card import NOTE
from fedkt.live.final_file import read_final
from fedkt.plan import read_plan
from live_federation import NAMES, build, fedkt, new_plan, party, server

DROWNED = {
    "L1": ("--level", "L1", "--noise", "laplace:0.1", "--queries", "30"),
    "L2": ("--level", "L2", "--noise", "gaussian:20", "--queries", "30"),
}
WORDS = {
    "L1": "Attention: With 3 parties the noise that gives epsilon",
    "L2": "Attention: The noise drowns the votes: where all 5 teachers of a party agree, their label survives in",
}


@pytest.fixture(scope="module", params=["L1", "L2"])
def drowned(request, tmp_path_factory):
    """A level, and a folder with all files of a federation at it up to what its server printed."""
    folder = tmp_path_factory.mktemp(request.param)
    build(folder)
    new_plan(folder, "--force", *DROWNED[request.param])
    for name in NAMES:
        party(folder, name)
    return request.param, folder, server(folder)


@pytest.fixture(scope="module")
def calm(tmp_path_factory):
    """A federation without noise."""
    folder = tmp_path_factory.mktemp("L0")
    build(folder)
    for name in NAMES:
        party(folder, name)
    server(folder)
    return folder


def test_the_server_says_it_before_anything_else_and_not_once_more_as_a_note(drowned):
    level, _, served = drowned
    assert served.out.startswith(WORDS[level])
    assert served.out.count(WORDS[level].removeprefix("Attention: ")) == 1


def test_the_report_and_the_final_file_carry_it_and_it_follows_from_the_plan_alone(drowned):
    level, folder, _ = drowned
    plan = read_plan(folder / "plan.toml")
    expected = label_alarms(level, plan.price())
    report = json.loads((folder / "result" / "report.json").read_text(encoding="utf-8"))
    assert expected
    assert tuple(report["alarms"]) == expected == read_final(folder / "result" / "final.onnx").card.alarms
    assert set(expected) <= set(report["notes"])


def test_the_model_card_opens_with_it_beside_the_file_and_inside(drowned):
    level, folder, _ = drowned
    card = (folder / "result" / "model-card.md").read_text(encoding="utf-8")
    inside = read_final(folder / "result" / "final.onnx").card.model_card
    for text in (card, inside):
        title, _, attention, *_ = text.splitlines()
        assert title.startswith("# Model card")
        assert attention.startswith(f"> **Attention.** {WORDS[level].removeprefix('Attention: ')}")
        # Once: the notes of the run do not repeat it.
        assert text.count(WORDS[level].removeprefix("Attention: ")) == 1


def test_whoever_predicts_hears_of_it_in_one_line_and_in_json(drowned):
    level, folder, _ = drowned
    final = folder / "result" / "final.onnx"
    (line,) = fedkt("predict", final, folder / "public.csv").err.splitlines()
    assert line.startswith(f"attention: {final} says of itself: {WORDS[level].removeprefix('Attention: ')}")
    told = fedkt("predict", final, folder / "public.csv", "--json")
    assert json.loads(told.out)["alarms"] == list(read_final(final).card.alarms)
    assert line in told.err


def test_whoever_evaluates_or_inspects_hears_of_it_too(drowned):
    level, folder, _ = drowned
    final = folder / "result" / "final.onnx"
    assert WORDS[level] in fedkt("evaluate", final, folder / "test.csv").out
    assert json.loads(fedkt("evaluate", final, folder / "test.csv", "--json").out)["alarms"]
    assert WORDS[level].removeprefix("Attention: ") in fedkt("inspect", final).out
    page = folder / "quality.html"
    fedkt("evaluate", final, folder / "test.csv", "--html", page)
    assert WORDS[level].removeprefix("Attention: ") in page.read_text(encoding="utf-8")


def test_a_model_without_noise_alarms_nobody(calm):
    final = calm / "result" / "final.onnx"
    assert json.loads((calm / "result" / "report.json").read_text(encoding="utf-8"))["alarms"] == []
    assert "attention" not in fedkt("predict", final, calm / "public.csv").err
    assert json.loads(fedkt("predict", final, calm / "public.csv", "--json").out)["alarms"] == []
    assert "alarms" not in fedkt("inspect", final).out


@pytest.mark.parametrize("alarms", [["a\x1b[31m"], ["x" * 5_000], ["x"] * 21, "a word", [1], [""]])
def test_alarms_that_no_server_writes_are_refused(calm, tmp_path, alarms):
    model = onnx.load(calm / "result" / "final.onnx")
    (note,) = (each for each in model.metadata_props if each.key == NOTE)
    note.value = json.dumps({**json.loads(note.value), "alarms": alarms})
    path = tmp_path / "final.onnx"
    onnx.save(model, path)
    with pytest.raises(ModelError, match=r"what it says about itself is wrong at 'alarms"):
        read_final(path)
