"""What several test files of the harness look at."""

import fcntl
import os
import pickle
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass(frozen=True)
class SmokeRun:
    """``gpu-validation run smoke`` as a user meets it."""

    result: subprocess.CompletedProcess
    folder: Path


@pytest.fixture(scope="session")
def smoke_run(tmp_path_factory):
    """One run of the whole preset by the command line, for all workers of pytest-xdist."""
    own = tmp_path_factory.getbasetemp()
    out = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "smoke_run"
    out.mkdir(exist_ok=True)
    with (out / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        record = out / "result.pickle"
        if not record.exists():
            command = [sys.executable, "-m", "gpu_validation", "run", "smoke", "--seed", "0", "--out", str(out)]
            result = subprocess.run(command, capture_output=True, text=True, timeout=150, check=False)
            record.write_bytes(pickle.dumps(result))
        return SmokeRun(pickle.loads(record.read_bytes()), out / "smoke")
