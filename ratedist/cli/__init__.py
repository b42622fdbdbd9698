"""The command line ``ratedist``: the calculator's calls, as tables or as JSON."""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # vectors here are short; set before torch is imported

import json
import sys
from collections.abc import Sequence

from .parser import build

OK, FAILED, USAGE, INTERRUPTED = 0, 1, 2, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status: 0 done, 1 a check failed or nothing is feasible, 2 usage."""
    parser = build()
    options, rest = parser.parse_known_args(arguments)
    if rest and options.command != "certify":
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    from .commands import COMMANDS

    try:
        outcome = COMMANDS[options.command](options, rest)
        if options.json:
            from ..records import to_json

            sys.stdout.write(json.dumps(to_json(outcome.record), allow_nan=False, indent=2) + "\n")
        elif outcome.show is not None:
            _print(outcome.show)
        sys.stdout.flush()
    except (ValueError, OSError, ImportError) as error:
        sys.stderr.write(f"ratedist {options.command}: {' '.join(str(error).split())}\n")
        return USAGE
    except KeyboardInterrupt:
        return INTERRUPTED
    return OK if outcome.ok else FAILED


def _print(show: object) -> None:
    from rich.console import Console

    console = Console(highlight=False) if sys.stdout.isatty() else Console(highlight=False, width=100)
    console.print(show)
