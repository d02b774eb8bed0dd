"""The public names, pinned: a change here is a change for every user."""

import subprocess
import sys

import fedkt

NAMES = [
    "Algorithm",
    "Bundle",
    "Centralised",
    "FedKT",
    "FedKTClassifier",
    "FedKTError",
    "Ledger",
    "NeuralClassifier",
    "PATE",
    "Party",
    "Plan",
    "Report",
    "Server",
    "Solo",
    "__version__",
    "by_balanced_dirichlet",
    "by_column",
    "by_dirichlet",
    "evenly",
    "load",
    "simulate",
]


def test_the_public_names_are_these():
    assert sorted(fedkt.__all__) == sorted(NAMES)


def test_every_public_name_can_be_loaded():
    assert all(getattr(fedkt, name) is not None for name in NAMES)


def test_without_pytorch_the_networks_say_what_to_install():
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "import fedkt\n"
        "try:\n    fedkt.NeuralClassifier\nexcept ImportError as reason:\n    print(reason)"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "pip install 'fedkt[neural]'" in told
