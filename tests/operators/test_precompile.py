"""After ``python -m operators.precompile`` a fresh process compiles nothing."""

import os
import subprocess
import sys

import pytest

from operators import precompile
from operators.catalogue import all_aggregates, all_operators

COMPILE = """
import sys
from pathlib import Path
from numba.core import event
from operators.compilation import folders
from operators.precompile import send_examples

folders.PACKAGE = Path(sys.argv[1])

class Compilations(event.Listener):
    names = []
    def on_start(self, event):
        self.names.append(event.data["dispatcher"].py_func.__qualname__)
    def on_end(self, event):
        pass

event.register("numba:compile", Compilations())
for name in sys.argv[2:]:
    send_examples(name)
sys.stdout.write(" ".join(Compilations.names))
"""


def compiled(folder, *names):
    """What a fresh process has to compile for the messages of these operators, with code from this folder only."""
    environment = os.environ | {"NUMBA_CACHE_DIR": ""}
    command = [sys.executable, "-c", COMPILE, str(folder), *names]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=280, check=True)
    return result.stdout.split()


def test_what_was_compiled_for_the_examples_is_not_compiled_again(tmp_path):
    assert "pack_signs" in compiled(tmp_path, "signsgd")
    assert compiled(tmp_path, "signsgd") == []


@pytest.mark.thorough
def test_nothing_of_the_whole_catalogue_is_compiled_again(tmp_path):
    names = [*all_operators(), *all_aggregates()]

    assert len(compiled(tmp_path, *names)) > 100
    assert compiled(tmp_path, *names) == []


@pytest.mark.thorough
def test_the_command_ends_with_0():
    assert precompile.main(["identity"]) == 0


def test_an_unknown_name_is_refused(capsys):
    with pytest.raises(SystemExit):
        precompile.main(["identity", "nothing"])
    assert "nothing called 'nothing' is in the catalogue" in capsys.readouterr().err


def test_every_aggregation_can_be_sent_through():
    for name in all_aggregates():
        precompile.send_examples(name)


def test_a_machine_without_a_level_cannot_compile_for_others(monkeypatch, capsys):
    monkeypatch.setattr(precompile, "levels_of_this_machine", lambda: ())

    with pytest.raises(SystemExit):
        precompile.main(["--portable"])
    assert "this machine runs code of none of x86-64-v4, x86-64-v3" in capsys.readouterr().err
