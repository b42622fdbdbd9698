"""Under what circumstances numbers were taken."""

from __future__ import annotations

import os
import platform
import subprocess
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path


@dataclass(frozen=True)
class Environment:
    """Under what circumstances the numbers were taken.

    Parameters
    ----------
    preset : str
        Name of the study.
    commit : str
        Of the checkout, marked if dirty.
    device : str
        What computed.
    processes : int
        Ranks that take part, 1 if everything happens in one process.
    backend : str
        How they were joined.
    versions : dict of str to str
        Package -> version.
    kind : str, optional
        "environment", which tells this line from others in a file.
    seed : int, optional
        From which all random numbers of the run are derived.
    """

    preset: str
    commit: str
    device: str
    processes: int
    backend: str
    versions: dict[str, str]
    kind: str = "environment"
    seed: int = 0

    @classmethod
    def here(cls, preset: str, processes: int, backend: str, seed: int = 0) -> Environment:
        """Describe this machine and this checkout.

        Parameters
        ----------
        preset : str
            Name of the experiment.
        processes : int
            Ranks that take part, 1 if everything happens in one process.
        backend : str
            How the processes are joined: "gloo" or "nccl".
        seed : int, optional
            Of all random numbers.
        """
        names = ("ratedist", "torch", "numpy", "numba", "sympy")
        versions = {"python": platform.python_version(), **{name: version(name) for name in names}}
        device = f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores"
        return cls(preset, _commit(), device, processes, backend, versions, seed=seed)


def _commit() -> str:
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
