"""Run a script of the documentation that measures, and print its records as JSON lines.

    python docs/measure.py benchmarks/hook.py --seconds 0.5 --mbit 0 1000 > docs/data/hook_benchmark.jsonl

The script has ``main``, which yields records.  Its arguments are the options: their defaults say what they take, and an
argument without default comes without dashes.  Everything runs in one thread.  The script's folder is searched last,
because a script may have the name of a package.
"""

from __future__ import annotations

import argparse
import inspect
import json
import os
import sys
from collections.abc import Callable, Sequence
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, get_args, get_origin, get_type_hints

DOCS = Path(__file__).parent
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")


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


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("a script of the documentation must be named, such as benchmarks/hook.py; got none: name one")
    for variable in THREADS:
        os.environ.setdefault(variable, "1")
    script = load(DOCS / sys.argv[1])
    for record in script.main(**options(script.main, sys.argv[2:], script.__doc__)):
        print(json.dumps(record), flush=True)
