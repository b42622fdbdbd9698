"""The last line of the table: a rank is killed, torchrun starts all anew, and the run ends with the same bits."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from gpu_validation import run_ranks

from .. import forked

SCRIPT = Path(__file__).parent / "elastic.py"
SPEC = importlib.util.spec_from_file_location("compatibility_elastic", SCRIPT)
elastic = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(elastic)
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "--max-restarts=1"]

pytestmark = pytest.mark.timeout(280)


def uninterrupted(way, folder):
    """Every rank's parameters."""

    def work(place, emit):
        emit((place.rank, elastic.train(way, folder)[1].numpy()))

    return dict(run_ranks(work, processes=2, hang_timeout_s=60))


def by_the_command(way, folder):
    return subprocess.run(
        [*TORCHRUN, str(SCRIPT), way],
        cwd=folder,
        env={**os.environ, "TORCH_ELASTIC_SHUTDOWN_TIMEOUT": "5"},
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )


def in_forks(way, folder):
    return forked.torchrun(SCRIPT, way, folder=folder, max_restarts=1)


@pytest.mark.thorough
@pytest.mark.parametrize(("way", "launched"), [("averaging", by_the_command), ("hook", in_forks)])
def test_a_killed_rank_costs_no_bit(way, launched, tmp_path):
    result = launched(way, tmp_path)

    assert result.returncode == 0, result.stderr
    expected = uninterrupted(way, tmp_path / "other")
    assert (expected[0] == expected[1]).all()
    for rank in range(2):
        attempt, start, parameters = torch.load(tmp_path / f"rank-{rank}.pt", weights_only=True)
        assert (attempt, start) == (1, 5)
        assert (parameters.numpy() == expected[rank]).all()
