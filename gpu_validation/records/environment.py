"""Environment of a measurement: commit, code, machine and versions."""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

PACKAGES = ("bounds", "operators", "ratedist", "gpu_validation")


@dataclass(frozen=True)
class Environment:
    """Environment of a measurement.

    Parameters
    ----------
    preset : str
        Name of the study.
    commit : str
        Commit of the checkout, marked if dirty.
    code : str
        Digest of the packages' source files.
    device : str
        Processor or GPU.
    processes : int
        Number of ranks; 1 for a single process.
    backend : str
        Back end of the process group.
    versions : dict of str to str
        Versions by package.
    kind : str, optional
        "environment", the kind of the line in a file.
    seed : int, optional
        Seed of all random numbers of the run.
    """

    preset: str
    commit: str
    code: str
    device: str
    processes: int
    backend: str
    versions: dict[str, str]
    kind: str = "environment"
    seed: int = 0

    @classmethod
    def here(cls, preset: str, processes: int, backend: str, seed: int = 0) -> Environment:
        """Return the environment of this machine and this checkout.

        Parameters
        ----------
        preset : str
            Name of the study.
        processes : int
            Number of ranks; 1 for a single process.
        backend : str
            Back end of the process group: "gloo" or "nccl".
        seed : int, optional
            Seed of all random numbers.
        """
        names = ("ratedist", "torch", "numpy", "numba", "sympy")
        versions = {"python": platform.python_version(), **{name: version(name) for name in names}}
        device = f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores"
        return cls(preset, commit(), source_digest(), device, processes, backend, versions, seed=seed)


def environment(*packages: str) -> dict[str, Any]:
    """Return command, commit, versions, machine and load, for the record of a script that measures.

    Parameters
    ----------
    *packages : str
        Packages whose versions count beside Python, NumPy and PyTorch.
    """
    import torch

    return {
        "command": " ".join(["python", os.path.relpath(sys.argv[0]), *sys.argv[1:]]),
        "commit": commit(),
        "python": platform.python_version(),
        **{name: version(name) for name in ("numpy", "torch", *packages)},
        "machine": platform.machine(),
        "cpus": os.cpu_count(),
        "load": [round(load, 2) for load in os.getloadavg()] if hasattr(os, "getloadavg") else None,
        "threads": torch.get_num_threads(),
    }


@cache
def source_digest() -> str:
    """Return a digest of the source files of the four packages, by names and contents.

    Trees with the same digest run the same code, committed or not.
    """
    root = Path(__file__).parent.parent.parent
    digest = hashlib.sha256()
    for path in sorted(
        path for package in PACKAGES for kind in ("*.py", "*.c") for path in (root / package).rglob(kind)
    ):
        name, content = path.relative_to(root).as_posix().encode(), path.read_bytes()
        digest.update(b"%d %s %d %s" % (len(name), name, len(content), content))
    return digest.hexdigest()[:16]


@cache
def commit() -> str:
    """Return the commit of this checkout, marked if dirty; "unknown" outside a clone."""
    try:
        folder = Path(__file__).parent
        described = subprocess.run(
            ["git", "describe", "--always", "--dirty"],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return described.stdout.strip()
