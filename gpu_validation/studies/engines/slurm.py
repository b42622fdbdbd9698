"""SLURM jobs by submitit, which can also run the same jobs on this machine."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Any

from bounds.extras import missing_extra

from ...records.exit_status import UsageError
from .engine import Call, Engine, Job, WorkerLost

TIME_LIMIT_MIN = 60  # a unit takes about a minute; SBATCH_TIMELIMIT overrides it
REAPED_S = 10.0  # time limit for a cancelled job on this machine to end


class Slurm(Engine):
    """One SLURM job per call; sbatch's variables (SBATCH_PARTITION, SBATCH_ACCOUNT ...) select the nodes.

    Parameters
    ----------
    jobs : int
        Number of jobs at a time, including queued ones, >= 1.
    folder : Path
        Folder of calls, answers and logs, on a file system that all machines share.
    cores : int, optional
        Cores per job.
    exclusive : bool, optional
        Whether every job has its own machine.
    cluster : {"slurm", "local"}, optional
        "local" runs the same jobs on this machine.

    Raises
    ------
    UsageError
        Without submitit, or without SLURM's programs.
    """

    def __init__(
        self, jobs: int, folder: Path, *, cores: int = 1, exclusive: bool = False, cluster: str = "slurm"
    ) -> None:
        try:
            import submitit
        except ImportError as error:
            raise UsageError(str(missing_extra(error, "--on slurm") or error)) from error
        absent = [program for program in ("sbatch", "srun") if cluster == "slurm" and shutil.which(program) is None]
        if absent:
            raise UsageError(
                f"--on slurm needs {absent[0]}, which is not on this machine: run on a login node of the cluster, "
                "or give --on local"
            )
        self.jobs, self.shares_machines = jobs, jobs > 1 and not (exclusive and cluster == "slurm")
        self.on_this_machine = cluster == "local"
        self._folder, self._lost = folder.absolute(), False
        folder.mkdir(parents=True, exist_ok=True)
        self._executor: Any = submitit.AutoExecutor(folder=self._folder, cluster=cluster)
        self._executor.update_parameters(timeout_min=TIME_LIMIT_MIN, cpus_per_task=cores, name="gpu-validation")
        if exclusive:
            self._executor.update_parameters(slurm_exclusive=True)

    def submit(self, call: Call) -> Job:
        """Submit a job to the cluster."""
        return _Submitted(self._executor.submit(call), self)

    def lose(self) -> None:
        """Keep the logs, because a worker was lost."""
        self._lost = True

    def close(self) -> None:
        """Remove calls, answers and logs, unless a worker was lost."""
        if not self._lost:
            shutil.rmtree(self._folder, ignore_errors=True)


class _Submitted(Job):
    """A job of submitit."""

    def __init__(self, job: Any, engine: Slurm) -> None:
        self._job, self._engine = job, engine

    def done(self) -> bool:
        return bool(self._job.done())

    def answer(self) -> Any:
        from submitit.core.utils import FailedJobError, UncompletedJobError

        try:
            return self._job.result()
        except (FailedJobError, UncompletedJobError) as error:
            self._engine.lose()
            words = [line for line in str(error).splitlines() if line.strip(" -")]
            raise WorkerLost(f"job {self._job.job_id} left no answer: {words[-1].strip()}") from error

    def cancel(self) -> None:
        if self._job.done():
            return
        self._job.cancel(check=False)
        deadline = time.monotonic() + REAPED_S
        while self._engine.on_this_machine and not self._job.done() and time.monotonic() < deadline:
            time.sleep(0.05)
