"""The guide's script runs as it is printed."""

import re
from pathlib import Path

GUIDE = Path(__file__).parents[3] / "docs" / "guides" / "train_on_your_own_data.md"


def test_the_script_runs_on_a_small_file(tmp_path, monkeypatch, capsys):
    (script,) = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    lines = [f"{'+1' if i % 3 else '-1'} 1:{i % 7} 2:{(i * i) % 5 - i % 3}" for i in range(60)]
    (tmp_path / "heart.svm").write_text("\n".join(lines))
    monkeypatch.chdir(tmp_path)
    exec(compile(script, str(GUIDE), "exec"), {})

    shown = capsys.readouterr().out
    assert "'quadratic', 'multiplicative'" in shown
    assert "name='heart.svm', synthetic=False, samples=60" in shown
    assert "the workers have different samples" in shown
    assert shown.rstrip().endswith("True")
