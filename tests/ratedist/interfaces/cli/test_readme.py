"""The console sessions of the front page show what the command line prints."""

import re
import shlex
from pathlib import Path

import pytest

from ratedist.interfaces.cli import main

README = (Path(__file__).parents[4] / "README.md").read_text()
SESSIONS = [
    (command, shown)
    for block in re.findall(r"```console\n(.*?)```", README, re.DOTALL)
    for command, shown in re.findall(r"^\$ ratedist (.*?)\n(.*?)(?=^\$ |\Z)", block, re.DOTALL | re.MULTILINE)
]


def lines(text):
    return [line.rstrip() for line in text.splitlines() if line.strip()]


@pytest.mark.parametrize(("command", "shown"), SESSIONS)
def test_console_sessions_are_real(command, shown, capsys):
    assert main(shlex.split(command)) == 0
    assert lines(capsys.readouterr().out) == lines(shown)


def test_there_are_sessions():
    assert SESSIONS
