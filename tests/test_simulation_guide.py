"""The guide to simulated workers prints what it shows."""

import re
from pathlib import Path

import pytest

GUIDE = (Path(__file__).parent.parent / "docs/guides/simulate_many_workers.md").read_text()
LINE = re.compile(r"^(.+): accuracy ([\d.]+) after (\d+) simulated seconds and ([\d.]+) MB$", re.MULTILINE)


@pytest.mark.slow  # 7 s: four runs of 16 workers
def test_script_prints_the_times_and_sizes_of_the_guide(capsys):
    (code,) = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
    (shown,) = re.findall(r"```text\n(.*?)```", GUIDE, re.DOTALL)

    exec(compile(code, "simulate_many_workers.md", "exec"), {})

    printed, expected = LINE.findall(capsys.readouterr().out), LINE.findall(shown)
    assert [name for name, *_ in printed] == [name for name, *_ in expected]
    for (name, accuracy, seconds, megabytes), (_, its_accuracy, *its_cost) in zip(printed, expected, strict=True):
        assert float(accuracy) == pytest.approx(float(its_accuracy), abs=0.02)
        if name != "AdaComm":  # whose tau depends on the last bits of losses
            assert [seconds, megabytes] == its_cost


def test_modes_of_the_table_are_those_that_exist():
    from gpu_validation.averaging import mixing

    named = set(re.findall(r"`(\w+)\(", GUIDE.split("## Ways to mix")[1]))
    assert {"Sampled", "Elastic", "gossip", "ring", "hypercube", "average_exactly"} <= named
    for name in named - {"average_exactly"}:
        assert hasattr(mixing, name), name
