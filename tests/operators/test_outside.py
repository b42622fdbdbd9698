"""Operators from outside the tree: by their module, by what an installed package announces, and never by a request."""

import sys
from itertools import count

import pytest

import ratedist as rd
from operators import Identity, outside, parse, specification
from ratedist.interfaces.http.worker import answer

COIN = '''
from dataclasses import dataclass

import numpy as np

from bounds.claims import Unbiased
from operators import Operator, Size


@dataclass(frozen=True)
class Coin(Operator):
    """All or nothing, by one fair coin."""

    bias: float = 0.5
    name = "coin"
    randomness = "private"

    def claim(self, d):
        return Unbiased(1 / self.bias - 1)

    def bits(self, d):
        return Size.fixed(32 * d)

    @classmethod
    def examples(cls):
        return (cls(),)

    def _encode(self, x, key):
        kept = np.random.Generator(np.random.Philox(key.step)).random() < self.bias
        return (kept * x / np.float32(self.bias)).astype(np.float32).view(np.uint8), 32 * x.size

    def _decode(self, payload, bits, d, key):
        return payload.view(np.float32)


READY = Coin(bias=0.25)
NOTHING = 3


class Plain(Operator):
    pass
'''


NUMBERS = count()


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """A module in the current folder, of a name that no other test uses."""
    name = f"mine{next(NUMBERS)}"
    (tmp_path / f"{name}.py").write_text(COIN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield name
    sys.modules.pop(name, None)


@pytest.fixture
def package(mine, tmp_path):
    """An installed package that announces an operator, and one that is broken."""
    info = tmp_path / "coinpack-1.5.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: coinpack\nVersion: 1.5\n")
    lines = f"[ratedist.operators]\ncoin = {mine}:Coin\nidentity = {mine}:Coin\nlost = nowhere_at_all:Coin\n"
    (info / "entry_points.txt").write_text(lines)
    sys.path.insert(0, str(tmp_path))
    return mine


def test_an_operator_of_the_current_folder_is_parsed_measured_and_named(mine):
    coin = parse(f"{mine}:Coin:bias=0.25")

    assert coin == parse(f"{mine}:Coin:0.25") == parse(f"{mine}:READY")
    assert specification(coin) == f"{mine}:Coin:bias=0.25"
    assert parse(specification(coin)) == coin
    assert parse(f"induced:biased=(topk:k=2),unbiased=({mine}:Coin)").unbiased == parse(f"{mine}:Coin")
    assert rd.measure(f"{mine}:Coin", [1.0, 2.0]).bits == 32


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("nowhere_at_all:Coin", "no module nowhere_at_all for the operator 'nowhere_at_all:Coin', and no operator has"),
        ("{mine}:Dime", "has no Dime for the operator"),
        ("{mine}:NOTHING", "a frozen dataclass derived from operators.Operator, or an instance of one; got 3"),
        ("{mine}:Plain", "a frozen dataclass derived from operators.Operator"),
        ("{mine}:READY:bias=1", "is a ready operator and takes no fields: leave out 'bias=1'"),
        ("{mine}:Coin:edge=1", "coin has no field 'edge'; fields: bias"),
        ("{mine}:Coin:bias=thick", "bias of coin must be a number; got 'thick'"),
        ("broken:Coin", "broken cannot be imported for the operator 'broken:Coin' (ZeroDivisionError: "),
        ("needy:Coin", "the operator 'needy:Coin' needs the module nowhere_at_all: install it"),
        ("mine coin:Coin", "unknown operator 'mine coin'"),
    ],
)
def test_what_is_no_operator_is_one_sentence(mine, tmp_path, text, words):
    (tmp_path / "broken.py").write_text("1 / 0")
    (tmp_path / "needy.py").write_text("import nowhere_at_all")
    for call in (parse, lambda t: rd.measure(t, [1.0, 2.0])):
        with pytest.raises(ValueError) as caught:  # noqa: PT011  the words follow
            call(text.format(mine=mine))
        assert words in str(caught.value)
        assert "\n" not in str(caught.value)


def test_an_installed_package_announces_operators_and_the_catalogue_says_whose_they_are(package, capsys):
    from ratedist.interfaces.cli import main

    coin = parse("coin:bias=0.25")
    assert coin == parse(f"{package}:READY")
    assert specification(coin) == "coin:bias=0.25"
    assert parse("identity") == Identity(), "a name of the tree is not taken over"
    assert outside.announced(outside.OPERATORS)["coin"].origin == "coinpack 1.5"
    with pytest.raises(ValueError, match=r"lost of coinpack 1.5 cannot be loaded \(ModuleNotFoundError: .*: fix or"):
        parse("lost")

    entries = {entry.operator: entry for entry in rd.operators(d=100).entries if entry.origin != "ratedist"}
    assert (entries["coin:bias=0.5"].origin, entries["coin:bias=0.5"].bits) == ("coinpack 1.5", 3200)
    assert entries["lost"].claim.startswith("none: lost of coinpack 1.5 cannot be loaded")
    assert main(["operators", "--d", "100"]) == 0
    assert "coinpack 1.5" in capsys.readouterr().out


@pytest.mark.parametrize("text", ["{mine}:Coin", "induced:biased=(topk:k=1),unbiased=({mine}:Coin)"])
def test_a_request_over_the_network_imports_nothing(mine, text):
    for name, given in (
        ("gap", {"op": text.format(mine=mine), "x": [1.0, 2.0]}),
        ("check", {"op": text.format(mine=mine)}),
        (
            "plan",
            {"d": 10, "cluster": {"workers": 2}, "operators": [text.format(mine=mine)], "target": 0.1, "codec": "free"},
        ),
    ):
        with pytest.raises(ValueError, match=f"unknown operator '{mine}'"):
            answer(name, given)
    assert mine not in sys.modules
