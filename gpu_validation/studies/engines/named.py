"""Engines by their command-line names."""

from __future__ import annotations

import os
from pathlib import Path

from ...records.exit_status import UsageError
from .dask import Dask
from .engine import ENGINES, Engine, Local
from .slurm import Slurm

QUEUED = 32  # default number of jobs in a cluster's queue


def engine_named(name: str, folder: Path, *, jobs: int | None, cores: int, timed: bool) -> Engine:
    """Return an engine.

    Parameters
    ----------
    name : str
        One of ``ENGINES``.
    folder : Path
        Folder of files of running calls, shared by all machines.
    jobs : int or None
        Number of jobs at a time; None takes as many as this machine has cores for, 32 with SLURM, or the threads of
        Dask's workers.
    cores : int
        Cores per call, >= 1.
    timed : bool
        Whether calls measure seconds and must not share a machine.

    Raises
    ------
    UsageError
        For fewer than one job, an unknown engine, and one that is not available.
    """
    if jobs is not None and jobs < 1:
        raise UsageError(f"--jobs must be >= 1; got {jobs}")
    if name == "local":
        fitting = 1 if timed else max(1, (os.cpu_count() or 1) // cores)
        return Local(jobs or fitting, folder)
    if name == "slurm":
        return Slurm(jobs or QUEUED, folder, cores=cores, exclusive=timed)
    if name == "dask":
        return Dask(jobs, cores=cores, exclusive=timed)
    raise UsageError(f"--on must be one of {', '.join(ENGINES)}; got {name!r}")
