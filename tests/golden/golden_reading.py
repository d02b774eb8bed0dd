"""How today's code reads what the golden tests look at: the only place here that knows inner names of fedkt.

Who renames or moves something in fedkt mends it here; neither the files nor what is expected of them change.
"""

import hashlib
import json
from pathlib import Path

import numpy as np

from command_line import fedkt
from fedkt.lab.results import read_lines, stored
from fedkt.live.inbox import look
from fedkt.live.mailbox import FolderMailbox
from fedkt.live.marginals import read_marginals
from fedkt.live.public_files import read_description
from fedkt.models.prediction import predict_all, probabilities_of_all
from fedkt.plan import read_plan
from fedkt.system.versions import versions
from paper.markdown import in_bold, markdown
from paper.private_curve import curve_of
from paper.private_tables import EXACT, curve_table, setting_rows, settings_table
from paper.tables import hospitals_table
from paper.tuning import best_settings


def told(*words):
    """The JSON that a command prints, which must succeed."""
    done = fedkt(*map(str, words), "--json")
    assert done.returncode == 0, (words, done.stderr)
    return json.loads(done.stdout)


def plan_in(path):
    """The Plan in a file."""
    return read_plan(path)


def marginals_in(path):
    """What a party told of its columns."""
    return read_marginals(path)


def columns_in(path):
    """What everybody knows of the columns."""
    return read_description(path)


def bundle_in(path, plan):
    """The Bundle in a file, as the plan's server takes it; refused, it is an error here."""
    arrival = look(plan, FolderMailbox(Path(path).parent), Path(path).name)
    assert not arrival.reason, arrival.reason
    return arrival.bundle


def sums_told(plan, path):
    """The numbers in a bundle of sums as the plan's server takes them, in a few figures, and those of a public row."""
    agreed = plan_in(plan)
    arrays = bundle_in(path, agreed).arrays
    (row, *_) = agreed.feature_map(public_rows(agreed, Path(path).parent / "public.csv")[:1])
    return {
        "arrays": {
            name: [str(each.dtype), list(each.shape), round(float(each.astype(np.float64).sum()), 3)]
            for name, each in arrays.items()
        },
        "counts": arrays["moments"][0].tolist(),
        "features": [float(each) for each in row[:8]],
    }


def public_rows(plan, path):
    """The plan's public rows as numbers."""
    return np.asarray(plan.columns.encode(plan.read_public(path)), dtype=np.float32)


def answers(models, rows, n_outputs):
    """The labels that received models give, and the probabilities of those that give some."""
    sure = [model for model in models if model.soft]
    return predict_all(models, rows), probabilities_of_all(sure, rows, n_outputs) if sure else []


def runs_in(path):
    """The runs kept in a results file, as plain values, by what decides whether a run is made again."""
    return {key: report.as_dict() for key, report in stored(Path(path)).items()}


def tables_of(folder):
    """What is made of the kept lines that are no runs."""
    levels = in_bold(settings_table(setting_rows(folder / "private-levels.jsonl"), "L1"), EXACT)
    return {
        "heart-hospitals.jsonl": markdown(hospitals_table(folder / "heart-hospitals.jsonl")),
        "private-levels.jsonl": markdown(levels, spaced=True),
        "private-curve.jsonl": markdown(curve_table(curve_of(folder)), spaced=True),
        "tuning.jsonl": best_settings(read_lines(folder / "tuning.jsonl"), "mnist"),
    }


def circumstances():
    """What bytes may depend on besides fedkt: versions of libraries, what the processor can do, and how it rounds."""
    import torch

    return {**versions(), "processor": torch.backends.cpu.get_cpu_capability(), "arithmetic": arithmetic()}


def arithmetic():
    """The digest of a small network, trained by torch alone: processors of one kind may differ in last digits."""
    import torch

    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(64, 100), torch.nn.ReLU(), torch.nn.Linear(100, 10))
    X, y = torch.randn(90, 64), torch.randint(0, 10, (90,))
    steps = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(20):
        steps.zero_grad()
        torch.nn.functional.cross_entropy(model(X), y).backward()
        steps.step()
    weights = b"".join(each.detach().numpy().tobytes() for each in model.parameters())
    return hashlib.sha256(weights).hexdigest()[:16]


def same_circumstances(file, *, rounded):
    """Whether libraries and processor are those noted in a file, with which the files beside it were made.

    With `rounded` also whether it rounds alike, which files of 0.1.0 do not say.
    """
    before, now = json.loads(Path(file).read_text(encoding="utf-8")), circumstances()
    free = {"fedkt": "", "python": "", **({} if rounded else {"arithmetic": ""})}
    return {**before, **free} == {**now, **free}


def outputs(plan):
    """How many classes the students of a plan tell apart."""
    return plan.expected.n_outputs
