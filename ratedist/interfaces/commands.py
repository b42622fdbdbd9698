"""Commands of other packages: each is an entry point of the group ``ratedist.commands``."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
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


class UnusableCommandError(ValueError):
    """Raised for an entry point that cannot be imported or is no ``AddedCommand``."""


def added_command(name: str) -> AddedCommand | None:
    """Return the added command of a name; None if there is none.

    Parameters
    ----------
    name : str
        Word of the command line.

    Raises
    ------
    UnusableCommandError
        If the command of that name cannot be loaded.
    """
    point = next(iter(entry_points(group=GROUP, name=name)), None)
    return None if point is None else _loaded(point)


def added_commands() -> dict[str, AddedCommand]:
    """Return all added commands by name, in the order in which their packages list them.

    A command that cannot be loaded has the reason as its summary, and fails with it.
    """
    return {point.name: _loaded_or_refused(point) for point in entry_points(group=GROUP)}


def _loaded_or_refused(point: EntryPoint) -> AddedCommand:
    try:
        return _loaded(point)
    except UnusableCommandError as error:
        return AddedCommand(str(error).replace("%", "%%"), lambda parser: None, lambda options, program: USAGE)


def _loaded(point: EntryPoint) -> AddedCommand:
    try:
        command = point.load()
    except Exception as error:  # a package of others may raise anything while it is imported
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise UnusableCommandError(f"cannot be used: importing {point.value} raised {reason}") from error
    if not isinstance(command, AddedCommand):
        raise UnusableCommandError(f"cannot be used: {point.value} must be an AddedCommand; got {command!r}")
    return command
