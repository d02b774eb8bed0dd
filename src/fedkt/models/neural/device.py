"""Where networks are trained: on the processor, or on a graphics card."""

from __future__ import annotations

import os
import re

import torch

from fedkt.errors import ConfigurationError

ENVIRONMENT = "FEDKT_DEVICE"
"""Names the device of networks that name none themselves: what a machine has is no matter of a plan."""


def device_of(name: str | None) -> torch.device:
    """The device of this name, `cpu`, `cuda` or `cuda:1`; `auto` is a graphics card where there is one.

    None is what the environment names, else the processor.
    """
    wanted = name or os.environ.get(ENVIRONMENT) or "cpu"
    if wanted == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if not re.fullmatch(r"cpu|cuda(:\d{1,2})?", wanted):
        raise ConfigurationError(f"There is no device {wanted!r}. Choose cpu, cuda, cuda:1 or auto.")
    device, cards = torch.device(wanted), torch.cuda.device_count()
    if device.type == "cuda" and (device.index or 0) >= cards:
        raise ConfigurationError(
            f"There is no device {wanted!r} here: PyTorch {torch.__version__} finds {cards} graphics cards. Choose "
            "cpu, or auto, which takes a card where there is one."
        )
    return device
