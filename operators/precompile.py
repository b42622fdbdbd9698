"""Compile the loops of all operators before the first message needs them.

    python -m operators.precompile             for this processor
    python -m operators.precompile --portable  for a wheel or an image: for every level of x86-64

Every example of the catalogue sends messages of several lengths; existing code is loaded, not compiled.
"""

from __future__ import annotations

import argparse
import logging
import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import torch
from llvmlite import binding

from .catalogue import all_aggregates, all_operators
from .compilation.processors import LEVELS, features_of, processors
from .key import Key, Keys
from .operator import Operator

LENGTHS = 1, 1000, 10_000, 300_000  # below and above the tiles, samples, caches and segments of the loops
WORKERS = 3  # for an aggregation that takes any number


def send(operator: Operator) -> None:
    """Encode and decode one vector of each length, and a batch.

    Parameters
    ----------
    operator : Operator
        Operator whose loops are compiled.
    """
    for d in LENGTHS:
        x = torch.linspace(-1, 1, d)
        operator.decode(operator.encode(x, key=Key(0)), d=d, key=Key(0))
    x, keys = torch.linspace(-1, 1, LENGTHS[1]).expand(2, -1), Keys(Key(0), range(2))
    operator.decode_rows(operator.encode_rows(x, keys=keys), d=LENGTHS[1], keys=keys)


def send_examples(name: str) -> None:
    """Send messages of every example of an operator or an aggregation.

    Parameters
    ----------
    name : str
        Name in the catalogue.
    """
    logging.getLogger("operators").setLevel(logging.ERROR)  # the caller asked for compilation: no notice
    if name in all_operators():
        for operator in all_operators()[name].examples():
            send(operator)
        return
    for aggregate in all_aggregates()[name].examples():
        keys = [Key(0, rank=rank) for rank in range(getattr(aggregate, "workers", WORKERS))]
        aggregate.round([torch.linspace(-1, 1, LENGTHS[-1])] * len(keys), keys=keys)


def levels_of_this_machine() -> tuple[str, ...]:
    """Return the levels of x86-64 whose code this machine can run; () on other architectures."""
    features = binding.get_host_cpu_features().flatten()
    return processors(binding.get_process_triple(), binding.get_host_cpu_name(), features)[1:]


def precompile(names: Sequence[str] = ()) -> None:
    """Compile for this processor, with one process per core.

    Parameters
    ----------
    names : sequence of str, optional
        Operators and aggregations of the catalogue; by default all.
    """
    names = names or (*all_operators(), *all_aggregates())
    with ProcessPoolExecutor(min(os.cpu_count() or 1, len(names)), get_context("spawn")) as pool:
        for i, _ in enumerate(pool.map(send_examples, names)):
            sys.stdout.write(f"\rcompiled the loops of {i + 1} of {len(names)}: {names[i]:30}")
            sys.stdout.flush()
    sys.stdout.write("\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return 0 when all is compiled.

    Parameters
    ----------
    arguments : sequence of str, optional
        Arguments; by default those of the command line.
    """
    parser = argparse.ArgumentParser(prog="python -m operators.precompile", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", help="operators and aggregations (default: all)")
    parser.add_argument("--portable", action="store_true", help=f"for {', '.join(LEVELS)}, into the package's folder")
    chosen = parser.parse_args(arguments)
    for name in chosen.names:
        if name not in (*all_operators(), *all_aggregates()):
            parser.error(f"nothing called {name!r} is in the catalogue: leave it out")
    levels = levels_of_this_machine() if chosen.portable else ()
    if chosen.portable and not levels:
        parser.error(f"this machine runs code of none of {', '.join(LEVELS)}: it is {platform.machine()}")
    if not levels:
        precompile(chosen.names)
    for level in levels:  # numba reads its environment once, when it is imported
        settings = {"NUMBA_CPU_NAME": level, "NUMBA_CPU_FEATURES": features_of(level), "NUMBA_CACHE_DIR": ""}
        command = [sys.executable, "-m", "operators.precompile", *chosen.names]
        subprocess.run(command, env=os.environ | settings, check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
