"""The guide plan_in_ten_minutes.md, followed as it is printed: the script under torchrun, then every command."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import ratedist as rd

GUIDE = (Path(__file__).parent.parent / "docs/guides/plan_in_ten_minutes.md").read_text()
(SCRIPT,) = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
TRAIN, *ASKED = (shlex.split(line) for line in re.findall(r"```bash\n(.*?)\n```", GUIDE, re.DOTALL))
PROGRAMS = {"torchrun": ["torch.distributed.run"], "ratedist": ["ratedist"]}

pytestmark = [pytest.mark.timeout(280)]


def run(folder, command):
    """A line of the guide, by this interpreter whatever the path holds."""
    program, *arguments = command
    line = [sys.executable, "-m", *PROGRAMS[program], *arguments]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(line, cwd=folder, env=environment, capture_output=True, text=True, timeout=250, check=False)


@pytest.mark.thorough
def test_the_guide_leads_from_a_script_to_a_plan(tmp_path):
    pytest.importorskip("sklearn")
    (tmp_path / "train.py").write_text(SCRIPT)

    trained = run(tmp_path, TRAIN)
    answers = [run(tmp_path, command) for command in ASKED]
    explained = [run(tmp_path, [*command, "--explain"]) for command in ASKED[1:3]]

    assert trained.returncode == 0, trained.stderr
    assert float(re.search(r"loss ([\d.]+)", trained.stdout)[1]) < 2
    for answer in (*answers, *explained):
        assert answer.returncode == 0, answer.stderr
    shown, flat, nodes, prediction = (" ".join(answer.stdout.split()) for answer in answers)
    pilot = rd.Pilot.read(tmp_path / "pilot.json")
    assert (pilot.ranks, len(pilot.survival)) == (2, 32)
    assert all(trial.codec.source.endswith("2 ranks at once") for trial in pilot.operators)
    assert "2 ranks" in shown
    for text in (flat, nodes):
        assert re.match(r"(Use|Try) \S+, averaging every .* times that of synchronous training \(95 %:", text)
        assert "other links" in text
        assert "not modelled" in text
    for answer, words in zip(explained, ("64 equal workers", "8 nodes of 8 equal workers"), strict=True):
        text = " ".join(answer.stdout.split())
        assert "a round" in text
        assert "twice as good would save" in text
        assert words in text
    assert "two shots" in prediction
    plan = rd.plan(pilot=pilot, cluster=pilot.cluster(workers=64, bandwidth_bit_per_s=1e9, latency_s=1e-4))
    assert plan.verdict in flat
    assert plan.explain().startswith(plan.verdict.rstrip("."))


def test_the_script_is_a_script_without_the_new_lines_too():
    """What the guide adds is four lines between its two comments, the only ones that name a pilot."""
    before, new = SCRIPT.split("# new:")
    added, after = new.split("# end of what is new\n")
    lines = [line for line in added.splitlines()[1:] if line]
    assert len(lines) <= 4
    assert "pilot" not in before + after
    compile(before + after, "train.py", "exec")


def test_every_command_of_the_guide_is_one_of_the_command_line():
    from ratedist.interfaces.parser import build

    assert TRAIN[0] == "torchrun"
    for program, *arguments in ASKED:
        assert program == "ratedist"
        assert json.dumps(vars(build(arguments[0]).parse_args(arguments)), default=str)
