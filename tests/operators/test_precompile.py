"""After ``python -m operators.precompile`` a fresh process compiles nothing."""

import json
import os
import subprocess
import sys

import pytest

from operators import precompile
from operators.catalogue import all_aggregates

COMPILE = """
import sys
from pathlib import Path
from numba.core import event
from operators.compilation import code_cache
from operators.precompile import send_examples

code_cache.PACKAGE = Path(sys.argv[1])

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


@pytest.mark.parametrize(
    ("name", "loop"), [("signsgd", "pack_signs"), pytest.param("drive", "_far_stages", marks=pytest.mark.thorough)]
)
def test_what_was_compiled_for_the_examples_is_not_compiled_again(tmp_path, name, loop):
    assert loop in compiled(tmp_path, name)
    assert compiled(tmp_path, name) == []


ASKED = """
import json, sys
from operators import precompile
from operators.catalogue import all_aggregates, all_operators
from operators.compilation.code_cache import CodeCache

def load_overload(self, signature, context, load=CodeCache.load_overload):
    code = load(self, signature, context)
    asked.append((self._function.__qualname__, code is not None))
    return code

asked, CodeCache.load_overload = [], load_overload
for name in (*all_operators(), *all_aggregates()):
    precompile.send_examples(name)
beforehand = list(asked)
asked.clear()
for cls in all_operators().values():
    precompile.LENGTHS = 2, 300, 5000, 70_000, 1_500_000
    precompile.send(next(iter(cls.examples())))
json.dump([beforehand, asked], sys.stdout)
"""


@pytest.mark.thorough
def test_what_the_command_compiles_is_kept_and_is_all_that_messages_of_other_lengths_ask_for():
    def asked():
        command = [sys.executable, "-c", ASKED]
        return json.loads(subprocess.run(command, capture_output=True, text=True, timeout=280, check=True).stdout)

    def lacking(beforehand):
        return [name for name, was_kept in beforehand if not was_kept]

    beforehand, more = asked()
    if lacking(beforehand):  # has compiled what this tree's folder lacked
        beforehand, more = asked()

    assert len(beforehand) > 100
    assert lacking(beforehand) == []
    assert more == []


@pytest.mark.thorough
def test_the_command_ends_with_0():
    command = [sys.executable, "-m", "operators.precompile", "identity"]
    assert subprocess.run(command, timeout=280, check=False).returncode == 0


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
