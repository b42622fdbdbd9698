"""A check that judged neither a claim nor a codec is no pass."""

import json

import pytest

import ratedist as rd
from bounds.claims import Contractive, NoClaim
from ratedist.interfaces.cli import main

MODULE = "def halve(x):\n    return 0.5 * x\n"


@pytest.fixture
def module(tmp_path, monkeypatch):
    (tmp_path / "functions_without_a_claim.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    return "functions_without_a_claim:halve"


def test_a_function_without_a_claim_is_not_ok(module, capsys):
    assert main(["check", module, "--budget", "quick", "--seed", "1"]) == 1
    assert "halve: nothing judged (" in capsys.readouterr().out
    assert main(["check", module, "--budget", "quick", "--seed", "1", "--json"]) == 1
    record = json.loads(capsys.readouterr().out)
    assert (record["ok"], record["judged"]) == (False, False)
    assert main(["check", module, "--budget", "quick", "--seed", "1", "--alpha", "0.25"]) == 0
    assert "halve, claimed contractive with alpha = 0.25: ok (" in capsys.readouterr().out


def test_an_object_without_a_name_is_called_as_it_was_given(tmp_path, monkeypatch, capsys):
    text = "class Halver:\n    def __call__(self, x):\n        return 0.5 * x\n\nhalf = Halver()\n"
    (tmp_path / "objects_without_a_name.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    assert main(["check", "objects_without_a_name:half", "--budget", "quick", "--seed", "1", "--alpha", "0.25"]) == 0
    assert "objects_without_a_name:half, claimed contractive with alpha = 0.25: ok (" in capsys.readouterr().out


def test_a_claim_or_a_codec_is_judged():
    found = rd.check(lambda x: 0.5 * x, claim=NoClaim("nothing is known"), budget="quick", seed=1)
    assert not found.judged
    assert not found.ok
    assert not found.failures
    assert rd.check(lambda x: 0.5 * x, claim=Contractive(0.25), budget="quick", seed=1).ok
    assert rd.check("signsgd", budget="quick", seed=1).ok  # no claim, but a codec
