"""Option groups: declared once as frozen dataclasses, taken by any verb, and shown in panels of its help.

A verb's parameter that is such a dataclass becomes one option for each of its fields, in the panel that the class
names unless the option names another. Lists of names in help texts are
placeholders such as `{models}`, filled from the catalogues when help is asked for and not before: reading those costs
more than everything else that `fedkt --help` does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from typer import Context, Typer
from typer.core import TyperCommand
from typer.models import OptionInfo

DATA, FEDERATION, MODEL, PRIVACY = "Data", "Federation", "Model", "Privacy"
ROUNDS, OUTPUT = "Rounds, and other methods", "Run and output"
HIDDEN = "hidden"
"""Beside an option in a group: understood, but not shown."""
PLACE = re.compile(r"\{([a-z]+)(?: ([a-z_]+))?\}")


def with_groups(verb: Callable[..., None]) -> Callable[..., None]:
    """The verb with an option for every field of the groups among its parameters."""
    hints = get_type_hints(verb, include_extras=True)
    own = signature(verb).parameters
    parameters = [each for name in own for each in options_of(name, hints[name], own[name].default)]

    @wraps(verb)
    def run(**values: Any) -> None:
        verb(**{name: build(hints[name], values) if is_dataclass(hints[name]) else values[name] for name in own})

    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    return run


def options_of(name: str, annotation: Any, default: Any, panel: str | None = None) -> Iterator[Parameter]:
    """The parameters that stand for one: those of a group's fields, or itself."""
    if not is_dataclass(annotation):
        yield Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=in_panel(annotation, panel))
        return
    hints = get_type_hints(annotation, include_extras=True)
    for field in fields(annotation):
        usual = Parameter.empty if field.default is MISSING else field.default
        yield from options_of(field.name, hints[field.name], usual, getattr(annotation, "panel", None))


def in_panel(annotation: Any, panel: str | None) -> Any:
    """The annotation of an option, its panel and whether it is shown written into it."""
    if get_origin(annotation) is not Annotated:
        return annotation
    kind, *notes = get_args(annotation)
    option = copy(next(each for each in notes if not isinstance(each, str)))
    option.rich_help_panel = option.rich_help_panel or panel
    if isinstance(option, OptionInfo):
        option.hidden = option.hidden or HIDDEN in notes
    return Annotated[kind, option]


def build(group: type, values: dict[str, Any]) -> Any:
    """A group with its values, and the groups inside it."""
    hints = get_type_hints(group)
    return group(
        **{
            each.name: build(hints[each.name], values) if is_dataclass(hints[each.name]) else values[each.name]
            for each in fields(group)
        }
    )


def values_of(*groups: Any) -> dict[str, Any]:
    """Every option of some groups by its name, and of the groups inside them."""
    found: dict[str, Any] = {}
    for group in groups:
        for each in fields(group):
            value = getattr(group, each.name)
            found |= values_of(value) if is_dataclass(value) else {each.name: value}
    return found


class Verb(TyperCommand):
    """A command whose help names what the catalogues hold."""

    def format_help(self, ctx: Context, formatter: Any) -> None:  # type: ignore[override]
        """The help, its placeholders filled."""
        from fedkt.cli.catalogues import names_in_words

        self._fill(names_in_words)
        super().format_help(ctx, formatter)

    def shell_complete(self, ctx: Context, incomplete: str) -> Any:  # type: ignore[override]
        """What may come next; a shell that asks at every key does not wait for catalogues."""
        self._fill(lambda *_: "…")
        return super().shell_complete(ctx, incomplete)

    def get_help_option(self, ctx: Context) -> Any:  # type: ignore[override]
        """`--help`, which is no panel of its own."""
        option = super().get_help_option(ctx)
        panels = [getattr(each, "rich_help_panel", None) for each in self.params]
        if option is not None and panels and option not in self.params:
            option.rich_help_panel = panels[-1]
        return option

    def _fill(self, words: Callable[[str, str | None], str]) -> None:
        for each in self.params:
            text = getattr(each, "help", None)
            if text:
                each.help = PLACE.sub(lambda found: words(found[1], found[2]), text)  # type: ignore[attr-defined]


def name_catalogues(app: Typer) -> None:
    """Have the help of every command of an app name what the catalogues hold."""
    for command in app.registered_commands:
        command.cls = Verb
    for group in app.registered_groups:
        if group.typer_instance is not None:
            name_catalogues(group.typer_instance)
