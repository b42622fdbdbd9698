"""The acceptance of a GPU: its record without one, its verdicts, and all of its parts in Triton's interpreter."""

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests import scripts

ROOT = Path(__file__).parents[2]
gpu = scripts.load("benchmarks", "gpu")
LINES = [{"cpus": 2}, {"equality": "signs.pack", "d": 1, "equal": True}, {"timing": "copy", "ms": 1.0}]


def test_without_a_gpu_the_record_names_what_was_not_run():
    record = gpu.accept(("kernels", "hook", "training"), interpreted=False, gpu=False)

    assert record["status"] == "not run"
    assert list(record["commands"]) == ["kernels", "hook", "training"] == list(gpu.LIMITS_S)
    assert all((ROOT / command[0]).is_file() for command in record["commands"].values())
    assert all((ROOT / "docs" / command[1]).is_file() for command in record["commands"].values())
    assert sum(gpu.LIMITS_S.values()) <= 480
    json.dumps(record)


def test_an_unequal_kernel_fails_and_so_does_a_record_without_any():
    wrong = {"equality": "rice", "d": 5, "equal": False}
    assert gpu.kernels(LINES) == {"equalities": 1, "unequal": [], "timings": LINES[2:], "passed": True}
    assert gpu.kernels([*LINES, wrong])["unequal"] == [wrong]
    assert not gpu.kernels([*LINES, wrong])["passed"]
    assert not gpu.kernels([])["passed"]


def test_a_part_that_fails_or_takes_too_long_says_so(tmp_path, monkeypatch):
    script = tmp_path / "part.py"
    script.write_text("import sys, time\nif '--wait' in sys.argv: time.sleep(60)\nraise SystemExit('broken')\n")
    failed = gpu.run_part("hook", [str(script)], interpreted=True)
    assert not failed["passed"]
    assert "broken" in failed["output"]

    monkeypatch.setitem(gpu.LIMITS_S, "hook", 1)
    late = gpu.run_part("hook", [str(script), "--wait"], interpreted=False)
    assert not late["passed"]
    assert "longer than 1 s" in late["output"]


@pytest.mark.thorough
@pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not made for this platform")
def test_hook_and_training_pass_in_the_interpreter():
    command = [sys.executable, gpu.MEASURE, "benchmarks/gpu.py", "--interpreted", "--only", "hook", "training"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    head, record = map(json.loads, ended.stdout.splitlines())
    assert head["commit"]
    assert (ended.returncode, record["status"]) == (0, "passed"), record
    assert len(record["parts"]["hook"]["rows"]) == 2 * len(gpu.OPERATORS)
