"""The rows of a setting: its dataset, or the user's own table, split as the seed has it."""

from __future__ import annotations

from pathlib import Path

from fedkt.data import Dataset
from fedkt.data.dataset import with_fewer_public, with_skewed_public
from fedkt.data.own import OwnFile
from fedkt.lab.setting import Setting, dataset_of
from fedkt.privacy.mechanisms import noise_cautions


def load_split(setting: Setting, data_dir: Path | None) -> Dataset:
    """The dataset, split by the seed, with the public rows that the setting asks for."""
    data = dataset_of(setting).loader(seed=setting.seed, data_dir=data_dir)
    data = with_skewed_public(data, setting.public_beta, seed=setting.seed)
    return with_fewer_public(data, setting.public_share, seed=setting.seed)


def run_notes(setting: Setting, data: Dataset) -> tuple[str, ...]:
    """What is odd about the rows; at a private level what every reader of its promise has to know, and no more."""
    if setting.level == "L0":
        return data.notes
    if setting.own is None or isinstance(setting.own.public, OwnFile):
        return noise_cautions(setting.mechanism)
    return (
        *noise_cautions(setting.mechanism),
        "The public rows were set aside from the parties' table, which nobody may do in earnest: at a private level "
        "they have to be rows that everybody may see. Pass such rows with --public-file.",
    )
