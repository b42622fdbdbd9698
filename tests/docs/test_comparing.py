"""Ratios of the benchmarks: of medians, with an interval that keeps what was measured in the same turn together."""

import numpy as np
import pytest
import torch

from .. import scripts

comparing = scripts.load("benchmarks", "comparing")
quotient = comparing.quotient


def test_what_takes_twice_as_long_in_every_turn_is_twice_as_slow_without_doubt():
    seconds = np.random.default_rng(1).exponential(size=40)

    assert quotient(2 * seconds, seconds) == (2.0, [2.0, 2.0])
    assert quotient(list(seconds), list(2 * seconds)) == (0.5, [0.5, 0.5])


def test_the_ratio_is_that_of_the_medians_and_inside_its_interval():
    above, below = [1.0, 9.0, 2.0, 3.0, 100.0], [2.0, 1.0, 4.0, 2.0, 2.0]

    ratio, (low, high) = quotient(above, below)

    assert ratio == 1.5
    assert low < ratio < high


def test_the_interval_holds_the_true_ratio_as_often_as_it_says():
    draw, truth, held = np.random.default_rng(2), 1.25, 0
    for _ in range(200):
        low, high = quotient(truth * np.exp(0.3 * draw.normal(size=60)), np.exp(0.3 * draw.normal(size=60)))[1]
        held += low <= truth <= high

    assert held == pytest.approx(190, abs=12)  # four standard deviations of 95 % in 200


def test_calls_take_turns_in_an_order_that_alternates_and_every_turn_is_told(monkeypatch):
    clock, calls = [0.0], []
    monkeypatch.setattr(comparing.time, "thread_time", lambda: clock[0])

    def call(name, seconds):
        calls.append(name)
        clock[0] += seconds

    seconds = comparing.in_turns((lambda: call("a", 1.0), lambda: call("b", 3.0)), 18.0)

    assert "".join(calls) == "ab" + "ba" + "abba" * 4  # a turn that warms up, and nine
    assert seconds.tolist() == [[1.0] * 9, [3.0] * 9]
    assert comparing.in_turns((lambda: None,), 1.0).shape == (1, comparing.MOST_TURNS)
    assert comparing.in_turns((lambda: call("a", 9.0),), 1.0).shape == (1, comparing.TURNS)


def test_the_model_of_one_vector_is_zero_and_has_the_gradient_that_it_is_given():
    model, gradient = scripts.load("benchmarks", "ranks").Vector(100_003), torch.arange(100_003.0)

    model(gradient).backward()

    assert not model.x.any()
    assert torch.equal(model.x.grad, gradient)
