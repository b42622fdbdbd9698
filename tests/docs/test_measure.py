"""Options of the scripts that measure come from the arguments of their ``main``."""

import json
import subprocess
import sys
from typing import Literal

import pytest

from .. import scripts

measure = scripts.load("", "measure")


def given(
    part: Literal["one", "two"],
    d: tuple[int, ...] = (10, 20),
    only: tuple[str, ...] = (),
    seconds: float = 2.0,
    scheduling: Literal["normal", "realtime"] = "normal",
    every: bool = False,
    path: str | None = None,
): ...


DEFAULTS = {"d": (10, 20), "only": (), "seconds": 2.0, "scheduling": "normal", "every": False, "path": None}


def test_the_defaults_say_what_an_option_takes():
    assert measure.options(given, ["one"]) == {"part": "one", **DEFAULTS}
    words = "two --d 7 --only a b --seconds 3 --scheduling realtime --every --path x"
    taken = {"d": [7], "only": ["a", "b"], "seconds": 3.0, "scheduling": "realtime", "every": True, "path": "x"}
    assert measure.options(given, words.split()) == {"part": "two", **taken}


@pytest.mark.parametrize("words", ["", "three", "one --d x", "one --scheduling fast", "one --none 1"])
def test_other_words_are_refused(words):
    with pytest.raises(SystemExit, match="2"):
        measure.options(given, words.split())


def test_a_script_prints_its_records_and_may_have_the_name_of_a_package(tmp_path):
    text = "import os\n\nimport json\n\n\ndef main(n: int = 1):\n    for i in range(n):\n"
    text += "        yield {'i': i, 'threads': os.environ['OMP_NUM_THREADS'], 'json': json.__name__}\n"
    (tmp_path / "json.py").write_text(text)
    command = [sys.executable, str(scripts.DOCS / "measure.py"), str(tmp_path / "json.py"), "--n", "2"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    head, *records = [json.loads(line) for line in printed.splitlines()]
    assert head["n"] == 2
    assert {"commit", "load", "numpy", "torch"} <= head.keys()
    assert [record["i"] for record in records] == [0, 1]
    assert {record["json"] for record in records} == {"json"}
