"""Pages: templates become one self-contained HTML file, without scripts and with nothing loaded from anywhere."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from fedkt.errors import ConfigurationError
from fedkt.lab.grid import phone_width, without_empty
from fedkt.lab.svg import is_narrow

if TYPE_CHECKING:
    import jinja2

HEADING = re.compile(r"<h([23])>(.*?)</h\1>", re.DOTALL)
FEWEST_HEADINGS = 4
"""Of fewer a page needs no list."""
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
    environment.filters["filled"] = without_empty
    environment.filters["stacks"] = lambda table: phone_width(table) > PHONE
    return environment.get_template(name)


def with_contents(page: str) -> str:
    """The page with a list of its headings, each a link, behind its title."""
    found = HEADING.findall(page)
    if len(found) < FEWEST_HEADINGS or "</h1>" not in page:
        return page
    places = iter(range(len(found)))
    page = HEADING.sub(lambda match: f'<h{match[1]} id="part-{next(places)}">{match[2]}</h{match[1]}>', page)
    links = "".join(f'<li><a href="#part-{place}">{title}</a></li>' for place, (_, title) in enumerate(found))
    return page.replace("</h1>", f'</h1>\n<nav aria-label="Contents"><ol>{links}</ol></nav>', 1)
