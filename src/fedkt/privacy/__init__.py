"""The privacy layer: usable alone, blind to models and data."""

from fedkt.privacy.accountant.together import price_together
from fedkt.privacy.confident import ConfidentGaussian
from fedkt.privacy.gaussian import Gaussian
from fedkt.privacy.gumbel import Gumbel
from fedkt.privacy.laplace import Laplace
from fedkt.privacy.ledger import LEVELS, UNITS, Ledger, check_level
from fedkt.privacy.mechanisms import NOISES, make_noise
from fedkt.privacy.noise import Noise
from fedkt.privacy.price import Price, Release
from fedkt.privacy.statement import Statement, statement

__all__ = [
    "LEVELS",
    "NOISES",
    "UNITS",
    "ConfidentGaussian",
    "Gaussian",
    "Gumbel",
    "Laplace",
    "Ledger",
    "Noise",
    "Price",
    "Release",
    "Statement",
    "check_level",
    "make_noise",
    "price_together",
    "statement",
]
