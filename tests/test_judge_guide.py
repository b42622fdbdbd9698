"""The guide judge_your_own_run.md: its script runs under torchrun and is judged, its preset runs from its folder.

Slow: they start fresh interpreters.  What they rest on is tested in fast tests of real processes beside the telemetry.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest

GUIDE = Path(__file__).parent.parent / "docs/guides/judge_your_own_run.md"
TRAIN, MINE = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(280)]


def run(folder, *command):
    return subprocess.run(
        [sys.executable, "-m", *command], cwd=folder, capture_output=True, text=True, timeout=250, check=False
    )


def test_the_script_reports_and_another_process_reads_the_same(tmp_path):
    (tmp_path / "train.py").write_text(TRAIN)

    trained = run(tmp_path, "torch.distributed.run", "--standalone", "--nproc-per-node=2", "train.py")
    attached = run(tmp_path, "gpu_validation", "attach", "runs/a", "--once", "--html", "run.html")

    assert trained.returncode == 0, trained.stderr
    assert attached.returncode == 0, attached.stderr
    for text in (trained.stdout, attached.stdout):
        assert "2 ranks" in text
        assert "600 steps, 150 synchronisations" in text
        assert "0 VIOLATED" in text
    assert "all reporting" in attached.stdout
    assert re.search(r"HOLDS +averaged models, rounds that differ +0 ", attached.stdout)
    assert re.search(r"<C\(x\), x>/\|x\|\^2, mean .* < 0\.[5-9]\d* or > 1\.", attached.stdout)
    assert "comparisons are evidence" in (tmp_path / "run.html").read_text()


def test_the_preset_of_the_guide_runs_from_its_folder(tmp_path):
    (tmp_path / "mine.py").write_text(MINE)

    found = run(tmp_path, "gpu_validation", "run", "--preset", "mine:PRESET", "--seed", "0")

    assert found.returncode == 0, found.stdout + found.stderr
    assert "mine:Louder" in found.stdout
    assert (tmp_path / "results/mine/report.html").exists()
