"""The guide's script runs as it is printed."""

import re
from pathlib import Path

GUIDE = Path(__file__).parents[3] / "docs" / "guides" / "train_on_your_own_data.md"


def test_the_script_makes_what_it_needs_and_runs(tmp_path, monkeypatch, capsys):
    (script,) = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    monkeypatch.chdir(tmp_path)
    exec(compile(script, str(GUIDE), "exec"), {})

    shown = capsys.readouterr().out
    assert "'quadratic', 'multiplicative'" in shown
    assert "name='heart.svm', synthetic=False, samples=60" in shown
    assert "the workers have different samples" in shown
    assert shown.rstrip().endswith("True")
