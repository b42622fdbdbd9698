"""The command line ``ratedist``: the calculator's calls, as tables or as JSON."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from .exit_status import CRASHED, INTERRUPTED, OK, USAGE, VIOLATED, every_interrupt_heard

if TYPE_CHECKING:
    from ..records import Answer


os.environ.setdefault("OMP_NUM_THREADS", "1")  # vectors here are short; set before torch is imported


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status, one of ``exit_status.STATUSES``."""
    try:
        with every_interrupt_heard():
            return _carry_out(list(sys.argv[1:] if arguments is None else arguments))
    except KeyboardInterrupt:  # whenever it comes, while something is imported too
        sys.stderr.write("ratedist: interrupted\n")
        return INTERRUPTED


def _carry_out(words: Sequence[str]) -> int:
    from .commands import UnusableCommandError, added_command
    from .parser import PROGRAM, build, build_added, keywords_of, named

    word = words[0] if words else ""
    try:
        added = added_command(word) if named(word) is None else None
    except UnusableCommandError as error:
        return _said(word, str(error), USAGE)
    if added is not None:
        return added.carry_out(build_added(word, added).parse_args(words), PROGRAM)
    parser = build(word)
    options, rest = parser.parse_known_args(words)
    call = named(options.command)
    assert call is not None
    assert call.command is not None
    command = call.command
    if rest and not command.takes_symbols:
        unknown = f"unrecognized arguments: {' '.join(rest)} (see {PROGRAM} {options.command} --help)"
        return _said(options.command, unknown, USAGE)
    try:
        result = command.run(**keywords_of(command, options, rest))
        if options.json:
            from ..records import to_json

            sys.stdout.write(json.dumps(to_json(command.record(result)), allow_nan=False, indent=2) + "\n")
        elif (shown := command.show(result)) is not None:
            _print(shown, explain=options.explain)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has seen enough, as in ratedist operators | head
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except (ValueError, OSError, ImportError) as error:
        return _said(options.command, _sentence(error), USAGE)
    except Exception as error:
        fault = f"a fault of ratedist, not of the command ({type(error).__name__}: {error}): report it"
        return _said(options.command, fault, CRASHED)
    return OK if command.ok(result) else VIOLATED


def _said(command: str, sentence: str, status: int) -> int:
    sys.stderr.write(f"ratedist {command}: {' '.join(sentence.split())}\n")
    return status


def _sentence(error: Exception) -> str:
    """Return what to say of bad input; of a missing library, which extra brings it."""
    from bounds.extras import missing_extra

    return str(missing_extra(error, "this command") or error)


def _print(shown: Answer | str, *, explain: bool) -> None:
    text = shown if isinstance(shown, str) else shown.explain() if explain else shown.text()
    sys.stdout.write(text if text.endswith("\n") else text + "\n")
