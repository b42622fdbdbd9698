"""The front page tells the truth: its Python runs and gives the numbers it shows, its files exist."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
PYTHON = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def test_python_example_runs_and_shows_true_numbers():
    code, _ = PYTHON
    space: dict = {}
    exec(compile(code, "README.md", "exec"), space)

    shown = dict(re.findall(r"^([\w.]+\(.*\))(?:\.\w+)?\s+# ([\d.]+)", code, re.MULTILINE))
    assert shown, "the example shows at least one number"
    for call, number in shown.items():
        assert str(eval(call, space)).startswith(number.rstrip(".")), call
    assert space["y"].shape == space["x"].shape


@pytest.mark.thorough
def test_training_script_learns_under_torchrun_and_all_ranks_agree(tmp_path):
    (tmp_path / "train.py").write_text(PYTHON[1])
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "train.py"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)

    assert result.returncode == 0, result.stderr
    found = re.findall(r"rank \d: accuracy ([\d.]+), (\d+) bytes sent", result.stdout)
    assert len(found) == 2
    assert found[0][0] == found[1][0]
    assert float(found[0][0]) > 0.8
    assert all(int(sent) > 0 for _, sent in found)


@pytest.mark.parametrize("target", re.findall(r"\]\((?!http)([^)]+)\)", README))
def test_links_lead_to_files(target):
    assert (ROOT / target).exists()


def test_table_names_every_operator_of_the_quick_preset():
    from gpu_validation.studies import all_presets
    from operators import specification

    (table,) = re.findall(r"```text\n(.*?)```", README, re.DOTALL)
    for operator in all_presets()["quick"].operators:
        assert specification(operator) in table
