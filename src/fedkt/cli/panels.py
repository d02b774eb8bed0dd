"""Option groups: declared once as frozen dataclasses, taken by any verb, and shown in panels of its help.

A verb's parameter that is such a dataclass becomes one option for each of its fields, in the panel that the class
names unless the option names another, and understood but not shown where the class is hidden. Lists of names in help
texts are placeholders such as `{models}`, filled from the catalogues when help is asked for and not before: reading
those costs more than everything else that `fedkt --help` does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from typer import Context, Typer
from typer.core import TyperCommand

DATA, FEDERATION, MODEL, PRIVACY = "Data", "Federation", "Model", "Privacy"
ROUNDS, OUTPUT = "Rounds, and other methods", "Run and output"
FILE = "How the file is written"
FITTING = "Names and codes of your file"
PLACE = re.compile(r"\{([a-z]+)(?: ([a-z_]+))?\}")
WRAP = re.compile(r"(?<=\S)\n(?=\S)")
"""Where a source file ends a line in the midst of a paragraph."""


def with_groups(verb: Callable[..., None]) -> Callable[..., None]:
    """The verb with an option for every field of the groups among its parameters."""
    parameters = list(options_of(verb))

    @wraps(verb)
    def run(**values: Any) -> None:
        call_with(verb, values)

    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    return run


def options_of(target: Callable[..., Any]) -> Iterator[Parameter]:
    """The parameters of a verb or a group, those of groups among them in their place."""
    hints = get_type_hints(target, include_extras=True)
    for name, each in signature(target).parameters.items():
        if is_dataclass(hints[name]):
            yield from options_of(hints[name])
        else:
            yield Parameter(
                name, Parameter.KEYWORD_ONLY, default=each.default, annotation=in_panel(hints[name], target)
            )


def in_panel(annotation: Any, group: Any) -> Any:
    """The annotation of an option, its group's panel and whether it is shown written into it."""
    if get_origin(annotation) is not Annotated:
        return annotation
    kind, option = get_args(annotation)
    option = copy(option)
    option.rich_help_panel = option.rich_help_panel or getattr(group, "panel", None)
    option.hidden = option.hidden or getattr(group, "hidden", False)
    return Annotated[kind, option]


def call_with(target: Callable[..., Any], values: dict[str, Any]) -> Any:
    """What a verb or a group gives for the values of its options, those of the groups inside it included."""
    hints = get_type_hints(target)
    return target(
        **{
            name: call_with(hints[name], values) if is_dataclass(hints[name]) else values[name]
            for name in signature(target).parameters
        }
    )


def values_of(*groups: Any) -> dict[str, Any]:
    """Every option of some groups by its name, and of the groups inside them."""
    values: dict[str, Any] = {}
    for group in groups:
        for each in fields(group):
            value = getattr(group, each.name)
            values |= values_of(value) if is_dataclass(value) else {each.name: value}
    return values


class Verb(TyperCommand):
    """A command whose help names what the catalogues hold."""

    def format_help(self, ctx: Context, formatter: Any) -> None:  # type: ignore[override]
        """The help, its placeholders filled and its paragraphs as wide as the terminal."""
        from fedkt.cli.catalogues import names_in_words

        self.help = WRAP.sub(" ", self.help or "")
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
                each.help = PLACE.sub(lambda place: words(place[1], place[2]), text)  # type: ignore[attr-defined]


def name_catalogues(app: Typer) -> None:
    """Have the help of every command of an app name what the catalogues hold."""
    for command in app.registered_commands:
        command.cls = Verb
    for group in app.registered_groups:
        if group.typer_instance is not None:
            name_catalogues(group.typer_instance)
