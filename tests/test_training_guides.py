"""The scripts of the guides run under torchrun, exactly as they are printed."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from . import forked

GUIDES = Path(__file__).parent.parent / "docs/guides"
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]

pytestmark = pytest.mark.timeout(280)


def script(guide, folder):
    """Write the guide's script into the folder."""
    (code,) = re.findall(r"```python\n(.*?)```", (GUIDES / guide).read_text(), re.DOTALL)
    (folder / "train.py").write_text(code)


@pytest.mark.thorough
def test_ddp_script_learns_and_both_ranks_hold_the_same_network(tmp_path):
    script("use_it_in_your_ddp_script.md", tmp_path)

    result = subprocess.run(
        [*TORCHRUN, "train.py"], cwd=tmp_path, capture_output=True, text=True, timeout=200, check=False
    )

    assert result.returncode == 0, result.stderr
    found = re.findall(r"rank \d: accuracy ([\d.]+), (\d+) bytes sent in 150 steps, ([\d.]+) bits", result.stdout)
    assert len(found) == 2
    saved = [torch.load(tmp_path / f"rank-{rank}.pt", weights_only=True) for rank in range(2)]
    for name, value in saved[0]["network"].items():
        assert torch.equal(value, saved[1]["network"][name]), name
    for accuracy, sent, bits in found:
        assert float(accuracy) > 0.85
        assert 0 < int(sent) < 150 * 4 * 2730 / 5, "a fifth of full gradients at most"
        assert 0 < float(bits) < 6
    counters = [state["hook"]["counters"] for state in saved]
    assert sum(own for _, _, own, _ in counters) == counters[0][3] == counters[1][3]


@pytest.mark.thorough
def test_fsdp_script_learns_and_both_ranks_hold_the_same_network(tmp_path):
    script("use_it_with_fsdp.md", tmp_path)

    result = forked.torchrun(tmp_path / "train.py", folder=tmp_path)

    assert result.returncode == 0, result.stderr
    found = re.findall(r"rank \d: accuracy ([\d.]+), (\d+) bytes sent in 150 steps, ([\d.]+) bits", result.stdout)
    assert len(found) == 2
    saved = [torch.load(tmp_path / f"rank-{rank}.pt", weights_only=True) for rank in range(2)]
    for name, value in saved[0]["network"].items():
        assert torch.equal(value, saved[1]["network"][name]), name
    for accuracy, _, bits in found:
        assert float(accuracy) > 0.85
        assert 0 < float(bits) < 4, "a reduce-scatter of binary32 sends 16"
    counters = [[module["counters"] for module in state["shards"]["modules"].values()] for state in saved]
    assert sum(own for rank in counters for _, _, own, _ in rank) == sum(told for *_, told in counters[0]) > 0


@pytest.mark.thorough
def test_script_for_slow_links_learns_and_both_ranks_hold_the_same_network(tmp_path):
    script("train_across_slow_links.md", tmp_path)

    result = forked.torchrun(tmp_path / "train.py", folder=tmp_path)

    assert result.returncode == 0, result.stderr
    (loss, weights, sent), (_, other_weights, _) = re.findall(
        r"rank \d: loss ([\d.]+), weights (\S+), (\d+) bytes sent", result.stdout
    )
    assert weights == other_weights
    assert float(loss) < 1.0, "3.3 where nothing was learnt"
    assert 0 < int(sent) < 320 * 4 * 20_000 / 10, "a tenth of a synchronous run at most"


@pytest.mark.thorough
def test_script_of_sharded_models_learns_and_resumes_bit_for_bit(tmp_path):
    script("average_sharded_models.md", tmp_path)
    command = [*TORCHRUN[:-1], "--nproc-per-node=4", "train.py"]

    runs = []
    for start in (0, 100):
        result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=200, check=False)
        assert result.returncode == 0, result.stderr
        pattern = rf"rank \d: accuracy ([\d.]+), weights (\S+), (\d+) bytes sent from step {start} on"
        runs.append(re.findall(pattern, result.stdout))
        assert len(runs[-1]) == 4
    assert len({(accuracy, weights) for run in runs for accuracy, weights, _ in run}) == 1
    assert float(runs[0][0][0]) > 0.9
    for _, _, sent in runs[0]:
        assert 0 < int(sent) < 20 * 4 * 9610 / 2 / 4, "a quarter of 20 averagings of half a model at most"


@pytest.mark.thorough
def test_script_of_nested_averagings_learns_and_all_ranks_hold_the_same_network(tmp_path):
    script("average_in_a_hierarchy.md", tmp_path)
    command = [*TORCHRUN[:-1], "--nproc-per-node=4", "train.py"]

    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=200, check=False)

    assert result.returncode == 0, result.stderr
    pattern = r"rank \d: accuracy ([\d.]+), weights (\S+), (\d+) bytes sent inside, (\d+) bytes among all"
    found = re.findall(pattern, result.stdout)
    assert len(found) == 4
    assert len({(accuracy, weights) for accuracy, weights, *_ in found}) == 1
    assert float(found[0][0]) > 0.9
    for _, _, inside, among in found:
        assert 80 * 4 * 9610 <= int(inside) < 81 * 4 * 9610, "one whole model to the other rank, 80 times"
        assert 0 < int(among) < 10 * 3 * 4 * 9610 / 4, "less than a quarter of whole models to three ranks, 10 times"


def processes_of(folder):
    """Process ids of the script's ranks, by rank."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if os.readlink(entry / "cwd") != str(folder):
                    continue
                environment = dict(
                    pair.split("=", 1) for pair in (entry / "environ").read_text().split("\0") if "=" in pair
                )
            except OSError:
                continue
            if "RANK" in environment:
                found[int(environment["RANK"])] = int(entry.name)
    return found


@pytest.mark.slow
def test_pasgd_script_survives_a_killed_rank(tmp_path):
    script("use_pasgd_in_your_script.md", tmp_path)
    output = tmp_path / "output"

    with output.open("w") as file:
        run = subprocess.Popen(
            [*TORCHRUN, "--max-restarts=3", "train.py"], cwd=tmp_path, stdout=file, stderr=subprocess.STDOUT
        )
        try:
            deadline = time.monotonic() + 120
            while not list(tmp_path.glob("checkpoints/step-[2-9]00-rank-1-of-2.pt")):  # so all ranks have step 100
                assert run.poll() is None, output.read_text()
                assert time.monotonic() < deadline, "no checkpoint was written"
                time.sleep(0.01)
            os.kill(processes_of(tmp_path)[1], signal.SIGKILL)
            code = run.wait(timeout=150)
        finally:
            run.kill()
            run.wait()

    text = output.read_text()
    assert code == 0, text
    begun = [tuple(map(int, row)) for row in re.findall(r"rank (\d): attempt (\d) begins at step (\d+)", text)]
    assert {(rank, attempt) for rank, attempt, _ in begun} == {(0, 0), (1, 0), (0, 1), (1, 1)}
    starts = {attempt: {start for _, a, start in begun if a == attempt} for attempt in (0, 1)}
    assert starts[0] == {0}
    assert len(starts[1]) == 1
    assert min(starts[1]) >= 100
    found = re.findall(r"rank \d: accuracy ([\d.]+), tau (\d+), (\d+) bytes sent", text)
    assert len(found) == 2
    assert found[0][:2] == found[1][:2]
    assert float(found[0][0]) > 0.9
    assert processes_of(tmp_path) == {}, "nobody is left"
