"""Commands of other packages: each is an entry point of the group ``ratedist.commands``."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import NoReturn

from .exit_status import USAGE

GROUP = "ratedist.commands"


class OneLineParser(argparse.ArgumentParser):
    """Parser whose usage errors are one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(USAGE, f"{self.prog}: {message} (see {self.prog} --help)\n")


@dataclass(frozen=True)
class AddedCommand:
    """A command that another package adds.

    Parameters
    ----------
    summary : str
        What it does, for the help.
    add_arguments : callable
        Adds its arguments to a parser.
    carry_out : callable
        From the options and the program's name to the exit status.
    """

    summary: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    carry_out: Callable[[argparse.Namespace, str], int]


def added_command(name: str) -> AddedCommand | None:
    """Return the added command of a name; None if there is none.

    Parameters
    ----------
    name : str
        Word of the command line.
    """
    point = next(iter(entry_points(group=GROUP, name=name)), None)
    return None if point is None else _loaded(point.load(), name)


def added_commands() -> dict[str, AddedCommand]:
    """Return all added commands by name, in the order in which their packages list them."""
    return {point.name: _loaded(point.load(), point.name) for point in entry_points(group=GROUP)}


def _loaded(command: object, name: str) -> AddedCommand:
    if not isinstance(command, AddedCommand):
        raise TypeError(f"the entry point {name!r} of {GROUP} must be an AddedCommand; it is {command!r}")
    return command
