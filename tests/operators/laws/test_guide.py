"""The guide's example runs as it is printed and says what the guide says."""

import re
from pathlib import Path

import torch

GUIDE = Path(__file__).parents[3] / "docs" / "guides" / "check_your_own_compressor.md"


def test_example_of_the_guide_takes_fifteen_lines_to_a_verdict(capsys):
    first = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), flags=re.DOTALL)[0]
    torch.manual_seed(1)
    namespace: dict[str, object] = {}

    exec(compile(first, str(GUIDE), "exec"), namespace)

    printed = capsys.readouterr().out
    assert len([line for line in first.splitlines() if line.strip()]) <= 15
    assert "keep_half: ok (" in printed
    assert "FAIL  exact-marginals: E C(x)[" in printed
    assert not namespace["wrong"].ok
