"""The script of the guide to schedule="auto" runs under torchrun, exactly as it is printed."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from bounds.schedules import GradientRetentionState

GUIDE = (Path(__file__).parent.parent / "docs/guides/choose_tau_automatically.md").read_text()
LINE = re.compile(r"rank \d: accuracy ([\d.]+), tau (\d+), D/Y ([\d.]+), decline ([\d.]+)")

pytestmark = pytest.mark.timeout(200)


@pytest.mark.thorough
def test_script_learns_and_both_ranks_know_the_same(tmp_path):
    (code,) = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
    (tmp_path / "train.py").write_text(code)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "train.py"]

    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=180, check=False)

    assert result.returncode == 0, result.stderr
    found = LINE.findall(result.stdout)
    assert len(found) == 2
    assert found[0] == found[1]
    accuracy, tau, delay_ratio, _ = map(float, found[0])
    assert accuracy > 0.85
    assert 1 <= tau <= 512
    assert delay_ratio > 0


def test_fields_that_the_guide_names_exist():
    for name in ("delay_ratio", "decline", "loss_jump", "straggler"):
        assert hasattr(GradientRetentionState(), name)
        assert name in GUIDE
