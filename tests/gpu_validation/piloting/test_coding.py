"""Seconds of coding on ranks: the slowest rank's, over every message's length, by the clock on the wall."""

import pytest
import torch

from gpu_validation.piloting import timings
from operators import Identity
from ratedist.cluster.codec import lengths_of

from ..ranks import in_ranks

D = 4096


def codec_by_a_clock(place, monkeypatch):
    """A clock that only coding moves: (rank + 1) s an encode and as much for 1000 coordinates, 7 s a decode."""
    now = [0.0]

    class Slow(Identity):
        def encode(self, x, *, key):
            now[0] += (place.rank + 1) * (1 + x.numel() / 1000)
            return super().encode(x, key=key)

        def decode(self, message, *, d, key=None):
            now[0] += 7
            return super().decode(message, d=d, key=key)

    monkeypatch.setattr(timings.time, "perf_counter", lambda: now[0])
    found = timings.codec_of_ranks(Slow(), torch.randn(D), device="cpu", group=None)
    monkeypatch.undo()
    return found.of_lengths, found.source


def test_the_slowest_rank_counts_at_every_length(monkeypatch):
    reports = in_ranks(lambda place: codec_by_a_clock(place, monkeypatch), 2)
    assert reports[0] == reports[1]
    rows, source = reports[0]
    assert rows == tuple((d, pytest.approx(2 * (1 + d / 1000), rel=0.05), 7.0) for d in lengths_of(D))
    assert source.endswith(f"{D} coordinates), 2 ranks at once")


def test_a_process_alone_measures_as_a_plan_does(monkeypatch):
    monkeypatch.setattr(timings, "measure_codec", lambda operator, *, d, device: (operator, d, device))
    assert timings.codec_of_ranks(Identity(), torch.randn(D), device="cpu", group=None) == (Identity(), D, "cpu")
