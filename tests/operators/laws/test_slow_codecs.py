"""Operators and objects that take 5 ms in every call are judged within 10 s: wrong ones are accused or left open."""

import functools
import sys

import pytest
import torch

from bounds.claims import Unbiased
from operators import QSGD, TopK
from operators.laws import Budget, check
from operators.laws.kit.law import SLOW_S, Context

from .mutants import MUTANTS

CALL_S, MOST_S = 0.005, 10.0
NAMES = ("k/d for d/k", "sign scale max", "bytes left over accepted", "step taken modulo 1000")


class Clock:
    """Counts the calls of encode and decode; as a clock, only they take time."""

    def __init__(self, monkeypatch, codec):
        self.calls = 0
        for method in ("encode", "decode"):
            monkeypatch.setattr(type(codec), method, self.counted(getattr(type(codec), method)))
        for name, module in list(sys.modules.items()):
            if name.startswith("operators.laws") and hasattr(module, "work_s"):
                monkeypatch.setattr(module, "work_s", self.now)

    def counted(self, method):
        @functools.wraps(method)
        def call(*arguments, **keywords):
            self.calls += 1
            return method(*arguments, **keywords)

        return call

    def now(self):
        return CALL_S * self.calls


class Halving:
    """An object of another project: .45 of what it is given, half of the time."""

    def encode(self, x):
        return 0.9 * x * (torch.rand(x.shape) < 0.5)

    def decode(self, message, *, d):
        return message


@pytest.mark.every(2)
@pytest.mark.parametrize("name", NAMES)
def test_slow_wrong_operator_is_never_ok_and_keeps_nobody_waiting(name, monkeypatch):
    wrong = next(m.wrong for m in MUTANTS if m.what == name)
    clock = Clock(monkeypatch, wrong)

    report = check(wrong, seed=5)

    assert not report.ok
    assert clock.now() <= MOST_S


def test_slow_wrong_object_is_never_ok_and_keeps_nobody_waiting(monkeypatch):
    codec = Halving()
    clock = Clock(monkeypatch, codec)

    report = check(codec, claim=Unbiased(omega=1.0), seed=5)

    assert not report.ok
    assert clock.now() <= MOST_S


@pytest.mark.parametrize("operator", [QSGD(levels=4), TopK(k=1)], ids=repr)
def test_slow_honest_operator_is_not_accused_and_keeps_nobody_waiting(operator, monkeypatch):
    clock = Clock(monkeypatch, operator)

    report = check(operator, seed=5)

    assert not report.failures, str(report)
    assert clock.now() <= MOST_S


def test_codec_of_ordinary_speed_keeps_all_its_time():
    quick, slow = Context(Budget(), seed=1), Context(Budget(), seed=1)
    quick.hurry(SLOW_S)
    slow.hurry(1.01 * SLOW_S)

    assert quick.ends - quick.began == pytest.approx(Budget().patience)
    assert slow.ends - slow.began < MOST_S
