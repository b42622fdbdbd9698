"""The guide verify_a_claim.md: every command prints what the page shows, and names what can be cited."""

import doctest
import re
import shlex
from pathlib import Path

import pytest

from ratedist.interfaces.cli import main

GUIDE = (Path(__file__).parents[1] / "docs/guides/verify_a_claim.md").read_text()
(OPERATOR,) = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
SHOWN = re.findall(r"```sh\n(.*?)```\n\n```text\n(.*?)```", GUIDE, re.DOTALL)
CITED = re.findall(r"`ratedist (cite \w+)`", GUIDE)


@pytest.mark.parametrize(("commands", "shown"), SHOWN, ids=["constant", "bits", "schedule"])
def test_commands_print_what_the_guide_shows(commands, shown, tmp_path, monkeypatch, capsys):
    (tmp_path / "paper_sign.py").write_text(OPERATOR)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)

    statuses = []
    for line in commands.replace("\\\n", "").splitlines():
        program, *words = shlex.split(line)
        assert program == "ratedist"
        statuses.append(main(words))

    refuted = "FAILS" in shown
    assert statuses == ([1] if refuted else [0] * len(statuses))
    printed = capsys.readouterr().out
    assert doctest.OutputChecker().check_output(shown, printed, doctest.ELLIPSIS), printed


def test_every_recipe_names_what_to_cite(capsys):
    assert len(CITED) == len(SHOWN) == 3
    assert GUIDE.count("**Decision:") == GUIDE.count("**Open:**") == 3
    assert [main(words.split()) for words in CITED] == [0, 0, 0]
    assert capsys.readouterr().out.count("@article{") == 3


def test_the_guide_is_short():
    assert len(GUIDE.splitlines()) <= 120
