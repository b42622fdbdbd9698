"""Command ``ratedist attach FOLDER``: report on a running, finished or dead run from its telemetry folder."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from bounds.spelling import real_number
from ratedist.interfaces.exit_status import OK, VIOLATED

from ..records.exit_status import UsageError

if TYPE_CHECKING:
    from .attach import View

CONSTANTS = {
    "L": "smoothness of the loss",
    "sigma2": "variance of one worker's mini-batch gradient",
    "gap": "loss at the start minus its infimum",
    "time_s": "seconds that the whole run may take",
}
CLEAR = "\x1b[H\x1b[2J"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("folder", type=Path, help="folder of PeriodicAveraging(..., telemetry=FOLDER)")
    parser.add_argument("--once", action="store_true", help="print the report once instead of until the run ends")
    parser.add_argument("--json", action="store_true", help="print JSON, one line per report")
    parser.add_argument("--html", type=Path, metavar="FILE", help="also write the report as a page")
    for name, words in CONSTANTS.items():
        parser.add_argument(f"--{name}", type=real_number, help=f"{words}, to predict the gain of a better tau")


def attach(options: argparse.Namespace) -> int:
    """Run the command; return the exit status, VIOLATED if a row of the last report is.

    Raises
    ------
    UsageError
        For a folder that cannot be read and constants out of range.
    OSError
        For a page that cannot be written.
    """
    from .attach import view, watch
    from .periods import Known

    try:
        constants = Known(**{name: getattr(options, name) for name in CONSTANTS})
    except ValueError as error:
        raise UsageError(str(error)) from error
    last = watch(lambda: view(options.folder, known=constants), lambda seen: _show(seen, options), once=options.once)
    return VIOLATED if last.report.accused else OK


def _show(seen: View, options: argparse.Namespace) -> None:
    from .attach import write_page

    if options.html is not None:
        write_page(seen, options.folder, options.html)
    live = not options.once and not options.json and sys.stdout.isatty()
    text = seen.report.to_json() if options.json else str(seen)
    sys.stdout.write(f"{CLEAR if live else ''}{text}\n")
    sys.stdout.flush()
