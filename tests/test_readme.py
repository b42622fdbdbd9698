"""The front page tells the truth: its Python runs and gives the numbers it shows, its files exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def test_python_example_runs_and_shows_true_numbers():
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    space: dict = {}
    exec(compile(code, "README.md", "exec"), space)

    shown = dict(re.findall(r"^([\w.]+\(.*\))(?:\.\w+)?\s+# ([\d.]+)", code, re.MULTILINE))
    assert shown, "the example shows at least one number"
    for call, number in shown.items():
        assert str(eval(call, space)).startswith(number.rstrip(".")), call
    assert space["y"].shape == space["x"].shape


@pytest.mark.parametrize("target", re.findall(r"\]\((?!http)([^)]+)\)", README))
def test_links_lead_to_files(target):
    assert (ROOT / target).exists()


def test_table_names_every_operator_of_the_quick_preset():
    from gpu_validation.presets import all_presets
    from operators import specification

    (table,) = re.findall(r"```text\n(.*?)```", README, re.DOTALL)
    for operator in all_presets()["quick"].operators:
        assert specification(operator) in table
