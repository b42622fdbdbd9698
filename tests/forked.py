"""torchrun's launcher with ranks that are forks of this process, which has imported for them what takes seconds.

torchrun itself is a command line before the same launcher.  Every file that uses this has a run of the command, too.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import runpy
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path

RANKS = 2
TIMEOUT_S = 200
FORK = multiprocessing.get_context("fork")
IMPORTED_BY_OPTIMIZERS = "torch._dynamo"


@dataclass(frozen=True)
class Ended:
    """How all ranks have ended, and what they have written."""

    returncode: int
    stdout: str
    stderr: str


def torchrun(
    script: Path, *arguments: str, folder: Path, max_restarts: int = 0, importing: tuple[str, ...] = ()
) -> Ended:
    """Run a script as ``torchrun --standalone --nproc-per-node=2`` does, in a folder.

    Parameters
    ----------
    script : Path
        What every rank runs.
    *arguments : str
        Of its command line.
    folder : Path
        Where it runs.
    max_restarts : int, optional
        How often all ranks are started anew.
    importing : tuple of str, optional
        Modules that both ranks will import, and that are imported for them.
    """
    importlib.import_module(IMPORTED_BY_OPTIMIZERS)
    process = FORK.Process(target=_launch, args=(script, arguments, folder, max_restarts, importing))
    process.start()
    process.join(TIMEOUT_S)
    if process.is_alive():
        process.terminate()  # on which the launcher ends its ranks
        process.join()
        raise TimeoutError(f"{script.name} has not ended within {TIMEOUT_S} s")
    assert process.exitcode is not None
    return Ended(process.exitcode, (folder / "stdout.txt").read_text(), (folder / "stderr.txt").read_text())


def _launch(
    script: Path, arguments: tuple[str, ...], folder: Path, max_restarts: int, importing: tuple[str, ...]
) -> None:
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    os.chdir(folder)
    with Path("stdout.txt").open("a", 1) as out, Path("stderr.txt").open("a", 1) as err:
        sys.stdout, sys.stderr = out, err
        os.dup2(out.fileno(), 1), os.dup2(err.fileno(), 2)
        warnings.simplefilter("default")
        for name in importing:
            importlib.import_module(name)
        meeting = {"run_id": "forked", "rdzv_backend": "c10d", "rdzv_endpoint": "localhost:0"}
        restarts = {"max_restarts": max_restarts, "monitor_interval": 0.1}
        config = LaunchConfig(1, 1, RANKS, **meeting, **restarts, start_method="fork")
        elastic_launch(config, _rank)(str(script), *arguments)


def _rank(script: str, *arguments: str) -> None:
    import torch

    torch.set_num_threads(1)  # as OMP_NUM_THREADS of torchrun: threads of a pool do not survive a fork
    sys.argv = [script, *arguments]
    sys.path.insert(0, str(Path(script).parent))
    runpy.run_path(script, run_name="__main__")
