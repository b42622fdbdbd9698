"""Completion scripts with which a shell completes the commands and options of a program."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from typing import Any, NoReturn

from .extras import missing_extra

SHELLS = ("bash", "zsh", "tcsh")


class PrintCompletion(argparse.Action):
    """Print a shell's completion of the whole program, and end.

    Parameters
    ----------
    option_strings : sequence of str
        As argparse gives them.
    dest : str
        As argparse gives it.
    whole : callable
        Returns the parser with all commands.
    **keywords
        Others of ``argparse.Action``.
    """

    def __init__(
        self, option_strings: Any, dest: str, *, whole: Callable[[], argparse.ArgumentParser], **keywords: Any
    ) -> None:
        words = "print what a shell needs to complete commands and options, and exit"
        super().__init__(option_strings, dest, choices=SHELLS, help=words, **keywords)
        self._whole = whole

    def __call__(self, parser: argparse.ArgumentParser, _: Any, shell: Any, option: str | None = None) -> NoReturn:
        """Print it; a usage error where the package is missing that writes it.

        Parameters
        ----------
        parser : argparse.ArgumentParser
            Which has read the option.
        shell : str
            Of ``SHELLS``.
        option : str or None
            As it was written.
        """
        try:
            import shtab
        except ImportError as error:
            parser.error(str(missing_extra(error, option or "completion") or error))
        try:
            sys.stdout.write(shtab.complete(self._whole(), shell) + "\n")
            sys.stdout.flush()
        except BrokenPipeError:  # the reader has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        parser.exit(0)
