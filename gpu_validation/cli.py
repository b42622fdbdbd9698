"""Commands ``run``, ``attach`` and ``studies`` of ``ratedist``, and ``gpu-validation``, a program of these alone."""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # ranks share the cores; set before torch is imported

import argparse
import signal
import sys
import threading
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from bounds.completion import PrintCompletion
from bounds.spelling import real_number, whole_number
from ratedist.interfaces.commands import AddedCommand, OneLineParser
from ratedist.interfaces.exit_status import CRASHED, FILES, OK, USAGE, every_interrupt_heard, statuses_text

from .records.exit_status import Terminated, UsageError, ending
from .studies.engines.engine import ENGINES
from .telemetry.command import add_arguments, attach

if TYPE_CHECKING:
    from rich.console import Console

    from .studies.carry_out import StudyOutcome
    from .studies.engines.engine import Engine
    from .studies.study import Study

EXTRA = {"torch": "torch", "matplotlib": "matplotlib", "sklearn": "scikit-learn"}  # packages of ratedist[validate]


def _add_run(run: argparse.ArgumentParser) -> None:
    which = run.add_mutually_exclusive_group(required=True)
    which.add_argument("preset", nargs="?", help="name of the study, as listed, or module:PRESET for your own")
    which.add_argument("--preset", dest="named", metavar="PRESET", help="the same")
    run.add_argument("--out", type=Path, default=Path("results"), help="folder for the results (default: results)")
    run.add_argument(
        "--minutes",
        type=real_number,
        default=None,
        help="time after which no unit is started; the next run continues",
    )
    run.add_argument(
        "--patience",
        type=real_number,
        metavar="SECONDS",
        help="time after which processes that neither report nor compute count as hung (default: 60)",
    )
    run.add_argument(
        "--seed",
        type=whole_number,
        default=None,
        help="seed of all random numbers; 0 as in the committed records; a new one is drawn and printed by default",
    )
    run.add_argument(
        "--on",
        choices=ENGINES,
        help="run several units at a time, by processes of this machine, SLURM jobs or Dask workers; "
        "any engine continues the results of any other",
    )
    run.add_argument("--jobs", type=whole_number, metavar="N", help="with --on: number of units at a time")
    run.add_argument(
        "--operator",
        action="append",
        default=[],
        metavar="SPECIFICATION",
        help="taken by quick or smoke in place of its operators, beside uncompressed training: qsgd:4, or mine:f for a "
        "function x -> x_hat of mine.py that states its bits; may be repeated",
    )


def _run_study(options: argparse.Namespace, program: str) -> int:
    for name in ("minutes", "patience"):
        value = getattr(options, name)
        if value is not None and not value > 0:
            return _fail(program, USAGE, f"--{name} must be above 0; got {value}")
    name = options.preset or options.named
    preset: Study | None = None
    try:
        _import_numpy()
        from .processes import launch
        from .studies.outside import preset_named

        launch.patience_s = options.patience
        preset = _seeded(_with_operators(preset_named(name), options.operator), options.out, options.seed)
        with _sigterm_raises():
            engine = _engine(preset, options.out, options.on, options.jobs)
            return _run(program, preset, options.out, options.minutes, engine)
    except KeyboardInterrupt as interrupt:
        status, words = ending(interrupt)
        return _fail(program, status, f"{words} before a report was written; the measurements are in {options.out}")
    except UsageError as error:
        return _fail(program, USAGE, str(error))
    except ImportError as error:
        return _lacking(program, error, name)
    except Exception as error:  # the exit status of any error must differ from that of a verdict
        if preset is None:
            raise
        return _crashed(program, error, preset, options.out)


def _import_numpy() -> None:
    """Import numpy before torch, which imports it from C++ and drops a Ctrl-C that arrives meanwhile."""
    import numpy  # noqa: F401


def _list(options: argparse.Namespace, program: str) -> int:
    try:
        _import_numpy()
        from .studies import all_presets
        from .studies.outside import offered_lines
    except ImportError as error:
        return _lacking(program, error, "list")

    for preset in all_presets().values():
        sys.stdout.write(f"{preset.name:15} {preset.minutes:4g} min  {preset.description}\n")
    for line in offered_lines():
        sys.stdout.write(f"{line}\n")
    return 0


def _seeded(preset: Study, out: Path, seed: int | None) -> Study:
    """Return the study with the given seed, that of existing results, or a new one.

    Raises
    ------
    UsageError
    """
    from .records.seeds import draw
    from .studies.record_file import stored_seed, unfinished

    folder = out / preset.name
    if seed is None:
        seed = stored_seed(folder)
        if seed is not None and preset.starts_anew and not unfinished(folder, preset.seeded(seed)):
            seed = None
    if seed is None:
        seed = draw()
    try:
        return preset.seeded(seed)
    except ValueError as error:
        raise UsageError(f"--{error}") from error


def _lacking(program: str, error: ImportError, who: str) -> int:
    from bounds.extras import missing_extra

    if not isinstance(error, ModuleNotFoundError) and missing_extra(error, who) is None:
        raise error
    return _fail(program, USAGE, str(missing_extra(error, who) or f"{who} needs the package {error.name}: install it"))


def _with_operators(preset: Study, specifications: Sequence[str]) -> Study:
    """Return the study with other operators, if any are given.

    Raises
    ------
    UsageError
    """
    from .studies.grid.study import Preset

    if not specifications:
        return preset
    if not isinstance(preset, Preset):
        raise UsageError(f"--operator is for quick and smoke; {preset.name} chooses its own: leave it out")
    try:
        return preset.with_operators(specifications)
    except ValueError as error:
        raise UsageError(f"--operator: {error}") from error


def _attach(options: argparse.Namespace, program: str) -> int:
    try:
        _import_numpy()
        return attach(options)
    except ImportError as error:
        return _lacking(program, error, "attach")
    except UsageError as error:
        return _fail(program, USAGE, str(error))
    except OSError as error:
        return _fail(program, FILES, f"cannot read or write {error.filename}: {error.strerror}")


def _crashed(program: str, error: Exception, preset: Study, out: Path) -> int:
    from .records.exit_status import MEASUREMENTS
    from .records.storage import DamagedRecords, read_lines
    from .studies.carry_out import kept

    if isinstance(error, DamagedRecords):
        return _fail(program, FILES, str(error))
    path = out / preset.name / MEASUREMENTS
    n_units = sum("unit" in line for line in read_lines(path)) if path.exists() else 0
    words = "; ".join([*getattr(error, "__notes__", ()), kept(preset, out, n_units)])
    if isinstance(error, OSError) and error.filename:
        return _fail(program, FILES, f"cannot read or write {error.filename}: {error.strerror}; {words}")
    traceback.print_exc()
    return _fail(program, CRASHED, f"crashed ({type(error).__name__}: {error}); {words}; please report the lines above")


def _fail(program: str, status: int, words: str) -> int:
    sys.stderr.write(f"{program}: {words}\n")
    return status


@contextmanager
def _sigterm_raises() -> Iterator[None]:
    """Inside, SIGTERM ends the run as Ctrl-C does, with a report."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def terminate(number: int, frame: object) -> None:
        raise Terminated

    before = signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _require_extra() -> None:
    """Check before any measurement that the report can be made.

    Raises
    ------
    UsageError
    """
    missing = [package for module, package in EXTRA.items() if find_spec(module) is None]
    if missing:
        raise UsageError(f'a run needs {" and ".join(missing)}: pip install "ratedist[validate]"')


def _engine(preset: Study, out: Path, name: str | None, jobs: int | None) -> Engine | None:
    """Return the engine that runs the units; None for this process.

    Raises
    ------
    UsageError
    """
    if name is None:
        if jobs is not None:
            raise UsageError(f"--jobs {jobs} is for --on: give --on local too, or leave it out")
        return None
    from .studies.carry_out import require_units
    from .studies.engines.named import engine_named

    require_units(preset)
    return engine_named(
        name, out / preset.name / "jobs", jobs=jobs, cores=preset.processes, timed=preset.measures_seconds
    )


def _run(program: str, preset: Study, out: Path, minutes: float | None, engine: Engine | None) -> int:
    from rich.console import Console

    from .judging.console import advancing
    from .records.seeds import replay
    from .studies.carry_out import carry_out
    from .studies.record_file import unfinished

    _require_extra()
    console = Console()
    console.print(f"seed {preset.seed}; again: {replay(preset.command, preset.seed)}", highlight=False, soft_wrap=True)
    n_kept = unfinished(out / preset.name, preset)
    if n_kept:
        words = f"goes on: {n_kept} of {len(preset.units())} units of seed {preset.seed} are in {out / preset.name}"
        console.print(words, highlight=False, soft_wrap=True)
    with advancing(console, preset.units(), n_kept) as advance:
        seconds = None if minutes is None else 60 * minutes
        outcome = carry_out(preset, out, seconds=seconds, progress=advance, engine=engine)
    _show(program, console, preset, outcome)
    return outcome.exit_code


def _show(program: str, console: Console, preset: Study, outcome: StudyOutcome) -> None:
    """Print the summary table, the verdict counts and the paths of the results."""
    from rich.console import Console
    from rich.markup import escape

    from .judging.console import MEANING, headline
    from .records.exit_status import REPORT, SUMMARY

    console.print(preset.summary(outcome.records, outcome.comparisons))
    console.print(headline(outcome.comparisons)[0], style="bold", highlight=False, soft_wrap=True)
    console.print(MEANING, style="dim", highlight=False)
    if losses := preset.losses(outcome.records):
        console.print(losses, highlight=False)
    if outcome.note:
        console.print(outcome.note, highlight=False, soft_wrap=True)
    console.print(f"report: {outcome.folder / REPORT}", highlight=False, soft_wrap=True)
    if outcome.comparisons:
        console.print(f"picture: {outcome.folder / SUMMARY}", highlight=False, soft_wrap=True)
    if outcome.exit_code != OK:
        Console(stderr=True).print(f"{program}: {escape(outcome.message)}", highlight=False, soft_wrap=True)


# -- commands ----------------------------------------------------------------------------------------------------
RUN = AddedCommand("run one study with real processes, and judge it by the bounds", _add_run, _run_study)
ATTACH = AddedCommand("show the report of your own run, during or after it", add_arguments, _attach)
STUDIES = AddedCommand("list the studies", lambda parser: None, _list)
PROGRAM, COMMANDS, ALIASES = "gpu-validation", {"studies": STUDIES, "run": RUN, "attach": ATTACH}, {"list": "studies"}


def _parser() -> argparse.ArgumentParser:
    parser = OneLineParser(
        prog=PROGRAM,
        description="Run distributed training with real processes and compare the measurements with the bounds.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=f"ratedist has the same commands: ratedist run, attach, studies\n\n{statuses_text()}",
    )
    parser.add_argument("--print-completion", action=PrintCompletion, whole=_parser)
    commands = parser.add_subparsers(dest="command", required=True, parser_class=OneLineParser)
    for name, command in COMMANDS.items():
        aliases = [alias for alias, meant in ALIASES.items() if meant == name]
        command.add_arguments(commands.add_parser(name, help=command.summary, aliases=aliases))
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    try:
        with every_interrupt_heard():
            options = _parser().parse_args(arguments)
            return COMMANDS[ALIASES.get(options.command, options.command)].carry_out(options, PROGRAM)
    except KeyboardInterrupt as interrupt:  # before a run has begun or after it has ended
        status, words = ending(interrupt)
        return _fail(PROGRAM, status, words)
