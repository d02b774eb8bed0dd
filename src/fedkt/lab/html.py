"""Pages: templates become one self-contained HTML file, without scripts and with nothing loaded from anywhere."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from fedkt.errors import ConfigurationError
from fedkt.lab.grid import phone_width
from fedkt.lab.svg import is_narrow

if TYPE_CHECKING:
    import jinja2

TEMPLATES = Path(__file__).parent / "templates"
PHONE = 44
"""Letters beside each other on a phone of 390 pixels; the lines of a wider table are stacked there."""


def page_template(name: str, folder: Path = TEMPLATES) -> jinja2.Template:
    """A page to be filled, or a refusal in words where what it needs is not installed.

    One of another folder may use the templates of this package too: how a page opens, its style and its tables are
    written once.
    """
    try:
        import jinja2
        import matplotlib  # noqa: F401
        from markupsafe import Markup
    except ImportError as reason:
        raise ConfigurationError(
            "The HTML report needs matplotlib and jinja2. Run: pip install 'fedkt[report]'"
        ) from reason
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader([folder, TEMPLATES]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["trusted"] = Markup
    # A line should not end between a number and its sign.
    environment.filters["tight"] = lambda text: text.replace(" %", "\u00a0%")
    environment.filters["narrow"] = is_narrow
    environment.filters["stacks"] = lambda table: phone_width(table) > PHONE
    return environment.get_template(name)
