"""The script of the guide run_on_several_machines.md measures an all-reduce, here between two processes."""

import re
import subprocess
import sys

import pytest
from pages import blocks

PAGE = "guides/run_on_several_machines.md"


@pytest.mark.slow  # 10 s: two processes
@pytest.mark.timeout(120)
def test_script_prints_three_times_that_are_positive(tmp_path):
    (script,) = [block.code for block in blocks(PAGE) if block.language == "python"]
    (tmp_path / "measure.py").write_text(script)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "measure.py"]

    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=100, check=False)

    assert found.returncode == 0, found.stderr
    times = re.findall(r"^(\d+) bits: ([\d.]+) ms$", found.stdout, re.MULTILINE)
    assert [int(bits) for bits, _ in times] == [32_000, 3_200_000, 32_000_000]
    assert all(float(time) > 0 for _, time in times)


def test_commands_on_both_kinds_of_cluster_name_the_same_script_and_rendezvous():
    commands = [block.code for block in blocks(PAGE) if block.language in ("bash", "sh")]
    assert len(commands) == 2
    for command in commands:
        assert "--rdzv-backend=c10d" in command
        assert command.rstrip().endswith("train.py")
