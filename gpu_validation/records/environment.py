"""Under what circumstances numbers were taken."""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path

PACKAGES = ("bounds", "operators", "ratedist", "gpu_validation")


@dataclass(frozen=True)
class Environment:
    """Under what circumstances the numbers were taken.

    Parameters
    ----------
    preset : str
        Name of the study.
    commit : str
        Of the checkout, marked if dirty.
    code : str
        Digest of the packages' source files.
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
    code: str
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
        return cls(preset, _commit(), source_digest(), device, processes, backend, versions, seed=seed)


@cache
def source_digest() -> str:
    """Return a digest of the Python files of the four packages: their names and contents.

    Trees with the same digest run the same code, committed or not.
    """
    root = Path(__file__).parent.parent.parent
    digest = hashlib.sha256()
    for path in sorted(path for package in PACKAGES for path in (root / package).rglob("*.py")):
        name, content = path.relative_to(root).as_posix().encode(), path.read_bytes()
        digest.update(b"%d %s %d %s" % (len(name), name, len(content), content))
    return digest.hexdigest()[:16]


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
