"""The guide's code runs as it stands."""

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.timeout(90)

GUIDE = Path(__file__).parents[3] / "docs/guides/time_a_network.md"


def test_the_guide_runs_and_prints_what_it_promises(capsys):
    blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    assert len(blocks) == 2
    for block in blocks:
        exec(compile(block, str(GUIDE), "exec"), {"__name__": "guide"})

    printed = capsys.readouterr().out
    ranks = re.findall(r"rank (\d): (\d+) ms, (\d+) bytes", printed)
    assert sorted(rank for rank, *_ in ranks) == list("0123")
    if "network namespaces" in printed:
        assert all(int(sent) > 600_000 for *_, sent in ranks)
        assert sum(int(sent) for *_, sent in ranks) < 4 * 700_000
    assert "has the smallest AIC of 7 laws on 300 steps" in printed
