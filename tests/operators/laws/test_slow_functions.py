"""A function that takes 5 ms a call is judged within 10 s: wrong ones are accused or left open, never passed."""

import sys
from dataclasses import replace

import numpy as np
import pytest
import torch

from bounds.claims import StrictlyContractive, Unbiased
from operators.laws import Budget, Subject, check
from operators.laws.kit.subject import OutOfTime
from operators.laws.replay import Controlled

CALL_S, MOST_S = 0.005, 10.0
LEAST_CALLS = 1400  # of a function with omega = 1, where every law does no more than its least
LEAST = Budget(seconds=0.0, most_seconds=0.0)


def keep_half(x):
    return 2 * x * (torch.rand(x.shape) < 0.5)


def scaled_random_half(x):
    """Half of the coordinates, scaled by the next power of two over their number instead of d over it."""
    d, kept = len(x), (len(x) + 1) // 2
    out = torch.zeros_like(x)
    chosen = torch.randperm(d)[:kept]
    out[chosen] = x[chosen] * (1 << (d - 1).bit_length()) / kept
    return out


def top_half(x):
    out = torch.zeros_like(x)
    largest = x.abs().topk((len(x) + 1) // 2).indices
    out[largest] = x[largest]
    return out


WRONG = {
    "zero": torch.zeros_like,
    "half of x": lambda x: 0.5 * x,
    "nine tenths of keep_half": lambda x: 0.9 * keep_half(x),
    "random half scaled by a power of two": scaled_random_half,
}


class Clock:
    """Counts the calls of a function; as a clock, only they take time."""

    def __init__(self, function):
        self.function, self.calls = function, 0

    def __call__(self, x):
        self.calls += 1
        return self.function(x)

    def now(self):
        return CALL_S * self.calls

    def rules(self, monkeypatch):
        """Every law reads this clock."""
        for name, module in list(sys.modules.items()):
            if name.startswith("operators.laws") and hasattr(module, "work_s"):
                monkeypatch.setattr(module, "work_s", self.now)


@pytest.mark.every(2)
@pytest.mark.parametrize("name", WRONG)
def test_slow_wrong_function_is_never_ok_and_keeps_nobody_waiting(name, monkeypatch):
    clock = Clock(WRONG[name])
    clock.rules(monkeypatch)

    report = check(clock, claim=Unbiased(omega=1.0), seed=5)

    assert not report.ok
    assert clock.now() <= MOST_S


@pytest.mark.parametrize("name", WRONG)
def test_least_work_on_a_wrong_function_is_bounded_and_never_ends_in_ok(name, monkeypatch):
    clock = Clock(WRONG[name])
    clock.rules(monkeypatch)

    report = check(clock, claim=Unbiased(omega=1.0), seed=5, budget=LEAST)

    assert not report.ok
    assert clock.calls <= LEAST_CALLS


@pytest.mark.parametrize(
    ("function", "claim"), [(keep_half, Unbiased(omega=1.0)), (top_half, StrictlyContractive(alpha=0.5))]
)
def test_slow_honest_function_is_not_accused_and_keeps_nobody_waiting(function, claim, monkeypatch):
    clock = Clock(function)
    clock.rules(monkeypatch)

    report = check(clock, claim=claim, seed=5)

    assert not report.failures
    assert clock.now() <= MOST_S


@pytest.mark.parametrize(
    ("law", "name"),
    [
        ("exact-marginals", "half of x"),
        ("exact-marginals", "nine tenths of keep_half"),
        ("enumeration", "nine tenths of keep_half"),
    ],
)
def test_suspicion_that_there_is_no_time_to_confirm_is_inconclusive(law, name):
    report = check(WRONG[name], claim=Unbiased(omega=1.0), seed=5, budget=LEAST, laws=[law])

    assert [verdict.law for verdict in report.inconclusive] == [law]
    assert "too slow" in report[law].text
    assert not report.ok


def test_time_that_is_over_during_a_replay_is_not_mistaken_for_a_subject_that_cannot_be_replayed():
    unhurried = Clock(keep_half)
    Controlled(Subject(unhurried), np.ones(3, np.float32), np.random.default_rng(0))
    assert unhurried.calls > 4
    for allowed in range(1, unhurried.calls):
        with pytest.raises(OutOfTime):
            Controlled(_allowed(allowed), np.ones(3, np.float32), np.random.default_rng(0))


def _allowed(calls):
    """keep_half, whose time is over after so many calls."""
    clock = Clock(keep_half)

    def function(x):
        if clock.calls == calls - 1:
            subject.deadline = -1.0
        return clock(x)

    subject = Subject(function)
    return subject


def test_failed_law_spares_the_statistical_ones_the_search_for_power(monkeypatch):
    calls = []
    for budget in (Budget(), replace(Budget(), most_seconds=Budget().seconds)):
        clock = Clock(WRONG["nine tenths of keep_half"])
        clock.rules(monkeypatch)
        report = check(clock, claim=Unbiased(omega=1.0), seed=5, budget=budget)
        calls.append(clock.calls)

    assert report["exact-marginals"] in report.failures
    assert report["unbiasedness"] in report.inconclusive
    assert calls[0] == calls[1]


@pytest.mark.parametrize("name", ["honest", "half of x"])
def test_an_untimed_check_is_the_same_on_a_slow_machine(name, monkeypatch):
    function = (WRONG | {"honest": keep_half})[name]
    budget = Budget.quick().untimed()
    texts = []
    for call_s in (1e-9, 10.0):
        clock = Clock(function)
        monkeypatch.setattr(clock, "now", lambda clock=clock, call_s=call_s: call_s * clock.calls)
        clock.rules(monkeypatch)
        report = check(clock, claim=Unbiased(omega=1.0), seed=5, budget=budget)
        texts.append([(verdict.law, verdict.outcome, verdict.text) for verdict in report.verdicts])
    assert texts[0] == texts[1]
