"""Run a script of the documentation that measures, and print its records as JSON lines.

    python docs/measure.py benchmarks/hook.py --seconds 0.5 --mbit 0 1000 > docs/data/hook_benchmark.jsonl

The script has ``main``, which yields records.  Its arguments are the options: their defaults say what they take, and an
argument without default comes without dashes.  The environment, the options and ``HEAD`` of the script precede the
records.  Everything runs in one thread.  The script's folder is searched last, because a script may have the name of a
package.

A long study yields its summary instead, with ``summarised``, and keeps its records by ``resume``, so that it goes on
where it was stopped.
"""

from __future__ import annotations

import argparse
import inspect
import json
import os
import sys
from collections.abc import Callable, Hashable, Iterable, Sequence
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

DOCS = Path(__file__).parent
DATA = DOCS / "data"
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
Record = dict[str, Any]
Case = TypeVar("Case", bound=Hashable)


def load(path: Path) -> ModuleType:
    """Import a script under a name that no package has."""
    sys.path.append(str(path.parent))
    spec = spec_from_file_location(f"script_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def options(main: Callable[..., Any], words: Sequence[str], description: str | None = None) -> dict[str, Any]:
    """Read the arguments of ``main`` from the words of a command line."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    hints = get_type_hints(main)
    for name, parameter in inspect.signature(main).parameters.items():
        default = parameter.default
        choices = get_args(hints[name]) if get_origin(hints[name]) is Literal else None
        if default is parameter.empty:
            parser.add_argument(name, choices=choices)
        elif default is False:
            parser.add_argument(f"--{name}", action="store_true")
        elif isinstance(default, tuple):
            parser.add_argument(f"--{name}", nargs="+", type=type(default[0]) if default else str, default=default)
        else:
            kind = str if default is None else type(default)
            parser.add_argument(f"--{name}", type=kind, choices=choices, default=default)
    return vars(parser.parse_args(words))


def resume(
    out: str | Path,
    cases: Iterable[Case],
    case_of: Callable[[Record], Case],
    make: Callable[[list[Case]], Iterable[Record]],
) -> list[Record]:
    """Append the records of the cases that have none yet, each as soon as it is made, and return all records.

    Parameters
    ----------
    out : Path or str
        The file of records, in docs/data unless it has a folder; a last line cut short by a crash is dropped.
    cases : iterable of hashable
        All that the study is made of, in the order of work.
    case_of : callable
        Gives the case of a record.
    make : callable
        Gives the records of a list of cases.
    """
    from gpu_validation.records.storage import JsonLines, read_lines, write_atomically

    path = in_data(out)
    records = list(read_lines(path)) if path.exists() else []
    write_atomically(path, "".join(json.dumps(record) + "\n" for record in records))
    recorded = {case_of(record) for record in records}
    with JsonLines(path, mode="a") as file:
        for record in make([case for case in cases if case not in recorded]):
            file.write(record)
            records.append(record)
    return records


def summarised(summary: Record, out: str | Path) -> Record:
    """Write the summary of a study beside its records, and return it."""
    from gpu_validation.records.environment import environment
    from gpu_validation.records.storage import write_atomically

    totals = summary | environment()
    write_atomically(in_data(out).with_suffix(".json"), json.dumps(totals, indent=2) + "\n")
    return totals


def in_data(path: str | Path) -> Path:
    """Return the path; a bare name is that of a file in docs/data."""
    return DATA / path if Path(path).name == str(path) else Path(path)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("a script of the documentation must be named, such as benchmarks/hook.py; got none: name one")
    for variable in THREADS:
        os.environ.setdefault(variable, "1")
    script = load(DOCS / sys.argv[1])
    chosen = options(script.main, sys.argv[2:], script.__doc__)
    from gpu_validation.records.environment import environment

    head = {"record": "environment", **environment(), **chosen, **getattr(script, "HEAD", {})}
    print(json.dumps(head), flush=True)
    for record in script.main(**chosen):
        print(json.dumps(record), flush=True)
