"""What several test files of the harness look at."""

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
    """One run of the whole preset, by the command line."""
    out = tmp_path_factory.mktemp("smoke_run")
    command = [sys.executable, "-m", "gpu_validation", "run", "smoke", "--seed", "0", "--out", str(out)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=150, check=False)
    return SmokeRun(result, out / "smoke")
