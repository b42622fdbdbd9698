"""The scripts of the pages about other numbers of ranks and about GPUs run here on gloo, as they are printed."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

GUIDES = Path(__file__).parents[1] / "docs/guides"

pytestmark = pytest.mark.timeout(280)


def script(guide):
    """Return the one script of a guide."""
    (code,) = re.findall(r"```python\n(.*?)```", (GUIDES / guide).read_text(), re.DOTALL)
    return code


def test_the_pages_say_what_was_not_run_and_what_is_declined():
    assert "**This recipe was not run here.**" in (GUIDES / "smoke_on_gpus.md").read_text()
    assert "but this run has 2: start as many, or delete them" in (GUIDES / "resume_with_other_ranks.md").read_text()


def torchrun(script, *, ranks):
    """Return what a script prints under torchrun."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}", script.name]
    done = subprocess.run(command, cwd=script.parent, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.thorough
def test_a_model_of_two_ranks_continues_on_three(tmp_path):
    (tmp_path / "train.py").write_text(script("resume_with_other_ranks.md"))
    losses = []
    for ranks in (2, 3):
        printed = torchrun(tmp_path / "train.py", ranks=ranks)
        (loss,) = re.findall(rf"^{ranks} ranks: loss ([\d.]+)$", printed, re.MULTILINE)
        losses.append(float(loss))
    assert losses[1] < losses[0] / 2


@pytest.mark.thorough
def test_the_smoke_script_passes_on_gloo(tmp_path):
    (tmp_path / "smoke.py").write_text(script("smoke_on_gpus.md"))
    printed = torchrun(tmp_path / "smoke.py", ranks=2)
    assert sorted(re.findall(r"^rank (\d) on cpu: .*: passed$", printed, re.MULTILINE)) == ["0", "1"]
