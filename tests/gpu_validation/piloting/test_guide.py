"""The code of the guide from a pilot to a plan, run as it is printed."""

import re
from pathlib import Path

import pytest

GUIDE = Path(__file__).parents[3] / "docs/guides/measure_before_you_plan.md"


def test_the_guide_goes_from_a_script_to_a_plan(tmp_path, monkeypatch, capsys):
    pytest.importorskip("sklearn")
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    names = {}
    for block in blocks:
        exec(block, names)
    out = capsys.readouterr().out

    assert len(blocks) == 5
    assert names["plan"].explain() in out
    assert {choice.operator for choice in names["plan"].shown} == {"binary32", *names["found"].codecs()}
    assert names["prediction"].limits in out
    assert names["ranking"][0].feasible
    assert names["rd"].plan(pilot="pilot.json", cluster=names["cluster"]) == names["plan"]
