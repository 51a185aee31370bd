# SPDX-License-Identifier: Apache-2.0
"""What parsers of commands share."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, NoReturn

from arenite.errors import UsageError

__all__ = [
    "Parser",
    "add_choice",
    "command",
    "names",
    "positive",
    "seconds_of",
]


class Parser(argparse.ArgumentParser):
    """Usage errors take the same way out as every other error."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(message, cure=f"See `{self.prog} --help`.")

    def _print_message(self, message: str, file: Any = None) -> None:
        # The original hides that the disk is full.
        if message:
            (file or sys.stderr).write(message)


def command(commands: Any, name: str, text: str, function: str) -> argparse.ArgumentParser:
    """A command of a name, and what runs it: a module of `arenite._commands` and a function of it."""
    parser: argparse.ArgumentParser = commands.add_parser(name, help=text, description=text, allow_abbrev=False)
    parser.add_argument("--json", action="store_true", help="print the report as JSON on standard output")
    parser.add_argument("--debug", action="store_true", help="print a traceback with an error")
    parser.set_defaults(run=_lazily(*function.split(".")))
    return parser


def _lazily(module: str, name: str) -> Callable[[argparse.Namespace], int]:
    def run(arguments: argparse.Namespace) -> int:
        function: Callable[[argparse.Namespace], int] = getattr(import_module(f"arenite._commands.{module}"), name)
        return function(arguments)

    return run


def positive(text: str) -> int:
    """A whole number of at least 1."""
    try:
        value = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not at least 1")
    return value


def seconds_of(text: str) -> float:
    """From 0 to an hour."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 3600:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds from 0 to 3600")
    return value


def add_choice(parser: argparse._ActionsContainer, option: str, choices: Sequence[str], text: str) -> None:
    """An option that takes one of a few names, which its help lists."""
    parser.add_argument(option, choices=choices, metavar="NAME", help=f"{text}: {', '.join(choices)}")


def names(text: str) -> tuple[str, ...]:
    """What commas part."""
    return tuple(name.strip() for name in text.split(","))
