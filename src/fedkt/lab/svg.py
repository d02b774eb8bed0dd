"""From a matplotlib figure to an `<svg>` element that can stand in any page, and the house style it is drawn in."""

from __future__ import annotations

import hashlib
import io
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedkt.errors import ConfigurationError
from fedkt.system.files import write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's palette, told apart with every common kind of colour vision and when printed in grey.
BLUE, SKY, ORANGE, GREEN, PURPLE, RED = "#0072B2", "#56B4E9", "#E69F00", "#009E73", "#CC79A7", "#D55E00"
INK, QUIET, GRID = "#222222", "#5f5f5f", "#e4e4e4"
WIDTH = 8.0
"""Inches of a picture; one inch is 72 units of the SVG."""
NARROW = 3.6
"""Inches of a picture for a phone, which a page sets beside others where there is room."""
READABLE = 4.4
"""Inches that a phone can show without scrolling, its letters of 9 points a little smaller."""
PALETTE = {
    "blue": BLUE,
    "sky": SKY,
    "orange": ORANGE,
    "green": GREEN,
    "purple": PURPLE,
    "red": RED,
    "brown": "#8C564B",
    "ink": INK,
}
"""By the names that the cards of algorithms use. A method without rounds, a dashed line, may share one with rounds."""
STYLE: dict[str, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "fedkt",
    "text.parse_math": False,  # a party may be called "$x"
    "font.family": ["DejaVu Sans"],
    "font.size": 9,
    "axes.edgecolor": QUIET,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "text.color": INK,
    "xtick.color": QUIET,
    "ytick.color": QUIET,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "figure.facecolor": "white",
    "pdf.fonttype": 42,
}


def shorten(text: str, most: int = 18) -> str:
    """The text as a label: printable, on one line, not longer than `most`."""
    line = "".join(letter if letter.isprintable() else "\ufffd" for letter in text)
    return line if len(line) <= most else line[: most - 1] + "…"


@contextmanager
def drawing() -> Iterator[None]:
    """The house style while the block runs, or a refusal in words where matplotlib is missing."""
    try:
        import matplotlib as mpl
    except ImportError as reason:
        raise ConfigurationError("A picture needs matplotlib. Run: pip install 'fedkt[report]'") from reason
    style: Any = STYLE
    with mpl.rc_context(style), warnings.catch_warnings():
        # Names in scripts the measuring font lacks are shown by the reader's own fonts.
        warnings.filterwarnings("ignore", message=".*[Gg]lyph.*")
        yield


def as_svg(figure: Figure, title: str, description: str, suffix: str) -> str:
    """The figure as one described `<svg>` element whose ids clash with no other figure's on the page."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg") :].rstrip()
    svg = re.sub(r"\s*<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    # Inside a page this sheet would style everything, so its two rules move to the element itself.
    svg = re.sub(r"\s*<defs>\s*<style.*?</style>\s*</defs>", "", svg, count=1, flags=re.DOTALL)
    prefix = "f" + hashlib.sha256((title + description + svg).encode()).hexdigest()[:8] + suffix

    def with_own_ids(tag: re.Match[str]) -> str:
        text = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{prefix}-", tag.group())
        text = re.sub(r"font: ([\d.]+px)[^;\"]*", r"font-size: \1", text)
        return re.sub(r' font-family: [^;"]*;| transform="rotate\(-?0 [^)]*\)"', "", text)

    # Only inside tags: a party may be called id="x".
    svg = re.sub(r"<[^<>]+>", with_own_ids, svg)
    opening = svg[: svg.index(">")]
    opening = re.sub(r'\s(width|height|version|xmlns:xlink)="[^"]*"', "", opening)
    svg = svg[svg.index(">") + 1 :].replace("xlink:href=", "href=")
    return (
        f'{opening} role="img" aria-labelledby="{prefix}-title {prefix}-desc" font-family="system-ui, \'DejaVu Sans\', '
        f'Arial, sans-serif" stroke-linejoin="round"><title id="{prefix}-title">{escape(title)}</title>'
        f'<desc id="{prefix}-desc">{escape(description)}</desc>{svg}'
    )


def is_narrow(svg: str) -> bool:
    """Whether a phone can show an `<svg>` element without making its letters smaller than they are drawn."""
    found = re.search(r'viewBox="0 0 ([\d.]+) ', svg)
    return found is not None and float(found[1]) <= 72 * READABLE


def picture_kind(path: Path) -> str:
    """The kind of file a picture's name asks for: png, svg or pdf."""
    kind = path.suffix.lower().lstrip(".")
    if kind not in ("png", "svg", "pdf"):
        raise ConfigurationError(
            f"A picture can be .png, .svg or .pdf, got {path.name!r}. Choose one of these endings."
        )
    return kind


@dataclass(frozen=True)
class Picture:
    """A figure that is drawn when it is needed, and what it says to those who cannot see it."""

    title: str
    words: str
    draw: Callable[[], Figure]

    def svg(self, suffix: str = "") -> str:
        """One `<svg>` element; with a suffix its ids are its own on a page that shows the same picture twice."""
        with drawing():
            return as_svg(self.draw(), self.title, self.words, suffix)

    def save(self, path: Path) -> None:
        """Write it as the kind of file the name ends in, byte for byte the same for the same numbers."""
        kind = picture_kind(path)
        if kind == "svg":
            write_atomically(path, b'<?xml version="1.0" encoding="utf-8"?>\n' + self.svg().encode())
            return
        # Without these a picture of the same numbers would differ from one day, and one machine, to the next.
        metadata = {"Software": None} if kind == "png" else {"CreationDate": None, "Creator": None, "Producer": None}
        buffer = io.BytesIO()
        with drawing():
            self.draw().savefig(buffer, format=kind, dpi=160, metadata=metadata)
        write_atomically(path, buffer.getvalue())
